// Package guard puts the mechanisms in order for what a user does (run a
// command, check a commit, verify a merge, set a repository up) and undoes
// them in reverse.
//
// It composes and decides nothing twice: what is a surface is package
// surface's word, what is granted is package policy's, what differs is package
// integrity's. One run is a line: open the repository, load the policy,
// resolve the surfaces, take the state before, serve the proxy, start the
// sandbox and the watcher, wait, take the state after, tell the difference.
//
// Does not protect a workspace in which the command does not run through it:
// there the watcher tells and the checks at commit and merge decide. Does not
// undo a change by itself; it names the command that does. Does not hold an
// absent name where the kernel has no broker, nor what a run puts into git
// without naming a file: that is told at the end.
package guard

import (
	"io"
	"os"
	"time"

	"agentguard/guard/event"
)

// Guard is one call of agentguard with what it may know of its surroundings.
// Nothing below reads the process's environment, directory or clock by itself.
type Guard struct {
	Dir     string            // working directory, physical
	PWD     string            // the same as the shell names it, which may lead through links
	Env     map[string]string // the caller's environment
	Stdin   *os.File
	Stdout  io.Writer // results
	Stderr  io.Writer // everything said besides
	Sink    event.Sink
	Now     func() time.Time
	Exe     string // agentguard's own binary
	Version string
}

// Home returns the user's home directory, "" when there is none to speak of.
func (g *Guard) home() string {
	if h := g.Env["HOME"]; len(h) > 1 && h[0] == '/' {
		return h
	}
	return ""
}

// Shell returns the caller's shell, if it is one that exists in the sandbox.
func (g *Guard) Shell() string {
	if sh := g.Env["SHELL"]; systemPath(sh) && exists(sh) {
		return sh
	}
	return "/bin/sh"
}

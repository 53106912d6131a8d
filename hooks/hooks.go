// Package hooks owns core.hooksPath: it points git at shims in the user's
// state directory that run approved copies of the hooks a repository tracks.
//
// The tracked directory (.githooks) is the reviewed source and is never run.
// A checkout or a pull swaps a tracked directory within one command, so a check
// followed by running the tracked file would run what nobody approved. What
// runs is the copy made when the user approved it. While the work tree holds a
// file in that directory that the copy does not hold, or holds with other
// content, every hook refuses: something waits for review. A file that is only
// missing there (a branch older than the hooks, a sparse checkout) refuses
// nothing, and the approved copy runs: absence must not switch a check off.
//
// A shim is a POSIX shell script that compares and executes with what every
// system has (sh, diff), rather than a call of the agentguard binary: a
// sandboxed run binds [State.Dir] read-only at its own path and its hooks run
// there without agentguard. Arguments, standard input and exit status are the
// hook's own.
//
// Everything below a [State.Dir] is made in a new directory and put in place by
// one rename of one symbolic link, so a crash leaves the old hooks or the new.
//
// Does not stop git from being told to run no hooks (--no-verify, -c
// core.hooksPath, GIT_CONFIG_*, plumbing), does not cover scripts outside the
// tracked directory that a hook calls, does not compare anything for hooks that
// git runs in the git directory (pre-receive, update, post-receive, post-update,
// proc-receive, push-to-checkout: the approved copy runs), and does not protect
// the state directory from a process that may write there.
package hooks

import (
	"fmt"
	"strings"

	"agentguard/guard/git"
)

// DefaultSource is the tracked directory where Options names none.
const DefaultSource = ".githooks"

// Options says which repository's hooks and where their state is kept.
type Options struct {
	Repo     *git.Repo
	Source   string // tracked directory, relative to the work tree's top; empty: DefaultSource
	StateDir string // agentguard's state directory of the user, absolute, outside every work tree
	Home     string // the user's HOME, for git's global configuration; empty leaves it out
	XDG      string // XDG_CONFIG_HOME; empty: Home/.config
	Adopt    bool   // Install copies the hooks that git runs now into Source first
	Replace  bool   // Install takes over from another hooks directory that holds hooks
}

// State is what is so now.
type State struct {
	Dir       string       // this repository's state: shims and copies; a sandbox binds it read-only
	Installed bool         // Install ran and Uninstall did not
	Managed   bool         // git takes its hooks from the shims, and they are as they were written
	Expected  string       // the core.hooksPath that Install writes
	Value     string       // the deciding core.hooksPath as written, empty when none is set
	Path      string       // the directory git takes hooks from now
	Scope     git.Scope    // of Value
	Origin    string       // file that Value is in
	Hooks     []string     // names that run, approved
	Adopted   []string     // files that this Install wrote into the source
	Differs   []Difference // the work tree's source against the approved copy
	Conflicts []Conflict
}

// Blocked tells whether hooks refuse to run until something is approved. A
// file that is only missing from the work tree, or has another mode, blocks
// nothing: the approved copy runs.
func (s State) Blocked() bool {
	for _, d := range s.Differs {
		if d.Kind == Added || d.Kind == Changed || d.Kind == Unreadable {
			return true
		}
	}
	return false
}

// DiffKind is how one file differs. The zero value is Unreadable: what cannot
// be judged is a difference.
type DiffKind uint8

// The kinds of difference.
const (
	Unreadable DiffKind = iota // symbolic link, device, too large, not permitted
	Added                      // in the work tree, not approved
	Changed                    // other content
	Removed                    // approved, not in the work tree
	Mode                       // only the executable bit
)

// String returns one word for k.
func (k DiffKind) String() string {
	switch k {
	case Added:
		return "added"
	case Changed:
		return "changed"
	case Removed:
		return "removed"
	case Mode:
		return "mode"
	}
	return "unreadable"
}

// Difference is one file of the source that is not as approved.
type Difference struct {
	Path string // relative to the source directory; empty for the directory itself
	Kind DiffKind
	Why  string // for Unreadable, what is wrong
}

// ConflictKind is what gets in the way.
type ConflictKind uint8

// The kinds of conflict. The zero value is none of them.
const (
	Repointed      ConflictKind = iota + 1 // core.hooksPath is not what Install wrote
	WorktreeScope                          // config.worktree decides in this work tree
	RelativeGlobal                         // a relative core.hooksPath for every repository of the user
	OtherHooks                             // hooks that no longer run, or will not
	Altered                                // shims or copies are not as written
	ConfigHook                             // hook.NAME.* of the repository's configuration runs or disables hooks (git 2.54)
	NotExecutable                          // a hook's name without the executable bit: git ignores it
)

// Conflict is one thing that keeps the approved hooks from being the ones that
// run, or that they keep from running.
type Conflict struct {
	Kind    ConflictKind
	Path    string // file or directory concerned
	Manager string // the hook manager recognised there, empty when none
	Detail  string // one sentence without a period
}

// ConflictError says that installing would switch off hooks that run now, or
// that something else decides core.hooksPath.
type ConflictError struct{ Conflicts []Conflict }

// Error lists the conflicts.
func (e *ConflictError) Error() string {
	var texts []string
	for _, c := range e.Conflicts {
		texts = append(texts, c.Detail)
	}
	return strings.Join(texts, "; ")
}

// RelativeGlobalError says that a configuration for all repositories has a
// relative core.hooksPath, with which every clone of a hostile repository runs
// the hooks it brings.
type RelativeGlobalError struct{ Value, Origin string }

// Error says so.
func (e *RelativeGlobalError) Error() string {
	return fmt.Sprintf("core.hooksPath is the relative %q in %s, for every repository: git runs the hooks that any clone brings along", e.Value, e.Origin)
}

// SourceError says why the tracked directory cannot be a source of hooks.
type SourceError struct {
	Path    string
	Why     string
	Missing bool // there is no such directory
}

// Error says so.
func (e *SourceError) Error() string { return fmt.Sprintf("hooks in %s: %s", e.Path, e.Why) }

// NotInstalledError says that the hooks of a repository are not agentguard's.
type NotInstalledError struct{ Repo string }

// Error says so.
func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("no hooks are installed for %s", e.Repo)
}

// StaleError says that what was approved changed between showing a proposal and
// approving it.
type StaleError struct{ Dir string }

// Error says so.
func (e *StaleError) Error() string {
	return fmt.Sprintf("the approved hooks in %s changed since the difference was shown", e.Dir)
}

// Install points core.hooksPath of the repository at the shims. The first time
// it approves the source as it is; [Propose] shows that beforehand. Later it
// keeps what is approved and mends the rest. Failures leave everything as it was:
// *ConflictError, *RelativeGlobalError, *SourceError.
func Install(o Options) (State, error) { return install(o) }

// Uninstall gives core.hooksPath back its earlier value, unless somebody else
// has changed it since, and removes the shims and copies. That nothing is
// installed is no error.
func Uninstall(o Options) (State, error) { return uninstall(o) }

// Status tells what is so, changing nothing.
func Status(o Options) (State, error) { return status(o) }

// Propose reads the source once: what it returns can be shown and approved, and
// exactly that is approved. Failure: *SourceError.
func Propose(o Options) (*Proposal, error) { return propose(o) }

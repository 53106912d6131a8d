// Package main is the agentguard command: flags in, sentences and exit
// statuses out. Everything it does is package guard's.
//
// Exit statuses: run and shell give the command's own (126, 127 and 128 and
// the signal's number as a shell does), 3 when the command ended with 0 and
// something unapproved is left, 125 when agentguard could not enforce. All
// other commands: 0 clean, 1 findings, 2 usage or policy error, 125 could not.
//
// Does not decide anything and does not stop anything by itself.
package main

import (
	"context"
	"os"
	"runtime/debug"

	_ "agentguard/sandbox/stage" // its init takes over when this process is the inner stage
)

// collectAt is how much the heap may grow before it is collected, in percent: a
// command lives for milliseconds and holds little, so collecting early only
// costs.
const collectAt = 800

func main() {
	debug.SetGCPercent(collectAt)
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

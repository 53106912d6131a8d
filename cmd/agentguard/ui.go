package main

import (
	"os"

	"agentguard/guard"
)

// isTerminal says whether a person could answer on f.
func isTerminal(f *os.File) bool { return f != nil && guard.IsTerminal(f) }

package main

import (
	"io/fs"
	"os"
)

// isTerminal says whether a person could answer on f.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0 && f.Name() != os.DevNull
}

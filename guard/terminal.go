package guard

import (
	"io/fs"
	"os"
)

// IsTerminal says whether a person could read and answer on f. The null device
// is a character device too, and whatever opened it gave it another name.
func IsTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

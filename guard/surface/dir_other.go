//go:build !linux

package surface

import (
	"os"

	"golang.org/x/sys/unix"
)

func openBeneath(root int, path string, flags int) (int, error) {
	return openByComponent(root, path, flags)
}

// list reads the names through the standard library, which hands out raw
// bytes; each is asked for its type.
func (r *dirReader) list(fd int, l *listing) error {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(own), l.dir)
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.add(fd, l, []byte(name), Other, false); err != nil {
			return err
		}
	}
	return nil
}

package watch

import (
	"fmt"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// marker is a file without a name that is watched like the rest. The notice
// of a change to it comes after those of everything before, so its arrival
// says that none is under way.
type marker struct {
	fd   int // -1 when there is none
	path string
}

func newMarker(fs *fsnotify.Watcher) *marker {
	fd, err := openMarker()
	if err != nil {
		return &marker{fd: -1}
	}
	m := &marker{fd: fd, path: fmt.Sprintf("/proc/self/fd/%d", fd)}
	if err := fs.Add(m.path); err != nil {
		m.close()
	}
	return m
}

// touch sends the notice; false when it could not.
func (m *marker) touch() bool { return m.fd >= 0 && unix.Fchmod(m.fd, 0o600) == nil }

func (m *marker) close() {
	if m.fd >= 0 {
		_ = unix.Close(m.fd) // memory only: nothing is lost
		m.fd = -1
	}
}

package watch

import "golang.org/x/sys/unix"

// openMarker opens a file that has no name and is in memory only.
func openMarker() (fd int, err error) {
	return unix.MemfdCreate("agentguard-watch", unix.MFD_CLOEXEC)
}

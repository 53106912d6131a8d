package guard

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"agentguard/sandbox"
)

// ownersCache is where caches are kept for an owner who cannot look into
// root's own directories. Only root writes it, so no link in it is another's.
const ownersCache = "/var/cache/agentguard"

// reachable says whether the mode bits let as read path, or the nearest
// directory above it that is there.
func reachable(path string, as *sandbox.Identity) bool {
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case err != nil && dir == path && dir != "/":
			path = filepath.Dir(path) // not there yet
		case err != nil:
			return false
		case dir == path && !permits(info, as, 4) && info.Mode().IsRegular():
			return false
		case info.IsDir() && !permits(info, as, 1):
			return false
		}
		if dir == "/" {
			return true
		}
	}
}

// permits says whether info's mode bits give as a right: 4 to read, 1 to
// execute or to pass through.
func permits(info fs.FileInfo, as *sandbox.Identity, right fs.FileMode) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return false
	case st.Uid == as.UID:
		right <<= 6
	case st.Gid == as.GID:
		right <<= 3
	}
	return info.Mode()&right != 0
}

// onlyReachable leaves out what the command's user could not open on the host.
func onlyReachable(paths []string, as *sandbox.Identity) []string {
	if as == nil {
		return paths
	}
	return slices.DeleteFunc(paths, func(path string) bool { return !reachable(path, as) })
}

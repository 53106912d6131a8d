package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Host is the machine's own file tree as a [HostFS].
type Host struct{}

// Lstat says what a name is, without following it.
func (Host) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }

// Readlink returns a link's text.
func (Host) Readlink(path string) (string, error) { return os.Readlink(path) }

// Real returns path with every symbolic link resolved.
func (Host) Real(path string) (string, error) { return filepath.EvalSymlinks(path) }

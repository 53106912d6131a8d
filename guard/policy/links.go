package policy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// destination is where a path leads.
type destination struct {
	real    string // links of the part that exists followed
	missing bool   // nothing is there
	err     error
}

// links remembers where paths lead, each directory being looked at once.
type links map[string]destination

// resolve follows the links in a clean absolute path. What lies below
// something that does not exist is taken as written; a link that leads nowhere
// is an error, because whoever makes its target decides what is granted.
func (l links) resolve(path string) destination {
	if path == "/" {
		return destination{real: "/"}
	}
	if t, ok := l[path]; ok {
		return t
	}
	t := follow(l.resolve(filepath.Dir(path)), filepath.Base(path))
	l[path] = t
	return t
}

// follow goes from a resolved directory to one name in it.
func follow(dir destination, name string) destination {
	if dir.err != nil {
		return dir
	}
	at := destination{real: filepath.Join(dir.real, name), missing: dir.missing}
	if at.missing {
		return at
	}
	info, err := os.Lstat(at.real)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		at.missing = true
	case err != nil:
		at.err = bare(err)
	case info.Mode().Type() == fs.ModeSymlink:
		at.real, err = filepath.EvalSymlinks(at.real)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			err = errors.New("a link in it leads nowhere")
		}
		if err != nil {
			at = destination{err: bare(err)}
		}
	}
	return at
}

// bare takes the path out of an error whose message names it already.
func bare(err error) error {
	if perr, ok := errors.AsType[*fs.PathError](err); ok {
		return perr.Err
	}
	return err
}

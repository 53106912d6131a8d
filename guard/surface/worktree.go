package surface

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNotRegular says that a name is neither a regular file nor a link, and
// was not opened.
var ErrNotRegular = errors.New("not a regular file")

// WorkTree returns the tree on disk below dir. It holds on to the directory
// it was given: renaming that, or its parents, does not redirect the tree. No
// symbolic link below dir is ever followed, and no socket, FIFO or device is
// ever opened.
func WorkTree(dir string) (Tree, error) {
	root, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the work tree: %w", err)
	}
	return &workTree{root: root}, nil
}

type workTree struct {
	root *os.File // closed by its cleanup when the tree is gone
}

// Lstat implements [Tree].
func (t *workTree) Lstat(path string) (WalkEntry, error) {
	defer runtime.KeepAlive(t.root)
	if err := checkPath(path); err != nil {
		return WalkEntry{}, err
	}
	parent, base := int(t.root.Fd()), path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		fd, err := openBeneath(parent, path[:i], dirFlags)
		if err != nil {
			return WalkEntry{}, pathError("looking at", path, err)
		}
		defer unix.Close(fd)
		parent, base = fd, path[i+1:]
	}
	e, err := statAt(parent, base)
	if err != nil {
		return WalkEntry{}, pathError("looking at", path, err)
	}
	e.Path = path
	return e, nil
}

// statAt describes one name. The text of a link and its identity come from
// two calls, so the identity is asked for again.
func statAt(dir int, base string) (WalkEntry, error) {
	const tries = 8
	var buf []byte
	for range tries {
		var st, again unix.Stat_t
		if err := fstatat(dir, base, &st); err != nil {
			return WalkEntry{}, err
		}
		e := entryOf(&st)
		if e.Type != Symlink {
			return e, nil
		}
		if buf == nil {
			buf = make([]byte, 1<<16)
		}
		n, err := unix.Readlinkat(dir, base, buf)
		if err == unix.EINVAL {
			continue
		}
		if err != nil {
			return WalkEntry{}, err
		}
		if err := fstatat(dir, base, &again); err != nil {
			return WalkEntry{}, err
		}
		if st.Ino == again.Ino && st.Dev == again.Dev && st.Mode == again.Mode {
			e.Link = string(buf[:n])
			return e, nil
		}
	}
	return WalkEntry{}, errors.New("it keeps changing")
}

func fstatat(dir int, base string, st *unix.Stat_t) error {
	return retry(func() error { return unix.Fstatat(dir, base, st, unix.AT_SYMLINK_NOFOLLOW) })
}

// retry calls again when a signal came in between.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func entryOf(st *unix.Stat_t) WalkEntry {
	e := WalkEntry{
		Perm:  uint32(st.Mode) & 0o7777,
		Size:  st.Size,
		Nlink: uint64(st.Nlink),
		Dev:   uint64(st.Dev),
		Ino:   st.Ino,
	}
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFREG:
		e.Type = Regular
	case unix.S_IFDIR:
		e.Type = Dir
	case unix.S_IFLNK:
		e.Type = Symlink
	}
	e.Mode = gitMode(e.Type, e.Perm)
	return e
}

// Open implements [Tree]. The type is asked for before opening, because
// opening a device or FIFO has effects, and again on what was opened.
func (t *workTree) Open(path string) (io.ReadCloser, WalkEntry, error) {
	defer runtime.KeepAlive(t.root)
	e, err := t.Lstat(path)
	if err != nil {
		return nil, WalkEntry{}, err
	}
	switch e.Type {
	case Symlink:
		return io.NopCloser(strings.NewReader(e.Link)), e, nil
	case Regular:
	default:
		return nil, WalkEntry{}, fmt.Errorf("opening %q: %w", path, ErrNotRegular)
	}
	fd, err := openBeneath(int(t.root.Fd()), path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, WalkEntry{}, pathError("opening", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, WalkEntry{}, pathError("opening", path, err)
	}
	e = entryOf(&st)
	e.Path = path
	if e.Type != Regular {
		unix.Close(fd)
		return nil, WalkEntry{}, fmt.Errorf("opening %q: %w", path, ErrNotRegular)
	}
	return os.NewFile(uintptr(fd), path), e, nil
}

// dirFlags opens a directory for reading it and for what lies in it.
const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY

// openByComponent opens path below root, a component at a time, so that no
// link in it is followed.
func openByComponent(root int, path string, flags int) (int, error) {
	dir := root
	for {
		part, rest, more := strings.Cut(path, "/")
		want := flags
		if more {
			want = dirFlags
		}
		fd, err := openOne(dir, part, want)
		if dir != root {
			unix.Close(dir)
		}
		if err != nil || !more {
			return fd, err
		}
		dir, path = fd, rest
	}
}

func openOne(dir int, part string, flags int) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(dir, part, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// checkPath refuses what is no path below the root, whoever made it up.
func checkPath(path string) error {
	if strings.IndexByte(path, 0) >= 0 {
		return fmt.Errorf("path %q: has a NUL byte", path)
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("path %q: not a clean relative path", path)
		}
	}
	return nil
}

// pathError wraps err; a name that is absent, or only reached through a link
// or below a file, is no entry of the tree.
func pathError(verb, path string, err error) error {
	switch err {
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
		return fmt.Errorf("%s %q: %w", verb, path, ErrNotExist)
	}
	return &fs.PathError{Op: verb, Path: path, Err: err}
}

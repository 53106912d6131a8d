package git

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Limits of what is read whole. They only bound memory; git's own files of
// these kinds are far smaller.
const (
	maxPointer = 64 << 10  // gitfile, commondir, gitdir, one loose ref
	maxConfig  = 8 << 20   // one configuration file
	maxRefs    = 256 << 20 // packed-refs
	maxIndex   = 1 << 30   // index
)

// openIn opens the regular file name below root. Root keeps the path inside
// it; the file must be what name itself says, no symbolic link. The link is
// looked for after the open and compared by identity, so that an exchange in
// between is seen too.
func openIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		// A dangling or escaping link must be told as a link, not as absent.
		if li, lerr := root.Lstat(name); lerr == nil && li.Mode()&fs.ModeSymlink != 0 {
			return nil, nil, linkError(root, name)
		}
		return nil, nil, fmt.Errorf("opening %q in %q: %w", name, root.Name(), underlying(err))
	}
	fi, err := f.Stat()
	if err == nil {
		err = checkRegular(root, name, fi)
	}
	if err != nil {
		_ = f.Close() // only read
		return nil, nil, err
	}
	return f, fi, nil
}

func checkRegular(root *os.Root, name string, opened fs.FileInfo) error {
	li, err := root.Lstat(name)
	if err != nil {
		return fmt.Errorf("looking at %q in %q: %w", name, root.Name(), underlying(err))
	}
	if li.Mode()&fs.ModeSymlink != 0 {
		return linkError(root, name)
	}
	if !os.SameFile(li, opened) {
		return &CorruptError{What: join(root, name), Why: "it was exchanged while it was opened"}
	}
	if !opened.Mode().IsRegular() {
		return &CorruptError{What: join(root, name), Why: "it is not a regular file"}
	}
	return nil
}

func linkError(root *os.Root, name string) error {
	target, _ := root.Readlink(name) // only told
	return &PointerError{File: join(root, name), Target: target, Why: "it is a symbolic link, which git never makes there"}
}

func join(root *os.Root, name string) string { return root.Name() + "/" + name }

// underlying drops the path that os adds, which is relative to the root.
func underlying(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// readIn reads the regular file name below root, at most limit bytes of it.
func readIn(root *os.Root, name string, limit int64) ([]byte, error) {
	f, fi, err := openIn(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, fi, join(root, name), limit)
}

func readAll(f *os.File, fi fs.FileInfo, name string, limit int64) ([]byte, error) {
	if fi.Size() > limit {
		return nil, &CorruptError{What: name, Why: fmt.Sprintf("it has %d bytes, more than %d", fi.Size(), limit)}
	}
	data := make([]byte, fi.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	return data, nil
}

// openRegular opens a regular file by path; the last component must be no
// symbolic link.
func openRegular(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		target, _ := os.Readlink(file) // only told
		return nil, &PointerError{File: file, Target: target, Why: "it is a symbolic link"}
	}
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", file, underlying(err))
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &CorruptError{What: file, Why: "it is not a regular file"}
	}
	if err != nil {
		_ = f.Close() // only read
		return nil, err
	}
	return f, nil
}

// readFile reads a regular file by path. Links are followed when follow is
// set: the user's own files may be links, a repository's may not.
func readFile(file string, limit int64, follow bool) ([]byte, error) {
	var f *os.File
	var err error
	if follow {
		f, err = os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	} else {
		f, err = openRegular(file)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, &CorruptError{What: file, Why: "it is not a regular file"}
	}
	return readAll(f, fi, file, limit)
}

func isNotExist(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

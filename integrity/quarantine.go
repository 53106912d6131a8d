package integrity

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// quarantineName is the name of the moved thing in its directory of the
// quarantine; beside it a file "path" says where it was.
const quarantineName = "content"

// quarantine moves what is at s, whatever it is, to a directory of its own
// below r.Quarantine and returns where it is. ENOENT says that nothing was.
func (r Restorer) quarantine(s spot, path string) (string, error) {
	if err := os.MkdirAll(r.Quarantine, 0o700); err != nil {
		return "", fmt.Errorf("making the quarantine: %w", err)
	}
	dir, err := os.MkdirTemp(r.Quarantine, time.Now().UTC().Format("20060102T150405Z-"))
	if err != nil {
		return "", fmt.Errorf("making the quarantine: %w", err)
	}
	to, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("opening the quarantine: %w", err)
	}
	defer unix.Close(to)
	err = unix.Renameat(s.fd, s.name, to, quarantineName)
	if errors.Is(err, unix.EXDEV) {
		err = carry(s, spot{to, quarantineName})
	}
	if err != nil {
		return "", fmt.Errorf("moving to quarantine %q: %w", dir, err)
	}
	if err := writeAtomic(filepath.Join(dir, "path"), []byte(quote(path)+"\n")); err != nil {
		return "", fmt.Errorf("naming what is in quarantine: %w", err)
	}
	return filepath.Join(dir, quarantineName), nil
}

// carry moves a file, link or directory to another file system, following
// nothing. Each name is removed after it was copied and no other is, so what
// somebody adds meanwhile stays, with an error.
func carry(from, to spot) error {
	st, err := from.stat()
	if err != nil {
		return err
	}
	if st == nil {
		return unix.ENOENT
	}
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFDIR:
		return carryDir(from, to)
	case unix.S_IFREG:
		err = copyFile(from, to, uint32(st.Mode)&0o777)
	case unix.S_IFLNK:
		var text string
		if text, err = from.readlink(); err == nil {
			err = unix.Symlinkat(text, to.fd, to.name)
		}
	case unix.S_IFIFO, unix.S_IFSOCK:
		// It has no content; that it was there is what the name says.
		err = copyBytes(nil, to, 0o600)
	default:
		err = fmt.Errorf("%q: %w", from.name, ErrCannotRestore)
	}
	if err != nil {
		return err
	}
	return unix.Unlinkat(from.fd, from.name, 0)
}

func copyFile(from, to spot, perm uint32) error {
	src, err := from.open()
	if err != nil {
		return err
	}
	defer src.Close() // read only: nothing is lost
	return copyBytes(src, to, perm)
}

// copyBytes makes the file to of what src gives; nil gives nothing.
func copyBytes(src io.Reader, to spot, perm uint32) error {
	fd, err := unix.Openat(to.fd, to.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	dst := os.NewFile(uintptr(fd), to.name)
	if src != nil {
		_, err = io.Copy(dst, src)
	}
	if err == nil {
		err = unix.Fchmod(fd, perm)
	}
	if err == nil {
		err = dst.Sync()
	}
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	return err
}

func carryDir(from, to spot) error {
	if err := unix.Mkdirat(to.fd, to.name, 0o700); err != nil {
		return err
	}
	dst, err := stepInto(to.fd, to.name, false)
	if err != nil {
		return err
	}
	defer unix.Close(dst)
	if err := eachIn(from, func(child spot) error { return carry(child, spot{dst, child.name}) }); err != nil {
		return err
	}
	return unix.Unlinkat(from.fd, from.name, unix.AT_REMOVEDIR)
}

// eachIn calls fn for every name of the directory at s.
func eachIn(s spot, fn func(spot) error) error {
	fd, err := stepInto(s.fd, s.name, false)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), s.name)
	defer dir.Close() // read only: nothing is lost
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := fn(spot{fd, name}); err != nil {
			return err
		}
	}
	return nil
}

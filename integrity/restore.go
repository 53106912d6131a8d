package integrity

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrCannotRestore says that a surface is of a kind that is not put back: a
// submodule's commit, a device.
var ErrCannotRestore = errors.New("not a kind that can be restored")

// ParentError says that a directory of a surface's path is something else, for
// example a symbolic link that would lead the restore elsewhere.
type ParentError struct {
	Path   string // of the surface
	Parent string // the component that is no directory
	Err    error
}

func (e *ParentError) Error() string {
	return fmt.Sprintf("restoring %q: %q is no directory: %v", e.Path, e.Parent, e.Err)
}

// Unwrap returns the cause.
func (e *ParentError) Unwrap() error { return e.Err }

// Restorer puts surfaces of one work tree back as a manifest says.
type Restorer struct {
	Root       string // of the work tree
	Backup     Backup
	Quarantine string // directory for what is in the way; made with mode 0700 when needed
}

// Restored says what a restore did.
type Restored struct {
	File
	MovedTo string // where what was there is now; "" when nothing was or it was right already
}

// Restore makes the work tree's file what f says, mode included; when f is
// Absent it takes away what is there. Whatever was there is moved to the
// quarantine and never deleted. No symbolic link is followed, neither in the
// path's directories nor at its end, and a name is never there half-written.
func (r Restorer) Restore(f File) (Restored, error) {
	done := Restored{File: f}
	data, err := r.content(f)
	if err != nil {
		return done, err
	}
	parent, name, err := r.openParent(f)
	if errors.Is(err, unix.ENOENT) && f.Kind == Absent {
		return done, nil // not even its directory is there
	}
	if err != nil {
		return done, err
	}
	defer unix.Close(parent)
	s := spot{fd: parent, name: name}
	now, err := s.stat()
	if err != nil {
		return done, fmt.Errorf("restoring %q: %w", f.Path, err)
	}
	if s.holds(now, f, data) {
		return done, nil
	}
	temp, err := s.make(f, data, now)
	if err == nil {
		done.MovedTo, err = r.exchange(s, temp, f)
	}
	if err != nil {
		return done, fmt.Errorf("restoring %q: %w", f.Path, err)
	}
	return done, nil
}

// content returns the bytes of f before anything is touched.
func (r Restorer) content(f File) ([]byte, error) {
	switch f.Kind {
	case Regular, Link:
		return r.Backup.read(f)
	case Absent, Dir:
		return nil, nil
	}
	return nil, fmt.Errorf("restoring %q: %w", f.Path, ErrCannotRestore)
}

// openParent opens the directory of f's path component by component, so that
// no link is followed, and makes missing ones when f is to be there.
func (r Restorer) openParent(f File) (fd int, name string, err error) {
	parts := strings.Split(f.Path, "/")
	for _, p := range parts {
		if p == "" || p == "." || p == ".." || strings.IndexByte(p, 0) >= 0 {
			return -1, "", fmt.Errorf("restoring %q: not a path inside a tree", f.Path)
		}
	}
	fd, err = unix.Open(r.Root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, "", fmt.Errorf("restoring %q: opening %q: %w", f.Path, r.Root, err)
	}
	for i, p := range parts[:len(parts)-1] {
		next, err := stepInto(fd, p, f.Kind != Absent)
		_ = unix.Close(fd) // a directory's descriptor: closing loses nothing
		if err != nil {
			return -1, "", &ParentError{Path: f.Path, Parent: strings.Join(parts[:i+1], "/"), Err: err}
		}
		fd = next
	}
	return fd, parts[len(parts)-1], nil
}

func stepInto(fd int, name string, create bool) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	next, err := unix.Openat(fd, name, flags, 0)
	if !create || !errors.Is(err, unix.ENOENT) {
		return next, err
	}
	if err := unix.Mkdirat(fd, name, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	if next, err = unix.Openat(fd, name, flags, 0); err != nil {
		return -1, err
	}
	if err := own(fd, next); err != nil {
		_ = unix.Close(next) // the error that matters is the one returned
		return -1, err
	}
	return next, nil
}

// own gives what root made to the owner of the directory it was made in.
func own(dir, fd int) error {
	if unix.Geteuid() != 0 {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return err
	}
	return unix.Fchown(fd, int(st.Uid), int(st.Gid))
}

// exchange puts temp ("" for nothing) in the place of what is at s, which goes
// to the quarantine. With the kernel's exchange the name is never missing.
func (r Restorer) exchange(s spot, temp string, f File) (movedTo string, err error) {
	if temp != "" {
		err := renameNoReplace(s.fd, temp, s.name)
		if err == nil {
			return "", nil
		}
		if errors.Is(err, unix.EEXIST) {
			err = renameExchange(s.fd, temp, s.name)
		}
		if err == nil {
			return r.quarantine(spot{s.fd, temp}, f.Path)
		}
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.ENOTSUP) {
			return "", err
		}
	}
	// The file system cannot exchange, or nothing is to be there: away first.
	aside := tempName()
	err = unix.Renameat(s.fd, s.name, s.fd, aside)
	if err == nil {
		movedTo, err = r.quarantine(spot{s.fd, aside}, f.Path)
	}
	if errors.Is(err, unix.ENOENT) {
		err = nil
	}
	if err == nil && temp != "" {
		err = unix.Renameat(s.fd, temp, s.fd, s.name)
	}
	return movedTo, err
}

// tempName returns a name that nobody guesses for what is not yet, or no
// longer, in its place.
func tempName() string { return ".agentguard-restore-" + rand.Text() }

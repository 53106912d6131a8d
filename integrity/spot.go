package integrity

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// spot is one name in an open directory: what is done to it cannot be
// redirected by renaming or linking the directories above.
type spot struct {
	fd   int
	name string
}

// stat returns nil when nothing is there.
func (s spot) stat() (*unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstatat(s.fd, s.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	return &st, err
}

// open opens the regular file at s for reading and nothing else: a FIFO put
// there meanwhile does not block it.
func (s spot) open() (*os.File, error) {
	fd, err := unix.Openat(s.fd, s.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errors.New("not a regular file")
	}
	if err != nil {
		_ = unix.Close(fd) // the error that matters is the one returned
		return nil, err
	}
	return os.NewFile(uintptr(fd), s.name), nil
}

func (s spot) readlink() (string, error) {
	buf := make([]byte, 64<<10) // longer than any link's text
	n, err := unix.Readlinkat(s.fd, s.name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// holds reports whether what is there is already what f says.
func (s spot) holds(now *unix.Stat_t, f File, data []byte) bool {
	if now == nil {
		return f.Kind == Absent
	}
	switch kind := uint32(now.Mode) & unix.S_IFMT; {
	case f.Kind == Dir:
		return kind == unix.S_IFDIR
	case f.Kind == Link && kind == unix.S_IFLNK:
		text, err := s.readlink()
		return err == nil && text == string(data)
	case f.Kind == Regular && kind == unix.S_IFREG && safe(now, f):
		file, err := s.open()
		if err != nil {
			return false
		}
		defer file.Close() // read only: nothing is lost
		h := sha256.New()
		_, err = io.Copy(h, file)
		return err == nil && Sum(h.Sum(nil)) == f.Whole
	}
	return false
}

// safe reports whether a file's permissions are right and nobody holds a second
// name for it that was not there.
func safe(now *unix.Stat_t, f File) bool {
	perm := uint32(now.Mode) & 0o7777
	if f.Perm != 0 && perm != f.Perm || perm&0o7000 != 0 || (perm&0o111 != 0) != (f.Mode&0o111 != 0) {
		return false
	}
	return uint64(now.Nlink) <= max(1, f.Nlink)
}

// make makes what f says under a temporary name beside s and returns the name,
// "" for an Absent one. Nothing is left when it fails.
func (s spot) make(f File, data []byte, now *unix.Stat_t) (string, error) {
	temp := tempName()
	var err error
	switch f.Kind {
	case Absent:
		return "", nil
	case Dir:
		err = s.makeDir(temp)
	case Link:
		if err = unix.Symlinkat(string(data), s.fd, temp); err == nil && unix.Geteuid() == 0 {
			err = s.ownLink(temp)
		}
	case Regular:
		err = s.makeFile(temp, data, permOf(f, now), now)
	default:
		return "", ErrCannotRestore
	}
	if err != nil {
		_ = unix.Unlinkat(s.fd, temp, 0) // the error that matters is the one returned
		return "", err
	}
	return temp, nil
}

func (s spot) makeDir(temp string) error {
	if err := unix.Mkdirat(s.fd, temp, 0o755); err != nil {
		return err
	}
	fd, err := unix.Openat(s.fd, temp, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		err = own(s.fd, fd)
		_ = unix.Close(fd) // a directory's descriptor: closing loses nothing
	}
	if err != nil {
		_ = unix.Unlinkat(s.fd, temp, unix.AT_REMOVEDIR) // the error that matters is the one returned
	}
	return err
}

func (s spot) ownLink(temp string) error {
	var st unix.Stat_t
	if err := unix.Fstat(s.fd, &st); err != nil {
		return err
	}
	return unix.Fchownat(s.fd, temp, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW)
}

func (s spot) makeFile(temp string, data []byte, perm uint32, now *unix.Stat_t) error {
	fd, err := unix.Openat(s.fd, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), temp)
	_, err = file.Write(data)
	if err == nil && unix.Geteuid() == 0 && now != nil {
		err = unix.Fchown(fd, int(now.Uid), int(now.Gid))
	} else if err == nil {
		err = own(s.fd, fd)
	}
	if err == nil {
		err = unix.Fchmod(fd, perm)
	}
	if err == nil {
		err = file.Sync()
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// permOf returns the permissions to restore. What a manifest read from text
// does not say is taken from the file in place, less what lets others write.
func permOf(f File, now *unix.Stat_t) uint32 {
	perm := f.Perm
	if perm == 0 && now != nil && uint32(now.Mode)&unix.S_IFMT == unix.S_IFREG {
		perm = uint32(now.Mode) & 0o666 &^ 0o022
	}
	if perm == 0 {
		perm = 0o644
	}
	if perm &= 0o777; f.Mode&0o111 == 0 {
		return perm &^ 0o111
	}
	return perm | perm&0o444>>2
}

package surface

import (
	"bytes"
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// openBeneath opens path below root without following a link. Kernels before
// 5.6, and filters that do not know openat2, get a call for each component.
func openBeneath(root int, path string, flags int) (fd int, err error) {
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_NOFOLLOW | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	}
	err = retry(func() error {
		fd, err = unix.Openat2(root, path, &how)
		return err
	})
	switch err {
	case unix.ENOSYS, unix.EPERM, unix.ENAMETOOLONG, unix.EAGAIN:
		return openByComponent(root, path, flags)
	}
	return fd, err
}

// The layout of struct linux_dirent64.
const (
	direntReclen = 16
	direntType   = 18
	direntName   = 19
	direntBuffer = 64 << 10
)

// list reads all names of the directory, type included, without a stat.
func (r *dirReader) list(fd int, l *listing) error {
	if r.buf == nil {
		r.buf = make([]byte, direntBuffer)
	}
	for {
		n, err := unix.Getdents(fd, r.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		for buf := r.buf[:n]; len(buf) > 0; {
			if len(buf) < direntName {
				return errors.New("malformed directory entry")
			}
			size := int(binary.NativeEndian.Uint16(buf[direntReclen:]))
			if size < direntName || size > len(buf) {
				return errors.New("malformed directory entry")
			}
			name := buf[direntName:size]
			if end := bytes.IndexByte(name, 0); end >= 0 {
				name = name[:end]
			}
			typ, known := direntKind(buf[direntType])
			buf = buf[size:]
			if s := string(name); s == "." || s == ".." {
				continue
			}
			if err := r.add(fd, l, name, typ, known); err != nil {
				return err
			}
		}
	}
}

func direntKind(t byte) (typ Type, known bool) {
	switch t {
	case unix.DT_REG:
		return Regular, true
	case unix.DT_DIR:
		return Dir, true
	case unix.DT_LNK:
		return Symlink, true
	case unix.DT_UNKNOWN:
		return Other, false
	}
	return Other, true
}

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FileName is the policy file's name at the workspace root.
const FileName = ".agentguard.yaml"

// maxSize bounds a policy file: 1 MiB.
const maxSize = 1 << 20

// UserFile returns where the user's own policy is: below $XDG_CONFIG_HOME when
// that is an absolute path, else below ~/.config, or "" without a home.
func UserFile(xdgConfigHome, home string) string {
	switch {
	case filepath.IsAbs(xdgConfigHome):
	case filepath.IsAbs(home):
		xdgConfigHome = filepath.Join(home, ".config")
	default:
		return ""
	}
	return filepath.Join(xdgConfigHome, "agentguard", "config.yaml")
}

// Source is the content of one policy file, read once.
type Source struct {
	Name string // as printed in errors
	Data []byte
}

// SHA256 returns the hash of the bytes in hex.
func (s *Source) SHA256() string {
	sum := sha256.Sum256(s.Data)
	return hex.EncodeToString(sum[:])
}

// ReadSource reads a policy file and names it name in errors. It returns nil
// and no error when nothing is at path. Everything is decided on the open
// descriptor: a link as the last component, a FIFO, a device and a directory
// are errors, and so is more than 1 MiB.
func ReadSource(path, name string) (*Source, error) {
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var data []byte
	if err == nil {
		data, err = readAll(f)
	}
	if err != nil {
		return nil, Errors{{File: name, Msg: err.Error()}}
	}
	return &Source{Name: name, Data: data}, nil
}

// openRegular opens a regular file without following a link and without
// blocking on a FIFO.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, errors.New("is a symbolic link; a policy must be a regular file")
	}
	if err != nil {
		var perr *fs.PathError
		if errors.As(err, &perr) {
			err = perr.Err // the path is in the caller's message
		}
		return nil, fmt.Errorf("cannot be opened: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is not a regular file")
	}
	if err != nil {
		_ = f.Close() // read-only
		return nil, err
	}
	return f, nil
}

func readAll(f *os.File) ([]byte, error) {
	defer f.Close() // read-only
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	if len(data) > maxSize {
		return nil, errors.New("is larger than 1 MiB")
	}
	return data, nil
}

// readOwn reads a file that only this user may have written.
func readOwn(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close() // read-only
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		_ = f.Close() // read-only
		return nil, fmt.Errorf("%q is not this user's alone", path)
	}
	return readAll(f)
}

// writeAtomic puts data at path so that a crash leaves the old state or the
// new one.
func writeAtomic(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".tmp-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error is already told
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

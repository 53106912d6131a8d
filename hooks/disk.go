package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writeFile makes a new file of exactly this mode, on disk when it returns.
func writeFile(name string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode) // not subject to the umask
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	return nil
}

// writeTree makes the directory dir with what t holds. Its directories cannot
// be written to: managers of hooks that install themselves into whatever
// core.hooksPath names fail then and do not replace a shim.
func writeTree(dir string, t tree) error {
	dirs := []string{dir}
	for _, f := range t {
		if f.dir {
			dirs = append(dirs, filepath.Join(dir, filepath.FromSlash(f.path)))
		}
	}
	for _, d := range dirs { // parents sort before children
		if err := os.Mkdir(d, 0o755); err != nil {
			return fmt.Errorf("writing hooks: %w", err)
		}
	}
	for _, f := range t {
		if f.dir {
			continue
		}
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(f.path)), f.data, f.mode()); err != nil {
			return err
		}
	}
	for _, d := range slices.Backward(dirs) {
		if err := os.Chmod(d, 0o555); err != nil {
			return fmt.Errorf("writing hooks: %w", err)
		}
		if err := syncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes dir and what is below it, also from directories that
// cannot be written to. That there is none is no error.
func removeTree(dir string) error {
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(name, 0o700)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("removing %q: %w", dir, err)
	}
	return nil
}

// syncDir makes the names in dir last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("writing %q: %w", dir, err)
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("writing %q: %w", dir, err)
	}
	return nil
}

// within tells whether name is dir or below it. Both are cleaned and absolute.
func within(dir, name string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

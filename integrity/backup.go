package integrity

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"agentguard/guard/surface"
)

// DefaultBackupLimit is how much one [Backup.Keep] stores.
const DefaultBackupLimit = 64 << 20 // bytes

// Backup keeps the content of surfaces, named by their SHA-256, so that a
// surface can be put back as a manifest says it was.
type Backup struct {
	Dir   string // in the user's state directory; made with mode 0700 when needed
	Limit int64  // bytes one Keep may store; 0 is DefaultBackupLimit
}

// ErrNotKept says that the backup does not hold the content asked for.
var ErrNotKept = errors.New("its content was not kept")

// Keep stores the content of every file and link of m, the manifest of t, but
// for those that are only noted. What is stored already costs one stat. It
// returns the paths that it could not store because the limit was reached or
// because they changed since m was taken: those cannot be restored, and
// whoever starts a run says so.
func (b Backup) Keep(t surface.Tree, m *Manifest) (left []string, err error) {
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the backup directory: %w", err)
	}
	limit := b.Limit
	if limit == 0 {
		limit = DefaultBackupLimit
	}
	for _, f := range m.Files() {
		if f.Kind != Regular && f.Kind != Link || f.Protection == surface.Note || b.Holds(f) {
			continue
		}
		n, err := b.keep(t, f, limit)
		if err != nil {
			return left, fmt.Errorf("keeping %q: %w", f.Path, err)
		}
		if n < 0 {
			left = append(left, f.Path)
			continue
		}
		limit -= n
	}
	return left, nil
}

// keep stores one content and returns its length, -1 when it is longer than
// limit or not the one f names.
func (b Backup) keep(t surface.Tree, f File, limit int64) (int64, error) {
	if f.Size > limit {
		return -1, nil
	}
	r, _, err := t.Open(f.Path)
	if errors.Is(err, surface.ErrNotExist) || errors.Is(err, surface.ErrNotRegular) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	defer r.Close() // read only: nothing is lost
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return -1, err
	}
	if int64(len(data)) > limit || sha256.Sum256(data) != f.Whole {
		return -1, nil
	}
	return int64(len(data)), writeAtomic(b.blob(f.Whole), data)
}

// Prune removes the content that none of kept names and that is older than
// before. It returns how many were removed.
func (b Backup) Prune(before time.Time, kept ...*Manifest) (int, error) {
	named := map[string]bool{}
	for _, m := range kept {
		for _, f := range m.Files() {
			named[f.Whole.String()] = true
		}
	}
	list, err := os.ReadDir(b.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("listing the backup: %w", err)
	}
	n := 0
	for _, e := range list {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || named[e.Name()] || !info.ModTime().Before(before) {
			continue
		}
		if err := os.Remove(filepath.Join(b.Dir, e.Name())); err != nil {
			return n, fmt.Errorf("pruning the backup: %w", err)
		}
		n++
	}
	return n, nil
}

// Holds reports whether f could be restored.
func (b Backup) Holds(f File) bool {
	switch f.Kind {
	case Regular, Link:
		_, err := os.Lstat(b.blob(f.Whole))
		return err == nil
	}
	return f.Kind == Absent || f.Kind == Dir
}

// read returns the content of f, checked against its sum.
func (b Backup) read(f File) ([]byte, error) {
	data, err := os.ReadFile(b.blob(f.Whole))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%q: %w", f.Path, ErrNotKept)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the backup of %q: %w", f.Path, err)
	}
	if sha256.Sum256(data) != f.Whole {
		return nil, fmt.Errorf("the backup of %q is damaged: %w", f.Path, ErrNotKept)
	}
	return data, nil
}

func (b Backup) blob(s Sum) string { return filepath.Join(b.Dir, s.String()) }

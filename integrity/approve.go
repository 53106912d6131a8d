package integrity

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentguard/guard/surface"
)

// Approval is a recorded decision that one state of one surface of one
// repository is wanted. Kind Absent approves that it is gone.
type Approval struct {
	Repo  string    `json:"repo"`
	Path  string    `json:"path"` // quoted as in a manifest, for JSON holds no raw bytes
	Kind  string    `json:"kind"`
	Mode  uint32    `json:"mode"`
	Whole string    `json:"whole"`
	Part  string    `json:"part"`
	When  time.Time `json:"when"`
}

// Store keeps approvals, one file each, so that two processes approving at
// once lose nothing and a crash leaves either the whole record or none.
type Store struct {
	Dir string // in the user's state directory; made with mode 0700 when needed
}

// Approve records that f is wanted in the repository repo.
func (s Store) Approve(repo string, f File, when time.Time) error {
	a := Approval{Repo: repo, Path: quote(f.Path), Kind: f.Kind.String(), Mode: f.Mode,
		Whole: f.Whole.String(), Part: f.Part.String(), When: when.UTC().Round(0)}
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("approving %q: %w", f.Path, err)
	}
	if err := writeAtomic(s.file(repo, f), append(data, '\n')); err != nil {
		return fmt.Errorf("approving %q: %w", f.Path, err)
	}
	return nil
}

// Approved reports whether f is wanted as it is. Where f's protection is not
// Freeze, an approval of the same executable part is enough. A record that
// cannot be read is an error and no approval.
func (s Store) Approved(repo string, f File) (bool, error) {
	dir := filepath.Join(s.Dir, hashName(repo))
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("reading approvals of %q: %w", f.Path, err)
	}
	prefix := hashName(f.Path) + "-"
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), prefix) {
			continue
		}
		a, err := readApproval(filepath.Join(dir, n.Name()))
		if err != nil {
			return false, err
		}
		if a.covers(repo, f) {
			return true, nil
		}
	}
	return false, nil
}

// covers compares what the record says and not what its file is called, so a
// file moved to another repository's directory approves nothing there.
func (a Approval) covers(repo string, f File) bool {
	if a.Repo != repo || a.Path != quote(f.Path) || a.Kind != f.Kind.String() || a.Mode != f.Mode {
		return false
	}
	if a.Whole == f.Whole.String() && a.Part == f.Part.String() {
		return true
	}
	return f.Protection != surface.Freeze && f.Kind == Regular && a.Part == f.Part.String()
}

// List returns the approvals of a repository, sorted by path, then time.
func (s Store) List(repo string) ([]Approval, error) {
	dir := filepath.Join(s.Dir, hashName(repo))
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing approvals: %w", err)
	}
	var out []Approval
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".json") {
			continue // a temporary file of a writer that crashed
		}
		a, err := readApproval(filepath.Join(dir, n.Name()))
		if err != nil {
			return nil, err
		}
		if a.Repo == repo {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b Approval) int {
		if a.Path != b.Path {
			return strings.Compare(a.Path, b.Path)
		}
		return a.When.Compare(b.When)
	})
	return out, nil
}

// Revoke takes back the approval of f; there need not be one.
func (s Store) Revoke(repo string, f File) error {
	if err := os.Remove(s.file(repo, f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("revoking %q: %w", f.Path, err)
	}
	return nil
}

func (s Store) file(repo string, f File) string {
	state := hashName(fmt.Sprintf("%s %o %s %s", f.Kind, f.Mode, f.Whole, f.Part))
	return filepath.Join(s.Dir, hashName(repo), hashName(f.Path)+"-"+state+".json")
}

// hashName makes a file name of any string.
func hashName(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

func readApproval(name string) (Approval, error) {
	var a Approval
	data, err := os.ReadFile(name)
	if err != nil {
		return a, fmt.Errorf("reading approval: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil {
		return a, fmt.Errorf("reading approval %s: %w", name, err)
	}
	if dec.More() {
		return a, fmt.Errorf("reading approval %s: more than one record", name)
	}
	return a, nil
}

// writeAtomic writes data to a temporary file beside name, 0600, and renames
// it, so that name is never there half.
func writeAtomic(name string, data []byte) error {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".tmp-")
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
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error that matters is the one returned
	}
	return err
}

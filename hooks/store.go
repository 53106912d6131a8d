package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Names below a store's directory.
const (
	recordName  = "record.json"
	lockName    = "lock"
	currentName = "current" // symbolic link to the version in force
	copyName    = "copy"    // in a version: what the user approved
	shimsName   = "shims"   // in a version: what git runs
	versionMark = "v-"      // versions are named by their digest
	unfinished  = "tmp-"    // what a crash left behind
)

// store is the state of one repository's hooks. A version is written once, as
// a whole, and never changed; the link says which one is in force.
type store struct{ dir string }

// record is what Uninstall needs to know.
type record struct {
	Version   int     `json:"version"`
	CommonDir string  `json:"common_dir"`
	Ino       uint64  `json:"ino"` // of CommonDir: another clone at the same path is another repository
	Source    string  `json:"source"`
	Previous  *string `json:"previous"` // core.hooksPath of the repository's configuration before, absent when it had none
}

// storeOf returns where the state of a repository is, without making it.
func storeOf(stateDir, commonDir string) store {
	sum := sha256.Sum256([]byte(commonDir))
	return store{filepath.Join(stateDir, "hooks", hex.EncodeToString(sum[:8]))}
}

// hooksPath is the value of core.hooksPath. It goes through the link, so that
// an approval changes no configuration.
func (s store) hooksPath() string { return filepath.Join(s.dir, currentName, shimsName) }

// lock makes the directory and keeps others out until the returned function is
// called.
func (s store) lock() (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(s.dir), 0o700); err != nil {
		return nil, fmt.Errorf("making the hooks' state directory: %w", err)
	}
	// Others may look: a command that root runs as another user has to.
	if err := os.Mkdir(s.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making the hooks' state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(s.dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the hooks' state: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("locking %q: %w", f.Name(), err)
	}
	return func() { _ = f.Close() }, nil // closing unlocks; nothing was written
}

// load returns the record for the repository, nil when there is none or it is
// of a repository that lay at the same path before.
func (s store) load(ino uint64) (*record, error) {
	name := filepath.Join(s.dir, recordName)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the hooks' record: %w", err)
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	if r.Version != 1 {
		return nil, fmt.Errorf("reading %q: version %d is not known here", name, r.Version)
	}
	if r.Ino != ino {
		return nil, nil
	}
	return &r, nil
}

func (s store) save(r record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the hooks' record: %w", err)
	}
	tmp := filepath.Join(s.dir, unfinished+recordName)
	if err := writeFile(tmp, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return s.put(tmp, recordName)
}

// put renames tmp to name in the store, for good.
func (s store) put(tmp, name string) error {
	if err := os.Rename(tmp, filepath.Join(s.dir, name)); err != nil {
		return fmt.Errorf("putting %q in place: %w", name, err)
	}
	return syncDir(s.dir)
}

// current names the version in force, empty when there is none.
func (s store) current() (string, error) {
	name, err := os.Readlink(filepath.Join(s.dir, currentName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading which hooks are in force: %w", err)
	}
	if !strings.HasPrefix(name, versionMark) || strings.ContainsRune(name, '/') {
		return "", fmt.Errorf("%q points to %q, which agentguard did not write", filepath.Join(s.dir, currentName), name)
	}
	return name, nil
}

// versionOf names the version that holds t as the copy of source: the content
// that was approved, then how the shims for it are written.
func (s store) versionOf(t tree, source string) string {
	how := tree{}.digest(shimText, s.dir, source, strings.Join(always[:], " "))
	return versionMark + t.digest() + "-" + how[:8]
}

// holds tells whether a version was made for exactly t.
func holds(version string, t tree) bool {
	return strings.HasPrefix(version, versionMark+t.digest()+"-")
}

// shims returns what git runs for the approved tree t.
func (s store) shims(t tree, source string) tree {
	approved := filepath.Join(s.dir, s.versionOf(t, source), copyName)
	names := map[string]bool{}
	for _, name := range always {
		names[name] = true
	}
	for _, name := range t.hooks() {
		names[name] = true
	}
	var list tree
	for name := range names {
		list = append(list, file{path: name, exec: true, data: shim(name, approved, source)})
	}
	list.sort()
	return list
}

// approved reads the copy in a version, checked against its name.
func (s store) approved(version string) (tree, error) {
	t, err := readTree(s.dir, version+"/"+copyName)
	if err != nil {
		return nil, err
	}
	if !holds(version, t) {
		return nil, &SourceError{Path: filepath.Join(s.dir, version, copyName), Why: "not as it was when it was approved"}
	}
	return t, nil
}

// checkShims tells how the shims of a version that holds t are not as this
// program writes them, empty when they are.
func (s store) checkShims(version string, t tree, source string) string {
	if s.versionOf(t, source) != version {
		return "the shims were written by another release of agentguard, or for another source"
	}
	got, err := readTree(s.dir, version+"/"+shimsName)
	if err != nil {
		return err.Error()
	}
	for _, d := range compare(s.shims(t, source), got) {
		return fmt.Sprintf("the shim %s is not as it was written (%s)", visible(d.Path), d.Kind)
	}
	return ""
}

// write makes the version for t and puts it in force, keeping the one before
// for the hooks that are running.
func (s store) write(t tree, source string) error {
	before, err := s.current()
	if err != nil {
		return err
	}
	version := s.versionOf(t, source)
	if _, err := s.approved(version); err != nil || s.checkShims(version, t, source) != "" {
		if err := s.make(version, t, source); err != nil {
			return err
		}
	}
	if version != before {
		tmp := filepath.Join(s.dir, unfinished+currentName)
		if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("putting hooks in force: %w", err)
		}
		if err := os.Symlink(version, tmp); err != nil {
			return fmt.Errorf("putting hooks in force: %w", err)
		}
		if err := s.put(tmp, currentName); err != nil {
			return err
		}
	}
	return s.sweep(version, before)
}

func (s store) make(version string, t tree, source string) error {
	tmp, err := os.MkdirTemp(s.dir, unfinished)
	if err != nil {
		return fmt.Errorf("writing hooks: %w", err)
	}
	defer removeTree(tmp) //nolint:errcheck // there only after a failure, and swept next time
	if err := os.Chmod(tmp, 0o755); err != nil {
		return fmt.Errorf("writing hooks: %w", err)
	}
	if err := writeTree(filepath.Join(tmp, copyName), t); err != nil {
		return err
	}
	if err := writeTree(filepath.Join(tmp, shimsName), s.shims(t, source)); err != nil {
		return err
	}
	if err := syncDir(tmp); err != nil {
		return err
	}
	// There is one of this name only when it is not as it was written.
	if err := removeTree(filepath.Join(s.dir, version)); err != nil {
		return err
	}
	return s.put(tmp, version)
}

// sweep removes versions other than those named and what a crash left.
func (s store) sweep(keep ...string) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("removing old hooks: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		old := strings.HasPrefix(name, versionMark) || strings.HasPrefix(name, unfinished)
		for _, k := range keep {
			old = old && name != k
		}
		if !old {
			continue
		}
		if err := removeTree(filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (s store) remove() error { return removeTree(s.dir) }

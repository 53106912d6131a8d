package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// Limits of a hooks directory. It holds scripts that a person is to review.
const (
	maxFile  = 1 << 20
	maxTotal = 8 << 20
	maxFiles = 500
	maxDepth = 8
)

// file is one regular file, or one directory, of a hooks directory.
type file struct {
	path string // relative, slash-separated
	dir  bool   // no content, and exec means nothing
	exec bool   // mode 0755, else 0644
	data []byte
}

// mode returns the permissions a copy gets.
func (f file) mode() fs.FileMode {
	switch {
	case f.dir:
		return fs.ModeDir | 0o755
	case f.exec:
		return 0o755
	}
	return 0o644
}

// tree is a hooks directory read into memory, sorted by path.
type tree []file

func (t tree) sort() {
	slices.SortFunc(t, func(a, b file) int { return strings.Compare(a.path, b.path) })
}

func (t tree) find(name string) (file, bool) {
	i, ok := slices.BinarySearchFunc(t, name, func(f file, name string) int { return strings.Compare(f.path, name) })
	if !ok {
		return file{}, false
	}
	return t[i], true
}

// hooks returns the names at the top that git would run.
func (t tree) hooks() []string {
	var names []string
	for _, f := range t {
		if f.exec && !f.dir && shimName(f.path) {
			names = append(names, f.path)
		}
	}
	return names
}

// digest names the content of t together with extra, which it is made for.
func (t tree) digest(extra ...string) string {
	h := sha256.New()
	field := func(s string) { fmt.Fprintf(h, "%d:%s", len(s), s) }
	for _, e := range extra {
		field(e)
	}
	for _, f := range t {
		field(f.path)
		field(f.mode().String())
		field(string(f.data))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// reader reads one hooks directory. Each step is by name in an open directory,
// and what is opened must be the very file that was looked at before: so no
// symbolic link is followed, also not one that is put there meanwhile.
type reader struct {
	top   string // for messages
	files tree
	total int64
}

// readTree reads the directory dir, relative to base. Failure: *SourceError.
func readTree(base, dir string) (tree, error) {
	r := &reader{top: filepath.Join(base, dir)}
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, r.fail("", err)
	}
	for _, elem := range strings.Split(filepath.ToSlash(dir), "/") {
		sub, err := r.enter(root, elem)
		_ = root.Close() // only read from
		if err != nil {
			return nil, r.fail("", err)
		}
		root = sub
	}
	defer root.Close()
	if err := r.walk(root, "", 0); err != nil {
		return nil, err
	}
	r.files.sort()
	return r.files, nil
}

// enter opens the directory name of root, and no link to one.
func (r *reader) enter(root *os.Root, name string) (*os.Root, error) {
	before, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, errors.New(kindOf(before))
	}
	sub, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	after, err := sub.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = errors.New("it was replaced while it was read")
	}
	if err != nil {
		_ = sub.Close() // not used
		return nil, err
	}
	return sub, nil
}

func (r *reader) walk(root *os.Root, at string, depth int) error {
	if depth > maxDepth {
		return r.fail(at, fmt.Errorf("more than %d directories deep", maxDepth))
	}
	dir, err := root.Open(".")
	if err != nil {
		return r.fail(at, err)
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close() // only read from
	if err != nil {
		return r.fail(at, err)
	}
	for _, name := range names {
		rel := path.Join(at, name)
		if why := oddName(name); why != "" {
			return r.fail(rel, errors.New(why))
		}
		info, err := root.Lstat(name)
		if err != nil {
			return r.fail(rel, err)
		}
		if info.IsDir() {
			if err := r.descend(root, name, rel, depth); err != nil {
				return err
			}
			continue
		}
		if err := r.read(root, name, rel, info); err != nil {
			return r.fail(rel, err)
		}
	}
	return nil
}

func (r *reader) descend(root *os.Root, name, rel string, depth int) error {
	if err := r.add(file{path: rel, dir: true}); err != nil {
		return r.fail(rel, err)
	}
	sub, err := r.enter(root, name)
	if err != nil {
		return r.fail(rel, err)
	}
	defer sub.Close()
	return r.walk(sub, rel, depth+1)
}

func (r *reader) read(root *os.Root, name, rel string, before fs.FileInfo) error {
	if !before.Mode().IsRegular() {
		return errors.New(kindOf(before))
	}
	// Without O_NONBLOCK a FIFO put there meanwhile would hold us up.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(before, info) || !info.Mode().IsRegular() {
		return errors.New("it was replaced while it was read")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return err
	}
	r.total += int64(len(data))
	if len(data) > maxFile || r.total > maxTotal {
		return fmt.Errorf("larger than %d bytes, or %d with the others", maxFile, maxTotal)
	}
	return r.add(file{path: rel, exec: info.Mode().Perm()&0o111 != 0, data: data})
}

func (r *reader) add(f file) error {
	if len(r.files) == maxFiles {
		return fmt.Errorf("more than %d files", maxFiles)
	}
	r.files = append(r.files, f)
	return nil
}

func (r *reader) fail(rel string, err error) error {
	var pe *fs.PathError
	why := err.Error()
	if errors.As(err, &pe) {
		why = pe.Err.Error()
	}
	return &SourceError{
		Path:    filepath.Join(r.top, rel),
		Why:     why,
		Missing: rel == "" && errors.Is(err, fs.ErrNotExist),
	}
}

func kindOf(info fs.FileInfo) string {
	switch m := info.Mode(); {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link, which is not followed"
	case m.IsDir():
		return "a directory"
	case m.IsRegular():
		return "a file and not a directory"
	}
	return "neither a file nor a directory"
}

// oddName tells why a name could not be shown to a person as it is.
func oddName(name string) string {
	if !utf8.ValidString(name) {
		return "its name is not UTF-8"
	}
	for _, c := range name {
		if !unicode.IsPrint(c) {
			return "its name holds characters that cannot be shown"
		}
	}
	return ""
}

// compare lists what differs in now from approved, by path.
func compare(approved, now tree) []Difference {
	var list []Difference
	for _, f := range now {
		old, ok := approved.find(f.path)
		switch {
		case !ok:
			list = append(list, Difference{Path: f.path, Kind: Added})
		case old.dir != f.dir || string(old.data) != string(f.data):
			list = append(list, Difference{Path: f.path, Kind: Changed})
		case old.exec != f.exec:
			list = append(list, Difference{Path: f.path, Kind: Mode})
		}
	}
	for _, f := range approved {
		if _, ok := now.find(f.path); !ok {
			list = append(list, Difference{Path: f.path, Kind: Removed})
		}
	}
	slices.SortFunc(list, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	return list
}

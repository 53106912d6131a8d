package git

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// maxAlternates is how deep and how many alternates are followed; git's depth
// is the same.
const maxAlternates = 5

// store reads the objects of one repository.
type store struct {
	format    ObjectFormat
	dirs      []*objectDir
	cache     deltaCache
	inflaters sync.Pool // of *inflater
}

// objectDir is one object directory: the repository's own or an alternate.
type objectDir struct {
	path string
	root *os.Root

	mu    sync.Mutex // guards packs
	packs []*pack
	read  bool // packs was filled
}

// objects opens the object store on first use.
func (r *Repo) objects() (*store, error) {
	r.storeMu.Lock()
	defer r.storeMu.Unlock()
	if r.store != nil {
		return r.store, nil
	}
	own := filepath.Join(r.CommonDir, "objects")
	alternates, err := r.Alternates()
	if err != nil {
		return nil, err
	}
	s := &store{format: r.ObjectFormat}
	for _, p := range append([]string{own}, alternates...) {
		root, err := os.OpenRoot(p)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("opening the object directory: %w", err)
		}
		s.dirs = append(s.dirs, &objectDir{path: p, root: root})
	}
	r.store = s
	return s, nil
}

func (s *store) close() {
	for _, d := range s.dirs {
		_ = d.root.Close() // only read
		for _, p := range d.packs {
			p.close()
		}
	}
}

// read finds h in the packs, then among the loose objects, then in packs that
// came meanwhile: a repack moves objects from one place to the other.
func (s *store) read(h Hash) (ObjectType, []byte, error) {
	if int(h.n) != s.format.Size() {
		return 0, nil, &MissingError{Name: h.String()}
	}
	for _, again := range []bool{false, true} {
		for _, d := range s.dirs {
			packs, err := d.list(s.format, again)
			if err != nil {
				return 0, nil, err
			}
			for _, p := range packs {
				off, ok, err := p.find(h)
				if err != nil {
					return 0, nil, err
				}
				if ok {
					return s.readPacked(p, off, h)
				}
			}
			if again {
				continue
			}
			t, data, err := s.readLoose(d, h)
			if err == nil || !isNotExist(err) {
				return t, data, err
			}
		}
	}
	return 0, nil, &MissingError{Name: h.String()}
}

// list returns the packs of d, in no order that matters.
func (d *objectDir) list(format ObjectFormat, again bool) ([]*pack, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read && !again {
		return d.packs, nil
	}
	entries, err := readDirIn(d.root, "pack")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".idx")
		if !ok || slices.ContainsFunc(d.packs, func(p *pack) bool { return p.base == base }) {
			continue
		}
		p, err := openPack(d.root, base, format)
		if isNotExist(err) {
			continue // removed, or its pack is not there yet
		}
		if err != nil {
			return nil, err
		}
		d.packs = append(d.packs, p)
	}
	d.read = true
	return d.packs, nil
}

// Alternates returns the object directories that objects/info/alternates
// names, recursively, each of them absolute and free of links. One that holds
// anything but what an object directory holds is a [*PointerError]. No
// alternate names its users back: that a repository names one is no reason to
// open it to somebody who could have written the name.
func (r *Repo) Alternates() ([]string, error) {
	var out []string
	own := filepath.Join(r.CommonDir, "objects")
	todo := []string{own}
	for depth := 0; len(todo) > 0; depth++ {
		var next []string
		for _, d := range todo {
			named, err := readAlternates(d)
			if err != nil {
				return nil, err
			}
			for _, n := range named {
				if n != own && !slices.Contains(out, n) {
					out, next = append(out, n), append(next, n)
				}
			}
		}
		if len(next) > 0 && (depth >= maxAlternates || len(out) > 100) {
			return nil, &UnsupportedError{What: "alternates of alternates, too deep or too many to follow"}
		}
		todo = next
	}
	return out, nil
}

func readAlternates(objects string) ([]string, error) {
	file := filepath.Join(objects, "info", "alternates")
	data, err := readFile(file, maxPointer, false)
	if isNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range bytes.Lines(data) {
		s := strings.TrimSuffix(string(line), "\n")
		if s == "" || s[0] == '#' {
			continue
		}
		if s[0] == '"' || strings.ContainsRune(s, 0) {
			return nil, &PointerError{File: file, Target: s, Why: "a quoted path is not read here"}
		}
		d, err := resolveFrom(objects, s)
		if errors.Is(err, os.ErrNotExist) {
			continue // as git: it only warns
		}
		if err == nil {
			err = onlyObjects(d)
		}
		if err != nil {
			return nil, &PointerError{File: file, Target: s, Why: reason(err)}
		}
		out = append(out, d)
	}
	return out, nil
}

// onlyObjects holds a directory that is to be opened as an object directory
// to holding nothing else at its top.
func onlyObjects(d string) error {
	entries, err := os.ReadDir(d)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		fan := len(name) == 2 && isHex(name)
		if !e.IsDir() && !strings.HasPrefix(name, "tmp_") && !strings.HasSuffix(name, ".lock") ||
			e.IsDir() && !fan && name != "info" && name != "pack" && !strings.HasPrefix(name, "tmp_objdir") {
			return fmt.Errorf("it holds %q and is no object directory", name)
		}
	}
	return nil
}

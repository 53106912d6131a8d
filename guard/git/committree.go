package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"agentguard/guard/surface"
)

// Tree returns the tree of a revision.
func (r *Repo) Tree(rev string) (surface.Tree, error) {
	h, err := r.Resolve(rev)
	if err != nil {
		return nil, err
	}
	return r.TreeOf(h)
}

// TreeOf returns the tree of a commit, tag or tree object, the empty tree for
// the zero Hash. All it gives is verified. It is not safe for concurrent use.
func (r *Repo) TreeOf(h Hash) (surface.Tree, error) {
	root, err := r.treeHash(h)
	if err != nil {
		return nil, err
	}
	return &commitTree{repo: r, root: root}, nil
}

func (r *Repo) treeHash(h Hash) (Hash, error) {
	if h.IsZero() {
		return Hash{}, nil
	}
	return r.peel(h, Tree)
}

// commitTree is a tree object and all below it.
type commitTree struct {
	repo   *Repo
	root   Hash
	parsed map[Hash][]treeEntry // for Lstat and Open, which come again and again
}

// maxParsed bounds how many trees a commitTree keeps.
const maxParsed = 8192

func (t *commitTree) Walk(fn func(surface.WalkEntry) error) error {
	w := &treeWalk{repo: t.repo, left: maxTreeEntries}
	return w.walk(t.root, "", 0, fn)
}

// treeWalk walks a tree object within its limits.
type treeWalk struct {
	repo *Repo
	left int
}

func (w *treeWalk) walk(h Hash, prefix string, depth int, fn func(surface.WalkEntry) error) error {
	entries, err := w.repo.readTree(h)
	if err != nil {
		return err
	}
	if w.left -= len(entries); depth > maxTreeDepth || w.left < 0 {
		return &CorruptError{What: "tree " + h.String(), Why: "it is too deep or has too many entries"}
	}
	for _, e := range entries {
		p := prefix + e.name
		err := fn(walkEntry(p, e))
		if errors.Is(err, surface.SkipDir) && e.mode == modeDir {
			continue
		}
		if err == nil && e.mode == modeDir {
			err = w.walk(e.hash, p+"/", depth+1, fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func walkEntry(path string, e treeEntry) surface.WalkEntry {
	return surface.WalkEntry{Path: path, Type: surfaceType(e.mode), Mode: e.mode, Size: -1, Hash: e.hash.String()}
}

func (t *commitTree) Lstat(path string) (surface.WalkEntry, error) {
	e, err := t.lookup(path)
	if err != nil {
		return surface.WalkEntry{}, err
	}
	w := walkEntry(path, e)
	if e.mode == modeSymlink {
		data, err := t.repo.readAs(e.hash, Blob)
		if err != nil {
			return surface.WalkEntry{}, fmt.Errorf("reading the link %q: %w", path, err)
		}
		w.Link, w.Size = string(data), int64(len(data))
	}
	return w, nil
}

func (t *commitTree) Open(path string) (io.ReadCloser, surface.WalkEntry, error) {
	e, err := t.lookup(path)
	if err != nil {
		return nil, surface.WalkEntry{}, err
	}
	return t.repo.openBlob(walkEntry(path, e), e.hash)
}

// openBlob reads the verified content of one entry of a tree or index.
func (r *Repo) openBlob(w surface.WalkEntry, h Hash) (io.ReadCloser, surface.WalkEntry, error) {
	if w.Type != surface.Regular && w.Type != surface.Symlink {
		return nil, surface.WalkEntry{}, fmt.Errorf("opening %q: it is neither a file nor a link", w.Path)
	}
	data, err := r.readAs(h, Blob)
	if err != nil {
		return nil, surface.WalkEntry{}, fmt.Errorf("opening %q: %w", w.Path, err)
	}
	w.Size = int64(len(data))
	if w.Type == surface.Symlink {
		w.Link = string(data)
	}
	return io.NopCloser(bytes.NewReader(data)), w, nil
}

// lookup finds path component by component, so that no link is followed.
func (t *commitTree) lookup(path string) (treeEntry, error) {
	h, rest := t.root, path
	for {
		name, below, more := strings.Cut(rest, "/")
		entries, err := t.entries(h)
		if err != nil {
			return treeEntry{}, err
		}
		e, ok := findEntry(entries, name)
		if !ok || more && e.mode != modeDir {
			return treeEntry{}, fmt.Errorf("%q: %w", path, surface.ErrNotExist)
		}
		if !more {
			return e, nil
		}
		h, rest = e.hash, below
	}
}

func (t *commitTree) entries(h Hash) ([]treeEntry, error) {
	if entries, ok := t.parsed[h]; ok {
		return entries, nil
	}
	entries, err := t.repo.readTree(h)
	if err != nil {
		return nil, err
	}
	if t.parsed == nil || len(t.parsed) >= maxParsed {
		t.parsed = map[Hash][]treeEntry{}
	}
	t.parsed[h] = entries
	return entries, nil
}

func findEntry(entries []treeEntry, name string) (treeEntry, bool) {
	for _, mode := range []uint32{modeFile, modeDir} { // the two places where a name sorts
		key := treeEntry{name: name, mode: mode}
		lo, hi := 0, len(entries)
		for lo < hi {
			mid := (lo + hi) / 2
			if compareEntries(entries[mid], key) < 0 {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		if lo < len(entries) && entries[lo].name == name {
			return entries[lo], true
		}
	}
	return treeEntry{}, false
}

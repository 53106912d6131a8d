package git

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// DiffIndex calls fn for every path that is not a directory and differs
// between the tree of a (a commit, tag or tree; zero is the empty tree) and
// what a commit of x would record. Trees that are the same are not opened:
// the names of the index's trees are computed from its entries.
//
// Git believes the names of trees that an index carries beside its entries
// and commits them. Where one is not that of the entries DiffIndex fails with
// a [*CorruptError]: no reading of the entries says what a commit would hold.
func (r *Repo) DiffIndex(a Hash, x *Index, fn func(TreeChange) error) error {
	from, err := r.treeHash(a)
	if err != nil {
		return err
	}
	t := &indexTrees{repo: r, entries: make([]*IndexEntry, 0, len(x.Entries))}
	all := &indexTree{entries: x.Entries}
	for i := range x.Entries {
		if all.shown(i) && !x.Entries[i].IntentToAdd {
			t.entries = append(t.entries, &x.Entries[i])
		}
	}
	to, err := t.build("", 0)
	if err != nil {
		return err
	}
	if err := t.checkCached(x.cached); err != nil {
		return err
	}
	d := &treeDiff{repo: r, fn: fn, left: maxTreeEntries, made: t.tree}
	return d.diff(from, to, "", 0)
}

// indexTrees names the trees of a sorted list of paths, as git write-tree does.
type indexTrees struct {
	repo    *Repo
	entries []*IndexEntry
	pos     int
	buf     []byte // the trees being encoded, a directory's behind its parent's
	dirs    []indexDir
	made    map[Hash]int   // into dirs
	named   map[string]int // into dirs
}

// indexDir is one directory and the entries in it or below.
type indexDir struct {
	name     string // with its slash
	hash     Hash
	from, to int
}

// build names the tree of all entries from pos on whose path begins with dir.
func (t *indexTrees) build(dir string, depth int) (Hash, error) {
	if depth > maxTreeDepth {
		return Hash{}, &CorruptError{What: "index", Why: "its paths are too deep"}
	}
	from, start := t.pos, len(t.buf)
	for t.pos < len(t.entries) && strings.HasPrefix(t.entries[t.pos].Path, dir) {
		e := t.entries[t.pos]
		item, sub := e.in(dir)
		if sub == "" {
			t.pos++
			if item.mode == modeDir { // sparse
				t.dirs = append(t.dirs, indexDir{name: e.Path, hash: e.Hash})
			}
		} else {
			h, err := t.build(sub, depth+1)
			if err != nil {
				return Hash{}, err
			}
			item.hash = h
		}
		t.buf = appendEntry(t.buf, item)
	}
	if t.pos == from {
		return Hash{}, nil
	}
	h := t.repo.ObjectFormat.sum(Tree, t.buf[start:])
	t.buf = t.buf[:start]
	t.dirs = append(t.dirs, indexDir{dir, h, from, t.pos})
	return h, nil
}

// in returns the entry of dir's tree that e is or lies below, and in the
// latter case the directory's path, with its slash.
func (e *IndexEntry) in(dir string) (item treeEntry, sub string) {
	name, rest, below := strings.Cut(e.Path[len(dir):], "/")
	switch {
	case !below:
		return treeEntry{name: name, mode: e.Mode, hash: e.Hash}, ""
	case rest == "" && e.Mode == modeDir:
		return treeEntry{name: name, mode: modeDir, hash: e.Hash}, ""
	}
	return treeEntry{name: name, mode: modeDir}, e.Path[:len(dir)+len(name)+1]
}

func appendEntry(b []byte, e treeEntry) []byte {
	b = strconv.AppendUint(b, uint64(e.mode), 8)
	b = append(append(append(b, ' '), e.name...), 0)
	return append(b, e.hash.raw[:e.hash.n]...)
}

// tree returns the entries of a tree that build named.
func (t *indexTrees) tree(h Hash) ([]treeEntry, bool) {
	if t.made == nil {
		t.made = make(map[Hash]int, len(t.dirs))
		for i, d := range t.dirs {
			if d.to > d.from {
				t.made[d.hash] = i
			}
		}
	}
	i, ok := t.made[h]
	if !ok {
		return nil, false
	}
	d := t.dirs[i]
	var list []treeEntry
	for pos := d.from; pos < d.to; {
		item, sub := t.entries[pos].in(d.name)
		pos++
		if sub != "" {
			below, _ := t.dir(sub)
			item.hash, pos = below.hash, below.to
		}
		list = append(list, item)
	}
	return list, true
}

// dir finds a directory by its name.
func (t *indexTrees) dir(name string) (d indexDir, ok bool) {
	if t.named == nil {
		t.named = make(map[string]int, len(t.dirs))
		for i, d := range t.dirs {
			t.named[d.name] = i
		}
	}
	i, ok := t.named[name]
	if ok {
		d = t.dirs[i]
	}
	return d, ok
}

// checkCached holds the names of trees that the index carries against those of
// its entries. A directory that the entries do not show, inside a sparse one,
// is checked when its tree is read.
func (t *indexTrees) checkCached(b []byte) error {
	n := t.repo.ObjectFormat.Size()
	type level struct {
		dir  string
		left int
	}
	var stack []level
	for len(b) > 0 {
		name, rest, ok := bytes.Cut(b, []byte{0})
		counts, rest, ok2 := bytes.Cut(rest, []byte{'\n'})
		entries, subtrees, err := cachedCounts(counts)
		if !ok || !ok2 || err != nil {
			return &CorruptError{What: "index", Why: "its cached trees cannot be read"}
		}
		dir := ""
		if len(stack) > 0 {
			top := &stack[len(stack)-1]
			dir = top.dir + string(name) + "/"
			top.left--
		}
		if entries >= 0 {
			if len(rest) < n {
				return &CorruptError{What: "index", Why: "its cached trees are cut off"}
			}
			if d, known := t.dir(dir); known && d.hash != rawHash(rest[:n]) || !known && dir == "" && len(t.entries) > 0 {
				return &CorruptError{What: "index", Why: fmt.Sprintf("it names a tree for %q that is not that of its entries, and git would commit that", "/"+dir)}
			}
			rest = rest[n:]
		}
		b, stack = rest, append(stack, level{dir, subtrees})
		for len(stack) > 0 && stack[len(stack)-1].left <= 0 {
			stack = stack[:len(stack)-1]
		}
		if len(stack) == 0 && len(b) > 0 {
			return &CorruptError{What: "index", Why: "its cached trees do not end"}
		}
	}
	return nil
}

func cachedCounts(b []byte) (entries, subtrees int, err error) {
	x, y, _ := strings.Cut(string(b), " ")
	if entries, err = strconv.Atoi(x); err == nil {
		subtrees, err = strconv.Atoi(y)
	}
	return entries, subtrees, err
}

// cachedTrees returns the index's extension of that purpose, nil without one;
// checkIndexExtensions has read b already.
func cachedTrees(b []byte) []byte {
	for len(b) >= 8 {
		size := int(binary.BigEndian.Uint32(b[4:]))
		if string(b[:4]) == "TREE" {
			return b[8 : 8+size]
		}
		b = b[8+size:]
	}
	return nil
}

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
	t := &indexTrees{repo: r, trees: map[Hash][]treeEntry{}, names: map[string]Hash{}}
	for i := range x.Entries {
		if s := (&indexTree{entries: x.Entries}); s.shown(i) && !x.Entries[i].IntentToAdd {
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
	d := &treeDiff{repo: r, fn: fn, left: maxTreeEntries, made: t.trees}
	return d.diff(from, to, "", 0)
}

// indexTrees makes trees of a sorted list of paths, as git write-tree does,
// and keeps them in memory.
type indexTrees struct {
	repo    *Repo
	entries []*IndexEntry
	pos     int
	trees   map[Hash][]treeEntry
	names   map[string]Hash // by directory, with its slash
}

// build makes the tree of all entries from pos on whose path begins with dir.
func (t *indexTrees) build(dir string, depth int) (Hash, error) {
	if depth > maxTreeDepth {
		return Hash{}, &CorruptError{What: "index", Why: "its paths are too deep"}
	}
	var list []treeEntry
	for t.pos < len(t.entries) && strings.HasPrefix(t.entries[t.pos].Path, dir) {
		e := t.entries[t.pos]
		name, _, below := strings.Cut(e.Path[len(dir):], "/")
		item := treeEntry{name: name, mode: e.Mode, hash: e.Hash}
		switch {
		case !below || e.Mode == modeDir && len(e.Path) == len(dir)+len(name)+1:
			t.pos++
			if below {
				t.names[e.Path] = e.Hash // sparse
			}
		default:
			h, err := t.build(dir+name+"/", depth+1)
			if err != nil {
				return Hash{}, err
			}
			item.mode, item.hash = modeDir, h
		}
		list = append(list, item)
	}
	if len(list) == 0 {
		return Hash{}, nil
	}
	h := t.repo.ObjectFormat.sum(Tree, encodeTree(list))
	t.trees[h], t.names[dir] = list, h
	return h, nil
}

func encodeTree(list []treeEntry) []byte {
	size := 0
	for _, e := range list {
		size += len(e.name) + 8 + int(e.hash.n)
	}
	out := make([]byte, 0, size)
	for _, e := range list {
		out = strconv.AppendUint(out, uint64(e.mode), 8)
		out = append(append(append(out, ' '), e.name...), 0)
		out = append(out, e.hash.raw[:e.hash.n]...)
	}
	return out
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
			if h, known := t.names[dir]; known && h != rawHash(rest[:n]) || !known && dir == "" && len(t.entries) > 0 {
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

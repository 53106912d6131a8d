package git

import (
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	"agentguard/guard/surface"
)

// Tree returns the index as a tree: what a commit, a restore or a stash would
// take from it. A sparse directory is opened from r; a path in conflict is
// there once, as "ours" where there is one; an entry that is only intended to
// be added is there, empty. It is not safe for concurrent use.
func (x *Index) Tree(r *Repo) surface.Tree { return &indexTree{repo: r, entries: x.Entries} }

type indexTree struct {
	repo    *Repo
	entries []IndexEntry
}

func (t *indexTree) Walk(fn func(surface.WalkEntry) error) error {
	w := &indexWalk{tree: t, fn: fn, objects: treeWalk{repo: t.repo, left: maxTreeEntries}}
	for i := range t.entries {
		if !t.shown(i) {
			continue
		}
		if err := w.entry(&t.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// shown tells whether entry i is the one that stands for its path: the only
// one, or of a conflict stage 2 if it is there, else the first.
func (t *indexTree) shown(i int) bool {
	e := &t.entries[i]
	if e.Stage == 0 || e.Stage == 2 {
		return true
	}
	for j := i - 1; j >= 0 && t.entries[j].Path == e.Path; j-- {
		return false
	}
	for j := i + 1; j < len(t.entries) && t.entries[j].Path == e.Path; j++ {
		if t.entries[j].Stage == 2 {
			return false
		}
	}
	return true
}

// indexWalk makes directories of a sorted list of paths.
type indexWalk struct {
	tree    *indexTree
	fn      func(surface.WalkEntry) error
	objects treeWalk
	dir     string // the directory that was told last, with its slash
	skip    string // prefix that fn left out, empty for none
}

func (w *indexWalk) entry(e *IndexEntry) error {
	if w.skip != "" && strings.HasPrefix(e.Path, w.skip) {
		return nil
	}
	if skipped, err := w.enter(e.Path); skipped || err != nil {
		return err
	}
	if e.Mode == modeDir { // enter has told it
		return w.objects.walk(e.Hash, e.Path, strings.Count(e.Path, "/"), w.fn)
	}
	return w.fn(e.walkEntry())
}

// enter tells the directories above path that were not told yet.
func (w *indexWalk) enter(path string) (skipped bool, err error) {
	for !strings.HasPrefix(path, w.dir) { // up to the common directory
		w.dir = w.dir[:strings.LastIndexByte(w.dir[:len(w.dir)-1], '/')+1]
	}
	for {
		i := strings.IndexByte(path[len(w.dir):], '/')
		if i < 0 {
			return false, nil
		}
		dir := path[:len(w.dir)+i]
		err := w.fn(surface.WalkEntry{Path: dir, Type: surface.Dir, Mode: modeDir, Size: -1})
		if errors.Is(err, surface.SkipDir) {
			w.skip = dir + "/"
			return true, nil
		}
		if err != nil {
			return false, err
		}
		w.dir = dir + "/"
	}
}

func (e *IndexEntry) walkEntry() surface.WalkEntry {
	return surface.WalkEntry{Path: e.Path, Type: surfaceType(e.Mode), Mode: e.Mode, Size: -1, Hash: e.Hash.String()}
}

func (t *indexTree) Lstat(path string) (surface.WalkEntry, error) {
	w, h, sub, err := t.lookup(path)
	if err != nil {
		return surface.WalkEntry{}, err
	}
	if sub != nil {
		return *sub, nil
	}
	if w.Type == surface.Symlink {
		data, err := t.repo.readAs(h, Blob)
		if err != nil {
			return surface.WalkEntry{}, fmt.Errorf("reading the link %q: %w", path, err)
		}
		w.Link, w.Size = string(data), int64(len(data))
	}
	return w, nil
}

func (t *indexTree) Open(path string) (io.ReadCloser, surface.WalkEntry, error) {
	w, h, sub, err := t.lookup(path)
	if err != nil {
		return nil, surface.WalkEntry{}, err
	}
	if sub != nil {
		if h, err = ParseHash(sub.Hash); err != nil {
			return nil, surface.WalkEntry{}, err
		}
		w = *sub
	}
	return t.repo.openBlob(w, h)
}

// lookup finds path among the entries, as a directory above some, or inside a
// sparse directory, whose entry then is sub.
func (t *indexTree) lookup(path string) (w surface.WalkEntry, h Hash, sub *surface.WalkEntry, err error) {
	absent := fmt.Errorf("%q: %w", path, surface.ErrNotExist)
	if path == "" || strings.HasSuffix(path, "/") {
		return w, h, nil, absent
	}
	i := t.search(path)
	for ; i < len(t.entries) && t.entries[i].Path == path; i++ {
		if t.shown(i) {
			return t.entries[i].walkEntry(), t.entries[i].Hash, nil, nil
		}
	}
	if i = t.search(path + "/"); i < len(t.entries) && strings.HasPrefix(t.entries[i].Path, path+"/") {
		return surface.WalkEntry{Path: path, Type: surface.Dir, Mode: modeDir, Size: -1}, h, nil, nil
	}
	for j := strings.LastIndexByte(path, '/'); j > 0; j = strings.LastIndexByte(path[:j], '/') {
		i = t.search(path[:j+1])
		if i == len(t.entries) || t.entries[i].Path != path[:j+1] {
			continue
		}
		below := &commitTree{repo: t.repo, root: t.entries[i].Hash}
		e, err := below.Lstat(path[j+1:])
		e.Path = path
		return w, h, &e, err
	}
	return w, h, nil, absent
}

// search returns where path is or would be.
func (t *indexTree) search(path string) int {
	return sort.Search(len(t.entries), func(i int) bool { return t.entries[i].Path >= path })
}

package watch

import (
	"path"
	"strings"

	"agentguard/guard/surface"
)

// prune tells which directories are not watched.
type prune struct {
	second map[string]string // of a generated tree, by its first component; "" where there is one only
	deep   map[string]bool   // directories inside generated trees that hold a surface known at the start
}

func newPrune(set *surface.Set) prune {
	p := prune{second: map[string]string{}, deep: map[string]bool{}}
	for _, g := range surface.GeneratedTrees() {
		first, second, _ := strings.Cut(g.Path, "/")
		p.second[first] = second
	}
	if set == nil {
		return p
	}
	for _, m := range set.Members {
		if m.Hit.Protection == surface.Note {
			continue
		}
		for d := path.Dir(m.Path); d != "." && p.inside(d); d = path.Dir(d) {
			p.deep[d] = true
		}
	}
	return p
}

// inside reports whether dir lies in a generated tree; the tree's own top does
// not, so it is watched and what is below is not.
func (p prune) inside(dir string) bool {
	parts := strings.Split(strings.ToLower(dir), "/")
	for i := range len(parts) - 1 {
		second, ok := p.second[parts[i]]
		if ok && (second == "" || parts[i+1] == second && i+2 < len(parts)) {
			return true
		}
	}
	return false
}

// skip reports whether no notice is wanted of what is in dir.
func (w *Watcher) skip(dir string) bool {
	if w.m.Prune(dir) {
		return true
	}
	if !w.prune.inside(dir) || w.prune.deep[dir] {
		return false
	}
	_, whole := w.m.WholeDir(dir)
	return !whole
}

// Recorder is a tree that notes its directories while another walks it, so
// that one walk serves [surface.Resolve] and [Options.Dirs].
type Recorder struct {
	surface.Tree
	Dirs []string
}

// Walk walks the tree. What fn leaves out is noted, and not what is below it.
func (r *Recorder) Walk(fn func(surface.WalkEntry) error) error {
	return r.Tree.Walk(func(e surface.WalkEntry) error {
		if e.Type == surface.Dir {
			r.Dirs = append(r.Dirs, e.Path)
		}
		return fn(e)
	})
}

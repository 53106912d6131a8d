package guard

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"agentguard/guard/git"
	"agentguard/guard/surface"
	"agentguard/integrity"
)

// Unapproved is one surface that would execute something nobody approved.
type Unapproved struct {
	Path       string   `json:"path"`
	What       string   `json:"what"`
	Entry      string   `json:"entry"`
	Trigger    string   `json:"trigger,omitempty"`
	Protection string   `json:"protection"`
	Executes   []string `json:"executes,omitempty"` // what comes and goes, line by line
	Commits    []string `json:"commits,omitempty"`  // that hold this state, where not the head does
}

// shownLines is how much of what would execute a list of findings shows.
const shownLines = 8

// Text writes a finding for a person.
func (u Unapproved) Text(w io.Writer) {
	fmt.Fprintf(w, "%s %s (%s; %s)\n", u.What, quote(u.Path), u.Entry, u.Protection)
	u.effect(w, shownLines)
	if u.Trigger != "" {
		fmt.Fprintf(w, "    runs on: %s\n", quoteLine(u.Trigger))
	}
	if len(u.Commits) > 0 {
		fmt.Fprintf(w, "    only in: %s\n", strings.Join(u.Commits, ", "))
	}
}

// Whole writes a finding with all that would execute.
func (u Unapproved) Whole(w io.Writer) {
	fmt.Fprintf(w, "%s %s (%s; %s)\n", u.What, quote(u.Path), u.Entry, u.Protection)
	u.effect(w, len(u.Executes))
	if u.Trigger != "" {
		fmt.Fprintf(w, "    runs on: %s\n", quoteLine(u.Trigger))
	}
}

func (u Unapproved) effect(w io.Writer, n int) {
	for _, line := range u.Executes[:min(n, len(u.Executes))] {
		fmt.Fprintf(w, "    %s\n", quoteLine(strings.ReplaceAll(line, "\t", "    ")))
	}
	if n < len(u.Executes) {
		fmt.Fprintf(w, "    and %s\n", count(len(u.Executes)-n, "more line"))
	}
}

// The entries of what is no surface by its name and is told all the same,
// where trees of git's are compared.
func unsafeEntry(why string) *surface.Entry {
	return &surface.Entry{ID: "unsafe-path", Trigger: "git checkout, restore or reset: " + why, Fixed: true}
}

func submoduleEntry() *surface.Entry {
	return &surface.Entry{ID: "git-submodule", Trigger: "git submodule update, and whatever builds it", Strict: surface.Review, Balanced: surface.Review}
}

// judge says how a path of one of git's trees is judged: the matcher's word,
// and besides it paths that git must not write and submodules.
func judge(m *surface.Matcher, e surface.WalkEntry) (surface.Hit, bool) {
	if why := git.UnsafePath(e.Path); why != "" {
		return surface.Hit{Entry: unsafeEntry(why), Protection: surface.Freeze}, true
	}
	hit, ok := m.Match(e.Path, e.Type)
	if !ok && e.Type == surface.Gitlink {
		return surface.Hit{Entry: submoduleEntry(), Protection: surface.Review}, true
	}
	return hit, ok
}

// judged hashes what is judged of paths in one of git's trees.
func judged(t surface.Tree, m *surface.Matcher, paths map[string]bool) (*integrity.Manifest, error) {
	set := &surface.Set{}
	for path := range paths {
		e, err := t.Lstat(path)
		if errors.Is(err, surface.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if hit, ok := judge(m, e); ok && e.Type != surface.Dir {
			set.Members = append(set.Members, surface.Member{WalkEntry: e, Hit: hit})
		}
	}
	slices.SortFunc(set.Members, func(a, b surface.Member) int { return strings.Compare(a.Path, b.Path) })
	return integrity.Snapshot(t, set)
}

// comparison is two trees of git's and the paths in which they may differ.
type comparison struct {
	old, now surface.Tree
	matcher  *surface.Matcher
	paths    map[string]bool
}

// add takes in a difference, unless it is sure that it is no surface's.
func (c *comparison) add(d git.TreeChange) {
	for _, mode := range []uint32{d.OldMode, d.NewMode} {
		if mode == 0 {
			continue
		}
		if _, ok := judge(c.matcher, surface.WalkEntry{Path: d.Path, Type: typeOf(mode)}); ok {
			c.paths[d.Path] = true
		}
	}
}

func typeOf(mode uint32) surface.Type {
	switch mode {
	case 0o100644, 0o100755:
		return surface.Regular
	case 0o120000:
		return surface.Symlink
	case 0o160000:
		return surface.Gitlink
	case 0o040000:
		return surface.Dir
	}
	return surface.Other
}

// changes returns what executes differently and is not only noted.
func (c *comparison) changes() ([]integrity.Change, error) {
	if len(c.paths) == 0 {
		return nil, nil
	}
	a, err := judged(c.old, c.matcher, c.paths)
	if err != nil {
		return nil, err
	}
	b, err := judged(c.now, c.matcher, c.paths)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(integrity.Diff(a, b), func(c integrity.Change) bool {
		gone := c.New.Kind == integrity.Absent && c.Entry == unsafeEntry("").ID
		return c.What == integrity.DataChanged || c.Protection == surface.Note || gone
	}), nil
}

// finding reads what a change is about, for showing it.
func (c *comparison) finding(d integrity.Change) (Unapproved, error) {
	old, err := versionIn(c.old, d.Old)
	if err != nil {
		return Unapproved{}, err
	}
	now, err := versionIn(c.now, d.New)
	if err != nil {
		return Unapproved{}, err
	}
	return Unapproved{
		Path: d.Path, What: string(d.What), Entry: d.Entry, Trigger: d.Trigger,
		Protection: d.Protection.String(), Executes: effect(old, now),
	}, nil
}

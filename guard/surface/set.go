package surface

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Member is one surface that exists in a tree.
type Member struct {
	WalkEntry
	Hit      Hit
	WholeDir bool // everything below this directory is frozen; without it a directory is frozen as a name only
}

// Set is the surfaces of one tree.
type Set struct {
	Members []Member // sorted by Path; a path is there once
}

// Resolve walks t once and returns what m matches, each member with all the
// fields of its Lstat: files, links, and directories whose name or whole
// content is a surface. A member that vanished during the walk is left out.
func Resolve(t Tree, m *Matcher) (*Set, error) {
	var s Set
	var bare bareFinder
	err := t.Walk(func(e WalkEntry) error {
		bare.see(e.Path)
		if e.Type == Dir && m.Prune(e.Path) {
			return SkipDir
		}
		if hit, ok := m.Match(e.Path, e.Type); ok {
			s.Members = append(s.Members, Member{WalkEntry: e, Hit: hit})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for surfaces: %w", err)
	}
	if err := s.addBare(t, m, bare.repos()); err != nil {
		return nil, fmt.Errorf("looking into bare repositories: %w", err)
	}
	if err := s.complete(t, m); err != nil {
		return nil, err
	}
	return &s, nil
}

// complete asks for the fields a walk leaves out. A name whose type changed
// since the walk is judged as what it is now.
func (s *Set) complete(t Tree, m *Matcher) error {
	kept := s.Members[:0]
	for _, mem := range s.Members {
		e, err := t.Lstat(mem.Path)
		if errors.Is(err, ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking at surface %q: %w", mem.Path, err)
		}
		if e.Type != mem.Type {
			if hit, ok := m.Match(e.Path, e.Type); ok {
				mem.Hit = hit
			}
		}
		mem.WalkEntry = e
		if e.Type == Dir {
			_, mem.WholeDir = m.WholeDir(e.Path)
		}
		kept = append(kept, mem)
	}
	s.Members = kept
	slices.SortFunc(s.Members, func(a, b Member) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Hit.Protection, b.Hit.Protection))
	})
	s.Members = slices.CompactFunc(s.Members, func(a, b Member) bool { return a.Path == b.Path })
	return nil
}

// Lookup returns the member of exactly that path.
func (s *Set) Lookup(path string) (Member, bool) {
	i, ok := slices.BinarySearchFunc(s.Members, path, func(m Member, path string) int {
		return strings.Compare(m.Path, path)
	})
	if !ok {
		return Member{}, false
	}
	return s.Members[i], true
}

package surface

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func memberLines(s *Set) []string {
	var lines []string
	for _, m := range s.Members {
		line := m.Path + " " + m.Hit.Protection.String()
		if m.WholeDir {
			line += " whole"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestResolve(t *testing.T) {
	root := diskTree(t,
		".git/config", ".git/hooks/pre-commit", ".git/objects/ab/conftest.py", ".git/objects/info/alternates",
		".git/refs/heads/conftest.py", ".husky/pre-commit", "src/main.go", "src/package.json",
		"node_modules/p/package.json", "node_modules/p/index.js", "lib/.vscode -> ../src", "AGENTS.md",
	)
	s, err := Resolve(openTree(t, root), mustMatcher(t, Rules{Profile: Balanced}))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		".git freeze", ".git/config freeze", ".git/hooks freeze whole", ".git/hooks/pre-commit freeze",
		".git/objects/info/alternates review", ".husky freeze whole", ".husky/pre-commit freeze", "AGENTS.md review",
		"lib/.vscode freeze", "node_modules/p/package.json note", "src/package.json review",
	}
	if got := memberLines(s); !slices.Equal(got, want) {
		t.Errorf("members:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	link, ok := s.Lookup("lib/.vscode")
	if !ok || link.Type != Symlink || link.Link != "../src" || link.Ino == 0 {
		t.Errorf("link = %+v, %v, want its text and identity", link, ok)
	}
	if _, ok := s.Lookup("src/main.go"); ok {
		t.Error("Lookup finds a path that is no surface")
	}
	if _, ok := (&Set{}).Lookup(".git"); ok {
		t.Error("an empty set finds something")
	}
}

// brokenTree fails in one of its methods.
type brokenTree struct {
	Tree
	walk, lstat error
}

func (b brokenTree) Walk(fn func(WalkEntry) error) error {
	if b.walk != nil {
		return b.walk
	}
	return b.Tree.Walk(fn)
}

func (b brokenTree) Lstat(path string) (WalkEntry, error) { return WalkEntry{}, b.lstat }

func TestResolveFailures(t *testing.T) {
	m := mustMatcher(t, Rules{})
	tree := MapTree{"package.json": {}}
	io := errors.New("input/output error")
	for name, b := range map[string]brokenTree{"walk": {tree, io, nil}, "lstat": {tree, nil, io}} {
		if s, err := Resolve(b, m); !errors.Is(err, io) || s != nil {
			t.Errorf("%s: Resolve = %v, %v, want the error", name, s, err)
		}
	}
	s, err := Resolve(brokenTree{tree, nil, ErrNotExist}, m)
	if err != nil || len(s.Members) != 0 {
		t.Errorf("a vanished member: %v, %v, want none", s, err)
	}
}

func TestResolveBareInGeneratedTree(t *testing.T) {
	tree := MapTree{"node_modules/p/fix/HEAD": {}, "node_modules/p/fix/objects/x": {}, "node_modules/p/fix/refs/x": {}, "node_modules/p/fix/config": {}}
	s, err := Resolve(tree, mustMatcher(t, Rules{}))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := memberLines(s), []string{"node_modules/p/fix/HEAD note", "node_modules/p/fix/config note"}; !slices.Equal(got, want) {
		t.Errorf("members = %q, want %q", got, want)
	}
}

func TestPrefix(t *testing.T) {
	root := diskTree(t, "config", "hooks/pre-commit")
	tree := Prefix(openTree(t, root), ".git")
	s, err := Resolve(tree, mustMatcher(t, Rules{}))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := memberLines(s), []string{".git/config freeze", ".git/hooks freeze whole", ".git/hooks/pre-commit freeze"}; !slices.Equal(got, want) {
		t.Errorf("members = %q, want %q", got, want)
	}
	r, e, err := tree.Open(".git/hooks/pre-commit")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if data, err := io.ReadAll(r); err != nil || string(data) != "hooks/pre-commit" || e.Path != ".git/hooks/pre-commit" {
		t.Errorf("Open = %q of %q, %v", data, e.Path, err)
	}
	for _, path := range []string{"config", ".git", ".git/", ".gitx/config", "x/.git/config"} {
		if _, err := tree.Lstat(path); err == nil {
			t.Errorf("Lstat(%q) finds something", path)
		}
		if _, _, err := tree.Open(path); err == nil {
			t.Errorf("Open(%q) finds something", path)
		}
	}
}

func TestMapTree(t *testing.T) {
	tree := MapTree{"a/b": {Data: "x"}, "a.c": {Perm: 0o755}, "l": {Type: Symlink, Data: "a"}, "m": {Type: Gitlink, Hash: "1f"}, "d/e": {}}
	got := walked(t, tree, func(e WalkEntry) error {
		if e.Path == "d" {
			return SkipDir
		}
		return nil
	})
	if want := []string{"a dir", "a.c file", "a/b file", "d dir", "l link", "m gitlink"}; !slices.Equal(got, want) {
		t.Errorf("walk = %q, want %q", got, want)
	}
	for path, mode := range map[string]uint32{"a": 0o040000, "a/b": 0o100644, "a.c": 0o100755, "l": 0o120000, "m": 0o160000} {
		if e, err := tree.Lstat(path); err != nil || e.Mode != mode {
			t.Errorf("Lstat(%q) = %o, %v, want mode %o", path, e.Mode, err, mode)
		}
	}
	if _, _, err := tree.Open("a"); !errors.Is(err, ErrNotRegular) {
		t.Errorf("opening a directory = %v", err)
	}
	if _, _, err := tree.Open(filepath.Join("a", "none")); !errors.Is(err, ErrNotExist) {
		t.Errorf("opening nothing = %v", err)
	}
}

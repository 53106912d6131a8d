package integrity

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentguard/guard/surface"
)

func told(fs []Finding) string {
	var out []string
	for _, f := range fs {
		out = append(out, fmt.Sprintf("%s %s @ %s", f.Path, f.What, strings.Join(f.Places, "+")))
	}
	return strings.Join(out, "; ")
}

func TestCompare(t *testing.T) {
	hook := file(".githooks/pre-commit", "evil")
	pkg := with(file("package.json", "1"), func(f *File) { f.Part = sum("scripts") })
	review := with(pkg, func(f *File) { f.Protection = surface.Review })
	start := one(pkg)
	trees := func(m *Manifest) map[string]*Manifest { return map[string]*Manifest{"HEAD": m, "refs/heads/main": m} }
	before := State{WorkTree: start, Index: start, Trees: trees(start)}
	planted := NewManifest([]File{pkg, hook})
	rows := []struct {
		name  string
		after State
		want  string
	}{
		{"nothing", before, ""},
		{"work tree only", State{WorkTree: planted, Index: start, Trees: trees(start)},
			".githooks/pre-commit added @ work tree"},
		{"hash-object and update-index, no file touched", State{WorkTree: start, Index: planted, Trees: trees(start)},
			".githooks/pre-commit added @ index"},
		{"commit-tree, no file touched", State{WorkTree: start, Index: start, Trees: trees(planted)},
			".githooks/pre-commit added @ HEAD+refs/heads/main"},
		{"everywhere is told once", State{WorkTree: planted, Index: planted, Trees: trees(planted)},
			".githooks/pre-commit added @ work tree+index+HEAD+refs/heads/main"},
		{"a new branch is judged against HEAD", State{WorkTree: start, Index: start,
			Trees: map[string]*Manifest{"refs/heads/new": planted}}, ".githooks/pre-commit added @ refs/heads/new"},
		{"a new branch that holds what HEAD does", State{WorkTree: start, Index: start,
			Trees: map[string]*Manifest{"refs/heads/new": start}}, ""},
		{"other content elsewhere is another finding", State{WorkTree: one(file("package.json", "2")), Index: one(file("package.json", "3"))},
			"package.json executable part changed @ work tree; package.json executable part changed @ index"},
		{"data of a frozen one", State{WorkTree: one(with(pkg, func(f *File) { f.Whole = sum("2") }))},
			"package.json data @ work tree"},
		{"a place not looked at is no finding", State{}, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := told(Compare(before, row.after)); got != row.want {
				t.Errorf("Compare = %q, want %q", got, row.want)
			}
		})
	}
	t.Run("data under review", func(t *testing.T) {
		got := Compare(State{WorkTree: one(review)}, State{WorkTree: one(with(review, func(f *File) { f.Whole = sum("2") }))})
		if len(got) != 0 {
			t.Errorf("Compare = %s", told(got))
		}
	})
	t.Run("nothing to compare a ref with tells all", func(t *testing.T) {
		got := Compare(State{}, State{Trees: map[string]*Manifest{"refs/heads/new": planted}})
		if len(got) != 2 {
			t.Errorf("Compare = %s", told(got))
		}
	})
	t.Run("the stricter place decides", func(t *testing.T) {
		low := with(hook, func(f *File) { f.Protection = surface.Note })
		got := Compare(before, State{WorkTree: NewManifest([]File{pkg, low}), Index: planted})
		if len(got) != 1 || got[0].Protection != surface.Freeze {
			t.Errorf("Compare = %+v", got)
		}
	})
}

func TestStaleFiles(t *testing.T) {
	old, new := file("Makefile", "1"), file("Makefile", "2")
	soft := func(f File) File { return with(f, func(f *File) { f.Protection = surface.Review }) }
	state := func(wt, idx *Manifest) State { return State{WorkTree: wt, Index: idx} }
	rows := []struct {
		name          string
		before, after State
		want          int
	}{
		{"git could not replace it", state(one(old), one(old)), state(one(old), one(new)), 1},
		{"git could not create it", state(empty(), empty()), state(empty(), one(new)), 1},
		{"git could not remove it", state(one(old), one(old)), state(one(old), empty()), 1},
		{"git did replace it", state(one(old), one(old)), state(one(new), one(new)), 0},
		{"the user had changed it and the index stayed", state(one(new), one(old)), state(one(new), one(old)), 0},
		{"the index came to what the user had", state(one(new), one(old)), state(one(new), one(new)), 0},
		{"no frozen one", state(one(soft(old)), one(soft(old))), state(one(soft(old)), one(soft(new))), 0},
		{"index not looked at", State{}, State{}, 0},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := StaleFiles(row.before, row.after); len(got) != row.want {
				t.Errorf("StaleFiles = %+v, want %d", got, row.want)
			}
		})
	}
}

func empty() *Manifest { return NewManifest(nil) }

func TestStateIsKept(t *testing.T) {
	f := with(file("a\xff b", "1"), func(f *File) {
		f.Protection, f.Trigger, f.Perm, f.Nlink, f.Part = surface.Review, "make", 0o600, 2, sum("p")
	})
	s := State{WorkTree: one(f), Trees: map[string]*Manifest{"refs/heads/\xfe": one(f), "HEAD": NewManifest(nil)}}
	name := filepath.Join(t.TempDir(), "run", "before.json")
	if err := s.Save(name); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	got, err := LoadState(name)
	if err != nil {
		t.Fatal(err)
	}
	if got.WorkTree.Get(f.Path) != f || got.Trees["refs/heads/\xfe"].Get(f.Path) != f {
		t.Errorf("got %+v", got.WorkTree.Files())
	}
	if got.Index != nil || got.Trees["HEAD"] == nil {
		t.Error("not taken and empty are mixed up")
	}
	for _, bad := range []string{"", "{}", `{"version":2}`, `{"version":1,"more":1}`, `{"version":1,"index":[{"path":"a"}]}`} {
		if _, err := decodeState([]byte(bad)); err == nil {
			t.Errorf("decodeState(%q) took it", bad)
		}
	}
}

func FuzzDecodeState(f *testing.F) {
	f.Add([]byte(`{"version":1,"worktree":null,"index":[],"trees":{}}`))
	name := filepath.Join(f.TempDir(), "s")
	if err := (State{WorkTree: one(file("a b", "1")), Trees: map[string]*Manifest{"HEAD": empty()}}).Save(name); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeState(data)
		if err != nil {
			return
		}
		name := filepath.Join(t.TempDir(), "s")
		if err := s.Save(name); err != nil {
			t.Fatal(err)
		}
		back, err := LoadState(name)
		if err != nil {
			t.Fatalf("what was saved does not load: %v", err)
		}
		if len(Compare(s, back)) != 0 || len(Compare(back, s)) != 0 || len(back.Trees) != len(s.Trees) {
			t.Error("differs after a round trip")
		}
	})
}

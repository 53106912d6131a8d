package surface

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// vector is one attack: a tree and what is expected of each of its paths.
type vector struct {
	file   string
	entry  string
	expect []expectation
	tree   MapTree
}

type expectation struct{ strict, balanced, path string }

// loadVectors reads testdata/surface: a comment, headers, then the files of
// the tree, as in a txtar archive.
func loadVectors(t testing.TB) []vector {
	t.Helper()
	files, err := filepath.Glob("../../testdata/surface/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	var all []vector
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, err := parseVector(string(data))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		v.file = filepath.Base(file)
		all = append(all, v)
	}
	return all
}

func parseVector(text string) (vector, error) {
	v := vector{tree: MapTree{}}
	if !strings.HasPrefix(text, "# ") {
		return v, fmt.Errorf("the first line is no comment")
	}
	file := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(trimmed, "-- "); ok && strings.HasSuffix(name, " --") {
			file = strings.TrimSuffix(name, " --")
			v.tree[file] = MapFile{}
			continue
		}
		if file != "" {
			f := v.tree[file]
			f.Data += line
			v.tree[file] = f
			continue
		}
		key, value, _ := strings.Cut(trimmed, ": ")
		switch {
		case strings.HasPrefix(trimmed, "#"):
		case key == "entry":
			v.entry = value
		case key == "link":
			path, target, _ := strings.Cut(value, " ")
			v.tree[path] = MapFile{Type: Symlink, Data: target}
		case key == "expect":
			words, path, ok := strings.Cut(value, " ")
			strict, balanced, ok2 := strings.Cut(words, "/")
			if !ok || !ok2 {
				return v, fmt.Errorf("expect %q", value)
			}
			v.expect = append(v.expect, expectation{strict, balanced, path})
		default:
			return v, fmt.Errorf("unknown header %q", trimmed)
		}
	}
	return v, nil
}

// check returns how the members of the vector's tree differ from what it
// expects.
func (v vector) check(m *Matcher, p Profile) (wrong []string) {
	set, err := Resolve(v.tree, m)
	if err != nil {
		return []string{err.Error()}
	}
	named := map[string]bool{}
	for _, e := range v.expect {
		named[e.path] = true
		want := e.strict
		if p == Balanced {
			want = e.balanced
		}
		got, id := "clean", v.entry
		if mem, ok := set.Lookup(e.path); ok {
			got, id = mem.Hit.Protection.String(), mem.Hit.Entry.ID
		}
		if got != want || id != v.entry {
			wrong = append(wrong, fmt.Sprintf("%s, %v: %s by %s, want %s by %s", e.path, p, got, id, want, v.entry))
		}
	}
	for _, mem := range set.Members {
		if mem.Type != Dir && !named[mem.Path] {
			wrong = append(wrong, fmt.Sprintf("%s, %v: %s, which the vector does not name", mem.Path, p, mem.Hit.Rule))
		}
	}
	for path := range v.tree {
		if !named[path] {
			wrong = append(wrong, path+": the vector says nothing of it")
		}
	}
	return wrong
}

func TestVectors(t *testing.T) {
	for _, p := range []Profile{Strict, Balanced} {
		m := mustMatcher(t, Rules{Profile: p})
		for _, v := range loadVectors(t) {
			t.Run(p.String()+"/"+v.file, func(t *testing.T) {
				for _, w := range v.check(m, p) {
					t.Error(w)
				}
			})
		}
	}
}

// Each entry has a vector, and each vector tests its entry: without it, it
// fails.
func TestVectorsNeedTheirEntry(t *testing.T) {
	byEntry := map[string][]vector{}
	for _, v := range loadVectors(t) {
		byEntry[v.entry] = append(byEntry[v.entry], v)
	}
	all := Catalogue()
	for i, e := range all {
		t.Run(e.ID, func(t *testing.T) {
			if len(byEntry[e.ID]) == 0 {
				t.Fatal("no vector")
			}
			without := slices.Delete(slices.Clone(all), i, i+1)
			m, err := NewMatcher(without, Rules{})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range byEntry[e.ID] {
				if len(v.check(m, Strict)) == 0 {
					t.Errorf("%s passes without the entry", v.file)
				}
			}
		})
		delete(byEntry, e.ID)
	}
	for id := range byEntry {
		t.Errorf("a vector is for %q, which is no entry", id)
	}
}

func TestCatalogueRows(t *testing.T) {
	for _, e := range Catalogue() {
		t.Run(e.ID, func(t *testing.T) {
			if e.Title == "" || e.Ecosystem == "" || e.Trigger == "" || e.Why == "" || e.Source == "" || len(e.Patterns) == 0 {
				t.Errorf("a column is empty: %+v", e)
			}
			if e.Strict > e.Balanced {
				t.Errorf("strict is laxer (%v) than balanced (%v)", e.Strict, e.Balanced)
			}
			if e.Part == PackageJSON && len(e.Keys) == 0 {
				t.Error("no executing keys")
			}
			if got, ok := Lookup(e.ID); !ok || got.Title != e.Title {
				t.Errorf("Lookup(%q) = %v, %v", e.ID, got.Title, ok)
			}
		})
	}
	if _, ok := Lookup("no such entry"); ok {
		t.Error("Lookup finds what is not there")
	}
}

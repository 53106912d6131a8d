package integrity

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"agentguard/guard/surface"
)

// testMatcher has one entry of each way to judge.
func testMatcher(t testing.TB) *surface.Matcher {
	t.Helper()
	m, err := surface.NewMatcher([]surface.Entry{
		{ID: "node", Trigger: "npm install", Strict: surface.Review, Part: surface.PackageJSON, Keys: []string{"scripts"},
			Patterns: []surface.Pattern{{Glob: "package.json", Anywhere: true}}},
		{ID: "make", Trigger: "make", Patterns: []surface.Pattern{{Glob: "Makefile", Anywhere: true}}},
		{ID: "hooks", Trigger: "git", Patterns: []surface.Pattern{{Glob: ".githooks/**"}}},
	}, surface.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func snapshot(t testing.TB, tree surface.Tree) *Manifest {
	t.Helper()
	set, err := surface.Resolve(tree, testMatcher(t))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Snapshot(tree, set)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func snapshotDir(t testing.TB, dir string) *Manifest {
	t.Helper()
	tree, err := surface.WorkTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot(t, tree)
}

// disk is a work tree with every kind of surface in it.
func disk(t *testing.T) start {
	t.Helper()
	s := start{t: t}
	s.Root = t.TempDir()
	s.write("Makefile", "all:\n")
	s.write("sub/package.json", `{"name":"a","scripts":{"x":"y"}}`)
	s.write("main.go", "no surface")
	s.write(".githooks/pre-commit", "#!/bin/sh\n")
	s.must(os.Chmod(s.path(".githooks/pre-commit"), 0o755))
	s.must(os.Symlink("../main.go", s.path(".githooks/post-merge")))
	s.must(syscall.Mkfifo(s.path(".githooks/pipe"), 0o644))
	return s
}

func TestSnapshot(t *testing.T) {
	s := disk(t)
	m := snapshotDir(t, s.Root)
	rows := []struct {
		path  string
		kind  Kind
		mode  uint32
		whole Sum
		entry string
	}{
		{".githooks", Dir, 0o040000, Sum{}, "hooks"},
		{".githooks/pipe", Other, 0, Sum{}, "hooks"},
		{".githooks/post-merge", Link, 0o120000, sum("../main.go"), "hooks"},
		{".githooks/pre-commit", Regular, 0o100755, sum("#!/bin/sh\n"), "hooks"},
		{"Makefile", Regular, 0o100644, sum("all:\n"), "make"},
		{"sub/package.json", Regular, 0o100644, sum(`{"name":"a","scripts":{"x":"y"}}`), "node"},
	}
	if len(m.Files()) != len(rows) {
		t.Errorf("%d lines, want %d: %s", len(m.Files()), len(rows), text(t, m))
	}
	for _, row := range rows {
		f := m.Get(row.path)
		if f.Kind != row.kind || f.Mode != row.mode || f.Whole != row.whole || f.Entry != row.entry || f.Trigger == "" {
			t.Errorf("%s: %+v, want %+v", row.path, f, row)
		}
	}
	if f := m.Get("sub/package.json"); f.Protection != surface.Review || f.Size != 32 || f.Nlink != 1 || f.Perm != 0o644 {
		t.Errorf("package.json: %+v", f)
	}
}

// Each thing that an agent can do to the tree is one change.
func TestSnapshotSees(t *testing.T) {
	rows := []struct {
		name string
		do   func(s start)
		want string
	}{
		{"nothing", func(start) {}, ""},
		{"no surface", func(s start) { s.write("other.go", "x") }, ""},
		{"what a link names", func(s start) { s.write("main.go", "x") }, ".githooks/post-merge executable part changed"},
		{"content", func(s start) { s.write("Makefile", "x") }, "Makefile changed"},
		{"content, times put back", func(s start) {
			info, err := os.Stat(s.path("Makefile"))
			s.must(err)
			s.write("Makefile", "ALL:\n")
			s.must(os.Chtimes(s.path("Makefile"), info.ModTime(), info.ModTime()))
		}, "Makefile changed"},
		{"armed", func(s start) { s.must(os.Chmod(s.path("Makefile"), 0o755)) }, "Makefile mode"},
		{"disarmed", func(s start) { s.must(os.Chmod(s.path(".githooks/pre-commit"), 0o644)) }, ".githooks/pre-commit mode"},
		{"added with an odd name", func(s start) { s.write(".githooks/h", "") }, ".githooks/h added"},
		{"removed", func(s start) { s.must(os.Remove(s.path("Makefile"))) }, "Makefile removed"},
		{"link text", func(s start) {
			s.must(os.Remove(s.path(".githooks/post-merge")))
			s.must(os.Symlink("../evil", s.path(".githooks/post-merge")))
		}, ".githooks/post-merge executable part changed"},
		{"file to link", func(s start) {
			s.must(os.Rename(s.path("Makefile"), s.path("m")))
			s.must(os.Symlink("m", s.path("Makefile")))
		}, "Makefile type"},
	}
	if runtime.GOOS == "linux" { // others refuse such a name
		rows = append(rows, rows[0])
		last := &rows[len(rows)-1]
		last.name, last.want = "a name that is not UTF-8", ".githooks/\xff added"
		last.do = func(s start) { s.write(".githooks/\xff", "") }
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s := disk(t)
			before := snapshotDir(t, s.Root)
			row.do(s)
			var got []string
			for _, c := range Diff(before, snapshotDir(t, s.Root)) {
				got = append(got, c.Path+" "+string(c.What))
			}
			if g := strings.Join(got, ", "); g != row.want {
				t.Errorf("Diff = %q, want %q", g, row.want)
			}
		})
	}
}

func TestExecutablePart(t *testing.T) {
	const before = `{"name":"a","scripts":{"x":"y"}}`
	rows := []struct {
		name, after string
		what        What
		harmless    bool
	}{
		{"name", `{"name":"b","scripts":{"x":"y"}}`, DataChanged, true},
		{"script", `{"name":"a","scripts":{"x":"evil"}}`, PartChanged, false},
		{"malformed", `{"name":"a","scripts":{"x":"y"}`, PartChanged, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			d := Diff(snapshot(t, surface.MapTree{"package.json": {Data: before}}), snapshot(t, surface.MapTree{"package.json": {Data: row.after}}))
			if len(d) != 1 || d[0].What != row.what || d[0].Harmless() != row.harmless {
				t.Errorf("Diff = %+v", d)
			}
		})
	}
}

// A work tree, and a tree that knows nothing of a disk, agree on the same
// content.
func TestTreesAgree(t *testing.T) {
	s := disk(t)
	s.must(os.Remove(s.path(".githooks/pipe")))
	mem := surface.MapTree{
		"Makefile":              {Data: "all:\n"},
		"sub/package.json":      {Data: `{"name":"a","scripts":{"x":"y"}}`},
		".githooks/pre-commit":  {Data: "#!/bin/sh\n", Perm: 0o755},
		".githooks/post-merge":  {Data: "../main.go", Type: surface.Symlink},
		"main.go":               {Data: "no surface"},
		"docs/unrelated/readme": {Data: "x"},
	}
	if d := Diff(snapshotDir(t, s.Root).Select(Tracked), snapshot(t, mem).Select(Tracked)); len(d) != 0 {
		t.Errorf("Diff = %+v", d)
	}
}

// The tree on disk must tell the times that show a write during the hash.
func TestWorkTreeIdentifies(t *testing.T) {
	s := disk(t)
	tree, err := surface.WorkTree(s.Root)
	s.must(err)
	r, _, err := tree.Open("Makefile")
	s.must(err)
	defer r.Close()
	before, err := identify(r)
	s.must(err)
	if before.ctime == 0 || before.mtime == 0 || before.size != 5 {
		t.Errorf("identity %+v", before)
	}
	s.write("Makefile", "evil:\n")
	if after, err := identify(r); err != nil || after == before {
		t.Errorf("a write does not show: %+v, %v", after, err)
	}
}

// restless is a tree whose file is written while it is read, as often as told.
type restless struct {
	surface.Tree
	path   string
	writes int
}

type writeOnRead struct {
	*os.File
	t *restless
}

func (r *restless) Open(path string) (io.ReadCloser, surface.WalkEntry, error) {
	f, e, err := r.Tree.Open(path)
	if err != nil || r.writes == 0 {
		return f, e, err
	}
	r.writes--
	return writeOnRead{f.(*os.File), r}, e, nil
}

func (w writeOnRead) Read(p []byte) (int, error) {
	n, err := w.File.Read(p)
	if err == io.EOF {
		f, werr := os.OpenFile(w.t.path, os.O_APPEND|os.O_WRONLY, 0)
		if werr != nil {
			return n, werr
		}
		defer f.Close()
		if _, werr := f.WriteString("x"); werr != nil {
			return n, werr
		}
	}
	return n, err
}

func TestSnapshotOfAMovingFile(t *testing.T) {
	for _, row := range []struct {
		writes int
		want   string
	}{{0, "all:\n"}, {1, "all:\nx"}, {2, "all:\nxx"}, {3, ""}} {
		t.Run(fmt.Sprint(row.writes), func(t *testing.T) {
			s := start{t: t}
			s.Root = t.TempDir()
			s.write("Makefile", "all:\n")
			tree, err := surface.WorkTree(s.Root)
			s.must(err)
			set, err := surface.Resolve(tree, testMatcher(t))
			s.must(err)
			m, err := Snapshot(&restless{tree, s.path("Makefile"), row.writes}, set)
			if row.want == "" {
				if ue, ok := errors.AsType[*UnstableError](err); !ok || ue.Path != "Makefile" || m != nil {
					t.Errorf("Snapshot = %v, %v, want an UnstableError", m, err)
				}
				return
			}
			if err != nil || m.Get("Makefile").Whole != sum(row.want) {
				t.Errorf("Snapshot = %+v, %v", m.Files(), err)
			}
		})
	}
}

// A set is older than its snapshot: what went, or is something else by now, is
// recorded as it is.
func TestSnapshotOfAnOldSet(t *testing.T) {
	s := disk(t)
	tree, err := surface.WorkTree(s.Root)
	s.must(err)
	set, err := surface.Resolve(tree, testMatcher(t))
	s.must(err)
	s.must(os.Remove(s.path("Makefile")))
	s.must(os.Remove(s.path("sub/package.json")))
	s.must(syscall.Mkfifo(s.path("sub/package.json"), 0o644))
	s.must(os.Remove(s.path(".githooks/pre-commit")))
	s.must(os.Symlink("x", s.path(".githooks/pre-commit")))
	m, err := Snapshot(tree, set)
	s.must(err)
	if m.Get("Makefile").Kind != Absent || m.Get("sub/package.json").Kind != Other || m.Get(".githooks/pre-commit").Kind != Link {
		t.Errorf("manifest:\n%s", text(t, m))
	}
}

func TestLongFileIsStreamed(t *testing.T) {
	s := start{t: t}
	s.Root = t.TempDir()
	for _, name := range []string{"Makefile", "package.json"} {
		s.write(name, "")
		s.must(os.Truncate(s.path(name), maxPart+1))
	}
	m := snapshotDir(t, s.Root)
	want := sum(string(bytes.Repeat([]byte{0}, maxPart+1)))
	for _, name := range []string{"Makefile", "package.json"} {
		if f := m.Get(name); f.Whole != want || f.Part != want || f.Size != maxPart+1 {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentguard/guard/event"
	"agentguard/guard/surface"

	"github.com/fsnotify/fsnotify"
)

func TestEventOfEachProtection(t *testing.T) {
	root := files(t)
	r := begin(t, root, Options{})
	rows := []struct {
		path, rule, protection, hint string
		verdict                      event.Verdict
	}{
		{"Makefile", "make", "freeze", "agentguard restore Makefile", event.Denied},
		{"package.json", "node", "review", "agentguard approve package.json", event.Allowed},
		{"NOTE", "readme", "note", "", event.Allowed},
		{"a b/Makefile", "make", "freeze", "agentguard restore $'a b/Makefile'", event.Denied},
		{"\xff'/Makefile", "make", "freeze", `agentguard restore $'\xff\x27/Makefile'`, event.Denied},
		{"-x/Makefile", "make", "freeze", "agentguard restore $'-x/Makefile'", event.Denied},
	}
	for _, row := range rows {
		if !supported() && row.path[0] == 0xff {
			continue // such systems refuse the name
		}
		write(t, root, row.path, "new")
		e := r.wait(row.path, "created")
		if e.Rule != row.rule || e.Detail["protection"] != row.protection || e.Hint != row.hint || e.Verdict != row.verdict || e.Time.IsZero() {
			t.Errorf("%s: %+v", row.path, e)
		}
	}
}

// What was there at the start is not told, nor is a change told twice, nor
// what is no surface.
func TestSaysNothingTwice(t *testing.T) {
	root := files(t, "Makefile", "sub/package.json", "main.go")
	r := begin(t, root, Options{})
	write(t, root, "main.go", "new")
	write(t, root, "doc/main.go", "new")
	for i := range 50 {
		f, err := os.OpenFile(filepath.Join(root, "main.go"), os.O_APPEND|os.O_WRONLY, 0)
		must(t, err)
		fmt.Fprintln(f, i)
		f.Close()
	}
	write(t, root, "Makefile", "new")
	r.wait("Makefile", "changed")
	told := r.rest()
	if len(told) != 1 && !(len(told) == 2 && told[0].Subject == "Makefile" && told[1].Subject == "Makefile") {
		// The truncation and the write may have been seen apart.
		t.Errorf("told: %s", list(told))
	}
}

func TestToldWhenRunEnds(t *testing.T) {
	t.Run("notices under way", func(t *testing.T) {
		root := files(t)
		r := begin(t, root, Options{Interval: time.Hour})
		for i := range 300 {
			write(t, root, fmt.Sprintf("d%d/e/Makefile", i), "x")
		}
		told := map[string]bool{}
		for _, e := range r.rest() {
			told[e.Subject] = true
		}
		for i := range 300 {
			if p := fmt.Sprintf("d%d/e/Makefile", i); !told[p] {
				t.Errorf("%s was not told", p)
			}
		}
	})
	t.Run("a write through another name", func(t *testing.T) {
		root := files(t, "Makefile")
		outside := root + "-outside"
		must(t, os.Link(filepath.Join(root, "Makefile"), outside))
		r := begin(t, root, Options{Interval: time.Hour})
		must(t, os.WriteFile(outside, []byte("evil"), 0o644))
		r.rest()
		if len(r.told) == 0 || r.told[0].Subject != "Makefile" || r.told[0].Reason != "changed" {
			t.Errorf("told: %s", list(r.told))
		}
	})
}

func TestToldByComparison(t *testing.T) {
	root := files(t, "Makefile")
	outside := root + "-outside"
	must(t, os.Link(filepath.Join(root, "Makefile"), outside))
	r := begin(t, root, Options{Interval: 10 * time.Millisecond})
	must(t, os.WriteFile(outside, []byte("evil"), 0o644))
	r.wait("Makefile", "changed")
}

// The number of files copied in is larger than what one read of the kernel's
// queue gives, and the directories come faster than they can be watched.
func TestCopiedTree(t *testing.T) {
	root := files(t)
	r := begin(t, root, Options{Interval: time.Hour})
	want := map[string]bool{}
	for d := range 200 {
		for f := range 10 {
			p := fmt.Sprintf("copy/d%d/e%d/package.json", d, f)
			write(t, root, p, "x")
			want[p] = true
		}
	}
	for _, e := range r.rest() {
		if e.Kind == event.WatchChange && e.Detail["change"] == "created" {
			delete(want, e.Subject)
		}
	}
	if len(want) != 0 {
		t.Errorf("%d of 2,000 creates missed", len(want))
	}
}

// After a rename of a directory with watched children, what changes below is
// told under the new name.
func TestRenamedDirectoryIsFollowed(t *testing.T) {
	root := files(t, "a/b/c/Makefile")
	r := begin(t, root, Options{Interval: time.Hour})
	from := "a"
	for _, to := range []string{"x", "y", "a"} {
		must(t, os.Rename(filepath.Join(root, from), filepath.Join(root, to)))
		r.wait(to+"/b/c/Makefile", "created")
		write(t, root, to+"/b/c/Makefile", "by "+to)
		r.wait(to+"/b/c/Makefile", "changed", "written with the same content")
		write(t, root, to+"/b/package.json", "new in "+to)
		r.wait(to+"/b/package.json", "created", "changed")
		from = to
	}
}

func TestPathsOfCaller(t *testing.T) {
	root := files(t, "Makefile", "sub/deep/package.json", "quiet/Makefile", "node_modules/x/package.json", "build/a/run.sh")
	m := matcher(t)
	tree, err := surface.WorkTree(root)
	must(t, err)
	rec := &Recorder{Tree: tree}
	set, err := surface.Resolve(rec, m)
	must(t, err)
	must(t, os.Chmod(filepath.Join(root, "Makefile"), 0o755))
	must(t, os.Remove(filepath.Join(root, "quiet/Makefile")))
	r := begin(t, root, Options{Dirs: append(rec.Dirs, "gone", "sub/.", "."), Set: set, Interval: time.Hour})
	r.wait("Makefile", "mode changed")
	r.wait("quiet/Makefile", "removed")
	write(t, root, "sub/deep/package.json", "new")
	r.wait("sub/deep/package.json", "changed")
	write(t, root, "sub/deep/er/Makefile", "new")
	r.wait("sub/deep/er/Makefile", "created")
	write(t, root, ".git/hooks/x", "new")
	r.wait(".git/hooks/x", "created")
	// Inside generated trees only what is known or frozen is followed.
	must(t, os.Rename(filepath.Join(root, "build/a/run.sh"), filepath.Join(root, "build/a/x")))
	r.wait("build/a/run.sh", "moved away")
	write(t, root, "node_modules/x/package.json", "new")
	for _, e := range r.rest() {
		if strings.HasPrefix(e.Subject, "node_modules/x") {
			t.Errorf("generated tree is followed: %s", list(r.told))
		}
	}
}

func TestGitDirectoryElsewhere(t *testing.T) {
	root := files(t)
	must(t, os.RemoveAll(filepath.Join(root, ".git")))
	write(t, root, ".git", "gitdir: elsewhere")
	elsewhere := files(t) // its own .git/hooks is not the one meant
	write(t, elsewhere, "hooks/", "")
	r := begin(t, root, Options{More: []Root{{Dir: elsewhere, Prefix: ".git"}}, Interval: time.Hour})
	write(t, elsewhere, "hooks/pre-push", "evil")
	r.wait(".git/hooks/pre-push", "created")
	must(t, os.Rename(filepath.Join(elsewhere, "hooks"), filepath.Join(elsewhere, "hooks2")))
	r.wait(".git/hooks/pre-push", "removed")
}

func TestCloseWithoutRun(t *testing.T) {
	w, err := New(files(t), matcher(t), event.Discard, Options{})
	must(t, err)
	must(t, w.Close())
	must(t, w.Close())
	if _, err := New(filepath.Join(t.TempDir(), "none"), matcher(t), event.Discard, Options{}); err == nil {
		t.Error("New watches what is not there")
	}
}

func TestMerge(t *testing.T) {
	e := func(name string, op fsnotify.Op) fsnotify.Event { return fsnotify.Event{Name: name, Op: op} }
	rows := []struct {
		name     string
		in, want []fsnotify.Event
	}{
		{"writes of one name", []fsnotify.Event{e("a", fsnotify.Write), e("b", fsnotify.Write), e("a", fsnotify.Chmod)},
			[]fsnotify.Event{e("a", fsnotify.Write|fsnotify.Chmod), e("b", fsnotify.Write)}},
		{"a write after a create", []fsnotify.Event{e("a", fsnotify.Create), e("a", fsnotify.Write)},
			[]fsnotify.Event{e("a", fsnotify.Create|fsnotify.Write)}},
		{"coming and going keep their order",
			[]fsnotify.Event{e("a", fsnotify.Rename), e("b", fsnotify.Create), e("a", fsnotify.Create), e("a", fsnotify.Write), e("a", fsnotify.Remove)},
			[]fsnotify.Event{e("a", fsnotify.Rename), e("b", fsnotify.Create), e("a", fsnotify.Create|fsnotify.Write), e("a", fsnotify.Remove)}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := merge(row.in); !slices.Equal(got, row.want) {
				t.Errorf("merge = %v, want %v", got, row.want)
			}
		})
	}
}

func TestDiffers(t *testing.T) {
	there := state{present: true, typ: surface.Regular, ino: 1, ctime: 1, hashed: true}
	with := func(edit func(*state)) state { s := there; edit(&s); return s }
	rows := []struct {
		name     string
		old, now state
		op       fsnotify.Op
		want     string
	}{
		{"never there", state{}, state{}, fsnotify.Remove, ""},
		{"came and went between two looks", state{}, state{}, fsnotify.Create, "came and went"},
		{"the same again", there, there, fsnotify.Write, ""},
		{"written back", there, with(func(s *state) { s.ctime = 2 }), fsnotify.Write, "written with the same content"},
		{"times or owner", there, with(func(s *state) { s.ctime = 2 }), fsnotify.Chmod, "touched"},
		{"too long to hash", with(func(s *state) { s.hashed = false }), with(func(s *state) { s.hashed = false; s.ctime = 2 }), fsnotify.Write, "changed"},
		{"only noted so far", with(func(s *state) { s.hashed = false; s.ctime = 0 }), there, fsnotify.Write, "written"},
		{"a name less", with(func(s *state) { s.nlink = 2 }), with(func(s *state) { s.nlink = 1 }), 0, "unlinked elsewhere"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := differs(row.old, row.now, row.op); got != row.want {
				t.Errorf("differs = %q, want %q", got, row.want)
			}
		})
	}
}

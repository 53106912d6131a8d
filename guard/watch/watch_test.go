package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentguard/guard/event"
	"agentguard/guard/surface"
)

// deadline is how long a test waits for what must come; it is no measurement.
const deadline = 20 * time.Second

func matcher(t testing.TB) *surface.Matcher {
	t.Helper()
	any := func(id, glob string, p surface.Protection) surface.Entry {
		return surface.Entry{ID: id, Trigger: "run by " + id, Strict: p,
			Patterns: []surface.Pattern{{Glob: glob, Anywhere: true}}}
	}
	m, err := surface.NewMatcher([]surface.Entry{
		any("make", "Makefile", surface.Freeze),
		any("node", "package.json", surface.Review),
		any("vscode", ".vscode/tasks.json", surface.Freeze),
		any("readme", "NOTE", surface.Note),
		{ID: "hooks", Trigger: "git", Strict: surface.Freeze, Patterns: []surface.Pattern{{Glob: ".git/hooks/**"}}},
	}, surface.Rules{Protect: []string{"dist/frozen/**", "build/a/run.sh"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run is a watcher of a temporary work tree that runs.
type run struct {
	t      testing.TB
	root   string
	events chan event.Event
	told   []event.Event // taken from events so far
	loose  []event.Event // of those, what nothing has waited for
	stop   func()
}

// files makes a work tree.
func files(t testing.TB, names ...string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "tree")
	for _, n := range append(names, ".git/hooks/") {
		write(t, root, n, "old")
	}
	return root
}

// write makes one file, or a directory when its name ends in a slash.
func write(t testing.TB, root, name, content string) {
	t.Helper()
	p := filepath.Join(root, name)
	dir := filepath.Dir(p)
	if strings.HasSuffix(name, "/") {
		dir = p
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if dir != p {
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func begin(t testing.TB, root string, opts Options) *run {
	t.Helper()
	if opts.Interval == time.Hour && !opts.Poll && !supported() {
		t.Skip("no notices on this system")
	}
	r := &run{t: t, root: root, events: make(chan event.Event, 1<<16)}
	w, err := New(root, matcher(t), event.Func(func(e event.Event) { r.events <- e }), opts)
	must(t, err)
	r.start(w)
	return r
}

func (r *run) start(w *Watcher) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("Run: %v", err)
		}
		close(r.events)
	}
	r.t.Cleanup(r.stop)
}

// wait returns the first event, of those not waited for yet, that is a change
// of path in one of these ways.
func (r *run) wait(path string, ways ...string) event.Event {
	r.t.Helper()
	return r.until(path+" "+strings.Join(ways, "|"), func(e event.Event) bool {
		if e.Kind != event.WatchChange || e.Subject != path {
			return false
		}
		for _, way := range ways {
			if e.Detail["change"] == way {
				return true
			}
		}
		return false
	})
}

func (r *run) until(what string, ok func(event.Event) bool) event.Event {
	r.t.Helper()
	for i, e := range r.loose {
		if ok(e) {
			r.loose = slices.Delete(r.loose, i, i+1)
			return e
		}
	}
	timeout := time.After(deadline)
	for {
		select {
		case e, open := <-r.events:
			if !open {
				r.t.Fatalf("ended before %s\ntold: %s", what, list(r.told))
			}
			r.told = append(r.told, e)
			if ok(e) {
				return e
			}
			r.loose = append(r.loose, e)
		case <-timeout:
			r.t.Fatalf("never told: %s\ntold: %s", what, list(r.told))
		}
	}
}

// rest stops the watcher and returns everything it told.
func (r *run) rest() []event.Event {
	r.stop()
	for e := range r.events {
		r.told = append(r.told, e)
	}
	return r.told
}

func list(events []event.Event) string {
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s %s: %s", e.Kind, e.Subject, e.Reason))
	}
	return strings.Join(out, "\n  ")
}

func TestEachKindOfChange(t *testing.T) {
	rename := func(root, from, to string) error {
		return os.Rename(filepath.Join(root, from), filepath.Join(root, to))
	}
	rows := []struct {
		name   string
		path   string
		change string
		do     func(root string) error
	}{
		{"create by write", "sub/Makefile", "created", func(root string) error {
			return os.WriteFile(filepath.Join(root, "sub/Makefile"), nil, 0o644)
		}},
		{"write", "Makefile", "changed", func(root string) error {
			return os.WriteFile(filepath.Join(root, "Makefile"), []byte("new"), 0o644)
		}},
		{"append", "Makefile", "changed", func(root string) error {
			f, err := os.OpenFile(filepath.Join(root, "Makefile"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("x")
			return err
		}},
		{"truncate", "Makefile", "changed", func(root string) error { return os.Truncate(filepath.Join(root, "Makefile"), 0) }},
		{"write the same", "Makefile", "written with the same content", func(root string) error {
			f, err := os.OpenFile(filepath.Join(root, "Makefile"), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("old")
			return err
		}},
		{"rename over", "Makefile", "replaced", func(root string) error { return rename(root, "other", "Makefile") }},
		{"rename in", "sub/Makefile", "created", func(root string) error { return rename(root, "other", "sub/Makefile") }},
		{"rename in from outside", "sub/Makefile", "created", func(root string) error {
			if err := os.WriteFile(root+"-aside", nil, 0o644); err != nil {
				return err
			}
			return os.Rename(root+"-aside", filepath.Join(root, "sub/Makefile"))
		}},
		{"rename away", "Makefile", "moved away", func(root string) error { return rename(root, "Makefile", "x") }},
		{"remove", "Makefile", "removed", func(root string) error { return os.Remove(filepath.Join(root, "Makefile")) }},
		{"chmod", "Makefile", "mode changed", func(root string) error { return os.Chmod(filepath.Join(root, "Makefile"), 0o755) }},
		{"hard link to a surface's name", "sub/Makefile", "created", func(root string) error {
			return os.Link(filepath.Join(root, "other"), filepath.Join(root, "sub/Makefile"))
		}},
		{"hard link away", "Makefile", "hard-linked", func(root string) error {
			return os.Link(filepath.Join(root, "Makefile"), filepath.Join(root, "second"))
		}},
		{"symbolic link", "sub/Makefile", "created", func(root string) error {
			return os.Symlink("/etc/passwd", filepath.Join(root, "sub/Makefile"))
		}},
		{"becomes a link", "Makefile", "type changed", func(root string) error {
			if err := os.Symlink("/etc/passwd", filepath.Join(root, "tmp")); err != nil {
				return err
			}
			return rename(root, "tmp", "Makefile")
		}},
		{"FIFO", "sub/Makefile", "created", func(root string) error {
			return syscall.Mkfifo(filepath.Join(root, "sub/Makefile"), 0o644)
		}},
		{"a hook", ".git/hooks/pre-commit", "created", func(root string) error {
			return os.WriteFile(filepath.Join(root, ".git/hooks/pre-commit"), nil, 0o755)
		}},
		{"mkdir -p and write", "a/b/c/d/e/Makefile", "created", func(root string) error {
			if err := os.MkdirAll(filepath.Join(root, "a/b/c/d/e"), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(root, "a/b/c/d/e/Makefile"), nil, 0o644)
		}},
		{"a directory renamed in", "new/deep/Makefile", "created", func(root string) error { return rename(root, "dir", "new") }},
		{"a directory renamed away", "dir/deep/Makefile", "removed", func(root string) error { return rename(root, "dir", "new") }},
		{"a directory's name completes a surface", ".vscode/tasks.json", "created", func(root string) error {
			return rename(root, "editor", ".vscode")
		}},
		{"a directory swapped for a link", "dir/deep/Makefile", "removed", func(root string) error {
			if err := rename(root, "dir", "aside"); err != nil {
				return err
			}
			return os.Symlink("aside", filepath.Join(root, "dir"))
		}},
		{"a directory removed", "dir/deep/Makefile", "removed", func(root string) error { return os.RemoveAll(filepath.Join(root, "dir")) }},
		{"hooks directory replaced", ".git/hooks/post-checkout", "created", func(root string) error {
			if err := os.RemoveAll(filepath.Join(root, ".git/hooks")); err != nil {
				return err
			}
			if err := os.Mkdir(filepath.Join(root, ".git/hooks"), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(root, ".git/hooks/post-checkout"), nil, 0o755)
		}},
		{"in a frozen generated tree", "dist/frozen/new/x", "created", func(root string) error {
			if err := os.Mkdir(filepath.Join(root, "dist/frozen/new"), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(root, "dist/frozen/new/x"), nil, 0o644)
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			root := files(t, "Makefile", "other", "sub/", "dir/deep/Makefile", "editor/tasks.json", "dist/frozen/a")
			r := begin(t, root, Options{Interval: time.Hour})
			must(t, row.do(root))
			e := r.wait(row.path, row.change)
			if e.Rule == "" || e.Detail["trigger"] == "" || e.Hint == "" || e.Verdict != event.Denied {
				t.Errorf("event is not complete: %+v", e)
			}
		})
	}
}

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

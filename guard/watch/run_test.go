package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentguard/guard/event"

	"github.com/fsnotify/fsnotify"
)

func (r *run) waitGap(why string) {
	r.t.Helper()
	r.until("gap: "+why, func(e event.Event) bool {
		return e.Kind == event.WatchGap && strings.Contains(e.Reason, why)
	})
}

// beginHeld is begin, but the watcher is handed over before it runs.
func beginHeld(t *testing.T, root string, opts Options) (*run, *Watcher) {
	t.Helper()
	r := &run{t: t, root: root, events: make(chan event.Event, 1<<16)}
	w, err := New(root, matcher(t), event.Func(func(e event.Event) { r.events <- e }), opts)
	must(t, err)
	return r, w
}

// The kernel's queue really overflows: the copying goroutine is held up while
// more is written than fits.
func TestKernelQueueOverflows(t *testing.T) {
	root := files(t, "a", "b", "Makefile")
	if !supported() {
		t.Skip("no notices on this system")
	}
	r, w := beginHeld(t, root, Options{Interval: time.Hour})
	if w.notices == nil {
		t.Fatalf("no notices: %s", w.polling)
	}
	n := w.notices
	n.mu.Lock()
	a, err := os.OpenFile(filepath.Join(root, "a"), os.O_WRONLY, 0)
	must(t, err)
	b, err := os.OpenFile(filepath.Join(root, "b"), os.O_WRONLY, 0)
	must(t, err)
	limit := queueLimit(t)
	for range limit {
		_, err1 := a.WriteString("x")
		_, err2 := b.WriteString("x")
		must(t, err1)
		must(t, err2)
	}
	write(t, root, "new/dir/Makefile", "unseen")
	write(t, root, "Makefile", "unseen")
	n.mu.Unlock()
	r.start(w)
	r.waitGap("overflow")
	r.wait("new/dir/Makefile", "created")
	r.wait("Makefile", "changed")
	write(t, root, "new/dir/package.json", "seen again")
	r.wait("new/dir/package.json", "created")
}

// queueLimit returns how many notices the kernel keeps.
func queueLimit(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	must(t, err)
	var n int
	if _, err := fmt.Sscan(string(data), &n); err != nil || n > 1<<20 {
		t.Skipf("max_queued_events is %q", data)
	}
	return n
}

func TestQueueIsBounded(t *testing.T) {
	n := &notices{ready: make(chan struct{}, 1)}
	for i := range maxQueue + 10 {
		n.put(fsnotify.Event{Name: fmt.Sprint(i), Op: fsnotify.Write}, "")
	}
	queue, lost := n.take()
	if len(queue) != maxQueue || lost == "" {
		t.Errorf("%d kept, lost %q", len(queue), lost)
	}
	n.put(fsnotify.Event{Name: "a"}, "")
	n.put(fsnotify.Event{Name: "a"}, "")
	n.put(fsnotify.Event{}, "")
	if queue, lost = n.take(); len(queue) != 1 || lost != "" {
		t.Errorf("after take: %d, %q", len(queue), lost)
	}
}

func TestRootReplaced(t *testing.T) {
	root := files(t, "Makefile")
	r := begin(t, root, Options{Interval: 10 * time.Millisecond})
	must(t, os.Rename(root, root+"-away"))
	r.wait("Makefile", "removed")
	write(t, root, "sub/Makefile", "another tree")
	r.wait("sub/Makefile", "created")
	r.waitGapTold()
	write(t, root, "sub/package.json", "x")
	r.wait("sub/package.json", "created")
	write(t, root+"-away", "package.json", "not ours any more")
	for _, e := range r.rest() {
		if e.Subject == "package.json" {
			t.Errorf("told of the tree that was moved away: %s", list(r.told))
		}
	}
	gaps := 0
	for _, e := range r.told {
		if e.Kind == event.WatchGap {
			gaps++
		}
	}
	if gaps > 6 {
		t.Errorf("%d gaps are a flood", gaps)
	}
}

// waitGapTold fails unless a gap was among what was told so far.
func (r *run) waitGapTold() {
	r.t.Helper()
	for _, e := range r.told {
		if e.Kind == event.WatchGap {
			return
		}
	}
	r.waitGap("")
}

// Renaming a directory above the root sends no notice at all.
func TestParentOfRootReplaced(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	root := filepath.Join(top, "tree")
	write(t, root, "Makefile", "old")
	r := begin(t, root, Options{Interval: 10 * time.Millisecond})
	must(t, os.Rename(top, top+"-away"))
	write(t, root, "sub/Makefile", "another tree")
	r.wait("sub/Makefile", "created")
	r.waitGapTold()
}

func TestPoll(t *testing.T) {
	root := files(t, "Makefile", "sub/")
	r := begin(t, root, Options{Poll: true, Interval: 10 * time.Millisecond})
	write(t, root, "Makefile", "new")
	r.wait("Makefile", "changed")
	write(t, root, "sub/a/b/package.json", "new")
	r.wait("sub/a/b/package.json", "created")
	must(t, os.RemoveAll(filepath.Join(root, "sub")))
	r.wait("sub/a/b/package.json", "removed")
}

func TestPollLooksOnceMoreAtTheEnd(t *testing.T) {
	root := files(t)
	r := begin(t, root, Options{Poll: true, Interval: time.Hour})
	write(t, root, "sub/Makefile", "new")
	r.rest()
	if len(r.told) == 0 || r.told[len(r.told)-1].Subject != "sub/Makefile" {
		t.Errorf("told: %s", list(r.told))
	}
}

func TestUnreadableDirectoryIsAGap(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	root := files(t, "sub/Makefile")
	r := begin(t, root, Options{Interval: 10 * time.Millisecond})
	sub := filepath.Join(root, "sub")
	t.Cleanup(func() { _ = os.Chmod(sub, 0o755) })
	must(t, os.Chmod(sub, 0))
	r.wait("sub/Makefile", "access changed")
	must(t, os.Chmod(sub, 0o755))
	r.wait("sub/Makefile", "access changed")
	must(t, os.MkdirAll(filepath.Join(root, "new"), 0))
	r.waitGap("cannot be read")
	must(t, os.Chmod(sub, 0))
	r.wait("sub/Makefile", "access changed")
	must(t, os.Chmod(sub, 0o755))
	write(t, root, "sub/Makefile", "changed in between")
	r.wait("sub/Makefile", "changed")
}

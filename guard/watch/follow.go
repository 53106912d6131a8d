package watch

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentguard/guard/event"
	"agentguard/guard/surface"

	"github.com/fsnotify/fsnotify"
)

// listen begins to receive notices; without them the tree is polled.
func (w *Watcher) listen() {
	n, err := listen()
	if err != nil {
		w.poll(fmt.Sprintf("no notices of changes (%v)", err))
		return
	}
	w.notices = n
}

// poll makes every Interval walk the tree, and says why once.
func (w *Watcher) poll(why string) {
	if w.polling == "" {
		w.polling = why
		w.gap(fmt.Sprintf("%s; the tree is walked every %v instead", why, w.interval))
	}
}

// gap tells that something may have been missed.
func (w *Watcher) gap(why string) {
	w.report(event.Event{Kind: event.WatchGap, Subject: w.roots[len(w.roots)-1].dir, Reason: why})
}

func (w *Watcher) report(e event.Event) {
	e.Time = time.Now()
	if !w.running {
		w.pending = append(w.pending, e)
		return
	}
	w.sink.Report(e)
}

func (w *Watcher) wake() <-chan struct{} {
	if w.notices == nil {
		return nil
	}
	return w.notices.ready
}

// take handles the notices that wait and reports whether the marker's was
// among them.
func (w *Watcher) take() (marked bool) {
	if w.notices == nil {
		return false
	}
	queue, lost := w.notices.take()
	if lost != "" {
		w.restart(lost)
		return false
	}
	for _, e := range merge(queue) {
		if e.Name == w.notices.marker.path {
			marked = true
		} else if !w.handle(e) {
			return marked
		}
	}
	return marked
}

// merge makes one of several notices of a name that only say that it was
// written or its mode changed: one look answers them. Those about names coming
// and going keep their order.
func merge(queue []fsnotify.Event) []fsnotify.Event {
	const coming = fsnotify.Create | fsnotify.Remove | fsnotify.Rename
	at := map[string]int{}
	out := queue[:0]
	for _, e := range queue {
		i, ok := at[e.Name]
		if ok && e.Op&coming == 0 {
			out[i].Op |= e.Op
			continue
		}
		at[e.Name] = len(out)
		out = append(out, e)
	}
	return out
}

// drain waits until everything that happened before was told.
func (w *Watcher) drain() bool {
	n := w.notices
	if !n.marker.touch() {
		return false
	}
	timeout := time.NewTimer(drainTimeout)
	defer timeout.Stop()
	for {
		select {
		case <-n.ready:
			if w.take() {
				return true
			}
			if w.notices != n {
				return false // started again, with a walk
			}
		case <-timeout.C:
			return false
		}
	}
}

// handle looks at what a notice is about. It returns false when the notices
// behind it are worthless, because the watches were set anew.
func (w *Watcher) handle(e fsnotify.Event) bool {
	r, p := w.told(e.Name)
	if r == nil {
		return true
	}
	if p == r.prefix { // the root itself
		if e.Op&(fsnotify.Remove|fsnotify.Rename) != 0 {
			w.restart(fmt.Sprintf("%s was moved or removed", r.dir))
			return false
		}
		return true
	}
	if w.dirs[p] && e.Op&(fsnotify.Remove|fsnotify.Rename) != 0 {
		w.leave(r, p, e.Op)
	}
	w.check(r, p, e.Op)
	if e.Op&fsnotify.Create != 0 {
		w.enterIfDir(r, p)
	}
	return true
}

// told returns the root and the told path of a name on disk.
func (w *Watcher) told(name string) (*root, string) {
	for _, r := range w.roots {
		if rest, ok := strings.CutPrefix(name, r.dir); ok {
			switch {
			case rest == "":
				return r, r.prefix
			case rest[0] == '/':
				return r, path.Join(r.prefix, rest[1:])
			}
		}
	}
	return nil, ""
}

func (r *root) disk(p string) string {
	return path.Join(r.dir, strings.TrimPrefix(strings.TrimPrefix(p, r.prefix), "/"))
}

// leave forgets the watch of a directory that went. After a rename the kernel
// would go on telling of what is below under the old name, so those watches
// are taken away.
func (w *Watcher) leave(r *root, p string, op fsnotify.Op) {
	delete(w.dirs, p)
	if op&fsnotify.Rename != 0 {
		w.unwatch(r, p)
		for d := range w.dirs {
			if strings.HasPrefix(d, p+"/") {
				delete(w.dirs, d)
				w.unwatch(r, d)
			}
		}
	}
	w.checkBelow(r, p)
}

func (w *Watcher) unwatch(r *root, p string) {
	if w.notices != nil {
		_ = w.notices.fs.Remove(r.disk(p)) // it is gone when the directory is
	}
}

// checkBelow looks at every known surface below a directory.
func (w *Watcher) checkBelow(r *root, p string) {
	var below []string
	for k := range w.known {
		if strings.HasPrefix(k, p+"/") {
			below = append(below, k)
		}
	}
	slices.Sort(below)
	for _, k := range below {
		w.check(r, k, 0)
	}
}

func (w *Watcher) enterIfDir(r *root, p string) {
	if w.skip(p) {
		return
	}
	if e, err := r.tree.Lstat(p); err == nil && e.Type == surface.Dir {
		w.enterOrTell(r, p)
	}
}

// enterOrTell makes a gap, once, of a directory that cannot be read.
func (w *Watcher) enterOrTell(r *root, p string) {
	err := w.enter(r, p)
	if err != nil && !w.unread[p] {
		w.gap(fmt.Sprintf("a directory cannot be read: %v", err))
	}
	if w.unread[p] = err != nil; err == nil {
		delete(w.unread, p)
	}
}

// enter watches a directory and then reads it, so that whatever came before
// the watch is found and whatever comes after is told; then the same below.
func (w *Watcher) enter(r *root, p string) error {
	w.watchDir(r, p)
	list, err := readDir(r.disk(p))
	if err != nil {
		return err
	}
	for _, e := range list {
		name := path.Join(p, e.Name())
		w.found(r, name, typeOf(e))
		if e.IsDir() && !w.skip(name) {
			w.enterOrTell(r, name)
		}
	}
	return nil
}

// readDir lists a directory. One that is gone, or no directory any more, is
// empty: that is told by the directory it was in. What took its place is not
// opened: a FIFO would block.
func readDir(dir string) ([]os.DirEntry, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err == nil {
		defer f.Close() // read only: nothing is lost
		var list []os.DirEntry
		if list, err = f.ReadDir(-1); err == nil {
			return list, nil
		}
	}
	for _, gone := range []error{syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP} {
		if errors.Is(err, gone) {
			return nil, nil
		}
	}
	return nil, err
}

func typeOf(e os.DirEntry) surface.Type {
	switch t := e.Type(); {
	case t.IsRegular():
		return surface.Regular
	case t.IsDir():
		return surface.Dir
	case t&os.ModeSymlink != 0:
		return surface.Symlink
	}
	return surface.Other
}

// watchDir asks for the notices of a directory's names.
func (w *Watcher) watchDir(r *root, p string) {
	if w.add(r, p) {
		w.dirs[p] = true
	} else {
		delete(w.dirs, p)
	}
}

// add asks for notices of a directory or file and reports whether they will
// come. When the system gives no more, polling begins.
func (w *Watcher) add(r *root, p string) bool {
	if w.notices == nil {
		return false
	}
	err := w.notices.fs.Add(r.disk(p))
	if err == nil {
		return true
	}
	// What is gone is told by the directory it was in, and what cannot be read
	// by who reads it.
	for _, known := range []error{syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.EACCES, syscall.EPERM} {
		if errors.Is(err, known) {
			return false
		}
	}
	w.poll(fmt.Sprintf("%s cannot be watched (%v)", r.disk(p), err))
	return false
}

// restart opens the roots again, sets every watch anew and walks the tree.
func (w *Watcher) restart(why string) {
	w.gap(why)
	_ = w.Close() // its watches are of no use any more
	w.dirs, w.polling = map[string]bool{}, ""
	for p, s := range w.known {
		s.watched = false
		w.known[p] = s
	}
	w.listen()
	for _, r := range w.roots {
		if err := r.open(); err != nil {
			w.gap(fmt.Sprintf("%s is not there: %v", r.dir, err))
		}
	}
	w.rescan()
}

// rescan walks everything and looks at every known surface.
func (w *Watcher) rescan() {
	for _, r := range w.roots {
		if r.info == nil {
			continue
		}
		w.enterOrTell(r, r.prefix)
	}
	w.compareKnown()
}

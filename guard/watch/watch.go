// Package watch follows the surfaces of a work tree while a command runs and
// says when one comes, goes or changes.
//
// [New] watches every directory that holds or could hold a surface;
// [Watcher.Run] reports each change as an [event.WatchChange]. It compares the
// known surfaces again every two seconds and once at its end, because a memory
// mapping and a second hard link change a file without a notice. Whatever
// could have been missed (a queue that overflowed, a limit on watches, a root
// that was replaced) is an [event.WatchGap] and a walk of the tree, never
// silence.
//
// Does not stop a change and does not come before it: a file can be written
// and run by another program before the event is told. Does not see a content
// that was there only between two looks when no notice came for it. Does not
// watch what a link names. Does not look deeper than one level into directories
// that tools fill by the thousand (see [surface.GeneratedTrees]) but where a
// surface was known at the start or all below is frozen. On a file system that
// sends no notices (some network and FUSE ones) only the comparison of known
// surfaces works; on systems other than Linux it polls. The hashes taken after
// the command ended are the check; this is the prompt notice.
package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"agentguard/guard/event"
	"agentguard/guard/surface"
)

// DefaultInterval is how often the known surfaces are compared without a
// notice.
const DefaultInterval = 2 * time.Second

// drainTimeout bounds the wait, at the end, for notices that are under way.
const drainTimeout = time.Second

// Options are what a caller knows already or wants otherwise. The zero value
// is right and costs one walk of the tree.
type Options struct {
	// Dirs are the directories below the root, relative to it, when the caller
	// has walked the tree already; nil lets New walk. The root itself need not
	// be among them. Those that cannot hold a surface are left out here.
	Dirs []string

	// Set is the surfaces as the caller resolved them, so that a change
	// between that and New is told too. With Dirs and without Set, only
	// changes that send a notice are told.
	Set *surface.Set

	// More are directories outside the root whose paths are judged, and told,
	// under a prefix: the git directory of a linked work tree as ".git".
	More []Root

	Interval time.Duration // 0 is DefaultInterval
	Poll     bool          // do without notices: walk the tree every Interval
}

// Root is a directory that is watched under another name.
type Root struct {
	Dir    string
	Prefix string // not empty
}

// Watcher follows the surfaces below its roots. Everything but the queue
// belongs to the goroutine of New, then to that of Run.
type Watcher struct {
	m        *surface.Matcher
	sink     event.Sink
	interval time.Duration
	roots    []*root // the main one is the last, so that the first whose prefix fits is the longest
	prune    prune
	known    map[string]state
	dirs     map[string]bool // watched, by told path
	unread   map[string]bool // told to be unreadable
	notices  *notices        // nil when polling
	polling  string          // why every Interval walks the tree; "" when notices are complete
	pending  []event.Event   // found by New, told by Run
	running  bool            // reports go to the sink and not to pending
	learning bool            // what a walk finds was there already
}

// New begins to watch the work tree at dir. From its return on, a change is
// seen; it is told once Run runs. A limit of the system is no error: it is
// told as a gap, and the tree is polled. The caller calls Run or Close.
func New(dir string, m *surface.Matcher, sink event.Sink, opts Options) (*Watcher, error) {
	w := &Watcher{m: m, sink: sink, interval: opts.Interval, prune: newPrune(opts.Set),
		known: map[string]state{}, dirs: map[string]bool{}, unread: map[string]bool{}}
	if w.interval <= 0 {
		w.interval = DefaultInterval
	}
	for _, r := range append(append([]Root(nil), opts.More...), Root{Dir: dir}) {
		r, err := openRoot(r)
		if err != nil {
			return nil, fmt.Errorf("watching %q: %w", dir, err)
		}
		w.roots = append(w.roots, r)
	}
	if opts.Poll {
		w.polling = "as asked"
	} else {
		w.listen()
	}
	if err := w.begin(opts); err != nil {
		_ = w.Close() // the error that matters is the one returned
		return nil, fmt.Errorf("watching %q: %w", dir, err)
	}
	return w, nil
}

// begin sets the watches and learns what is there. Nothing found now is a
// change, but for what differs from the caller's set.
func (w *Watcher) begin(opts Options) error {
	w.learning = true
	defer func() { w.learning = false }()
	main := len(w.roots) - 1
	for i, r := range w.roots {
		if i < main || opts.Dirs == nil {
			if err := w.enter(r, r.prefix); err != nil {
				return err
			}
		}
	}
	if opts.Dirs != nil {
		w.watchDir(w.roots[main], "")
		for _, d := range opts.Dirs {
			if d = filepath.ToSlash(filepath.Clean(d)); d != "." && !w.skip(d) {
				w.watchDir(w.roots[main], d)
			}
		}
	}
	if opts.Set != nil {
		w.adopt(opts.Set)
	}
	return nil
}

// Run reports changes until ctx ends, then waits for the notices under way,
// compares the known surfaces once more, closes the watcher and returns.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.Close()
	for _, e := range w.pending {
		w.sink.Report(e)
	}
	w.pending, w.running = nil, true
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return w.finish()
		case <-w.wake():
			w.take()
		case <-tick.C:
			w.again()
		}
	}
}

// Close ends a watcher that was never run.
func (w *Watcher) Close() error {
	if w.notices == nil {
		return nil
	}
	n := w.notices
	w.notices = nil
	return n.close()
}

// again compares what is known without a notice.
func (w *Watcher) again() {
	for _, r := range w.roots {
		if !r.same() && !r.stillGone() {
			w.restart(fmt.Sprintf("%s was replaced", r.dir))
			return
		}
	}
	if w.polling != "" {
		w.rescan()
		return
	}
	w.compareKnown()
}

// finish is the end of Run. After the drain every change up to now has been
// told; where that cannot be known, the tree is walked.
func (w *Watcher) finish() error {
	if w.notices == nil || !w.drain() {
		w.rescan()
		return nil
	}
	w.again()
	return nil
}

// root is one watched directory and the tree below it.
type root struct {
	dir    string // absolute, no link in it
	prefix string // "" for the main one
	tree   surface.Tree
	info   os.FileInfo // of dir when the tree was opened; nil when it was not there
}

func openRoot(r Root) (*root, error) {
	dir, err := filepath.EvalSymlinks(r.Dir)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	out := &root{dir: dir, prefix: r.Prefix}
	return out, out.open()
}

// open opens, or opens again, what the path now names. After an error the
// root is an empty tree: what was known there is gone.
func (r *root) open() error {
	r.tree, r.info = surface.MapTree{}, nil
	info, err := os.Stat(r.dir)
	if err != nil {
		return err
	}
	tree, err := surface.WorkTree(r.dir)
	if err != nil {
		return err
	}
	if r.prefix != "" {
		tree = surface.Prefix(tree, r.prefix)
	}
	r.tree, r.info = tree, info
	return nil
}

// same reports whether the path still names the directory that was opened.
func (r *root) same() bool {
	info, err := os.Stat(r.dir)
	return err == nil && r.info != nil && os.SameFile(info, r.info)
}

// stillGone reports whether the root was missing when it was last opened, and
// still is.
func (r *root) stillGone() bool {
	_, err := os.Stat(r.dir)
	return err != nil && r.info == nil
}

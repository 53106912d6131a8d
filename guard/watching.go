package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"agentguard/guard/event"
	"agentguard/guard/policy"
	"agentguard/guard/surface"
	"agentguard/guard/watch"
)

// WatchOptions is what watch is asked to do.
type WatchOptions struct {
	For  time.Duration // 0: until the context ends
	JSON bool
}

// Watch tells every change of a surface in a workspace in which something
// works without the sandbox, until ctx ends. It returns whether something
// changed that a person has to decide about.
func (g *Guard) Watch(ctx context.Context, o WatchOptions) (changed bool, err error) {
	w, err := g.Open()
	if err != nil {
		return false, err
	}
	if err := g.settle(w); err != nil {
		return false, err
	}
	p, err := g.loadPolicy(w, policy.Flags{})
	if err != nil {
		return false, err
	}
	s, err := g.look(w, p)
	if err != nil {
		return false, err
	}
	if _, err := w.keep(s.areas); err != nil { // so that restore has it
		return false, err
	}
	sink := &printing{g: g, json: o.JSON, first: func() error { return w.saveLast(s) }}
	watcher, err := s.watcher(sink)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(g.Stderr, "agentguard: watching %s in %s; Ctrl-C ends it\n", count(s.surfaces(), "surface"), quote(w.Root))
	if o.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.For)
		defer cancel()
	}
	if err := watcher.Run(ctx); err != nil {
		return false, err
	}
	return sink.changed, sink.err
}

// watcher follows the work tree, and with it the git directories that lie
// elsewhere, from the walk that found the surfaces.
func (s *start) watcher(sink event.Sink) (*watch.Watcher, error) {
	tree := s.areas[0]
	o := watch.Options{Dirs: tree.dirs, Set: tree.set}
	for _, a := range s.areas[1:] {
		if a.prefix != "" {
			o.More = append(o.More, watch.Root{Dir: a.dir, Prefix: a.prefix})
		}
	}
	return watch.New(tree.dir, tree.matcher, sink, o)
}

// surfaces counts what is more than noted.
func (s *start) surfaces() int {
	n := 0
	for _, a := range s.areas {
		for _, m := range a.set.Members {
			if m.Hit.Protection != surface.Note {
				n++
			}
		}
	}
	return n
}

// printing writes each event as one line to the guard's results.
type printing struct {
	g     *Guard
	json  bool
	first func() error // keeps the state before the first change

	mu      sync.Mutex // guards the fields below
	changed bool
	err     error // the first that came in the way
}

// Report writes e.
func (p *printing) Report(e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Kind == event.WatchChange && e.Detail["protection"] != surface.Note.String() && !p.changed {
		p.changed = true
		p.keepErr(p.first())
	}
	if p.json {
		p.keepErr(json.NewEncoder(p.g.Stdout).Encode(e))
		return
	}
	line := changeLine(e)
	if e.Hint != "" {
		line += "; " + e.Hint
	}
	_, err := fmt.Fprintf(p.g.Stdout, "%s %s\n", e.Time.Format(time.TimeOnly), line)
	p.keepErr(err)
}

func (p *printing) keepErr(err error) {
	if p.err == nil {
		p.err = err
	}
}

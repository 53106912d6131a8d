package guard

import (
	"fmt"
	"io"
	"os"
	"sync"

	"agentguard/guard/event"
	"agentguard/guard/surface"
)

// live tells a person of surfaces that change while a run lasts, one line for
// each distinct change. The end-of-run check decides; this is only sooner.
type live struct {
	w io.Writer

	mu   sync.Mutex // guards said, and the order of lines
	said map[string]bool
}

// liveSink returns where a run's events are told as they come: nowhere when a
// command draws on the terminal that they would be written to.
func (g *Guard) liveSink() event.Sink {
	if f, ok := g.Stderr.(*os.File); ok && IsTerminal(f) {
		return event.Discard
	}
	return &live{w: g.Stderr, said: map[string]bool{}}
}

// Report writes a line, or nothing when it would be no news.
func (l *live) Report(e event.Event) {
	if !newsworthy(e) {
		return
	}
	line := changeLine(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.said[line] {
		l.said[line] = true
		fmt.Fprintf(l.w, "agentguard: %s\n", line)
	}
}

// newsworthy leaves out what a run without findings does all the time: data
// beside the executing keys of a file that is only reviewed, a rewrite with
// the same content, and what is merely noted.
func newsworthy(e event.Event) bool {
	switch e.Kind {
	case event.WatchGap:
		return true
	case event.WatchChange:
	default:
		return false
	}
	switch e.Reason {
	case "touched", "written with the same content", "unlinked elsewhere":
		return false
	}
	switch e.Detail["protection"] {
	case surface.Freeze.String():
		return true
	case surface.Review.String():
		entry, ok := surface.Lookup(e.Rule)
		return !ok || entry.Part == surface.Whole
	}
	return false
}

// changeLine is one event of the watcher in a line that no name can break.
func changeLine(e event.Event) string {
	if e.Kind == event.WatchGap {
		return fmt.Sprintf("changes in %s may have been missed: %s", quote(e.Subject), quoteLine(e.Reason))
	}
	line := fmt.Sprintf("%s %s (%s; %s)", e.Reason, quote(e.Subject), e.Rule, e.Detail["protection"])
	if trigger := e.Detail["trigger"]; trigger != "" {
		line += ", runs on: " + trigger
	}
	return line
}

package guard

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"agentguard/guard/event"
	"agentguard/guard/surface"
)

// live tells a person of surfaces that change while a run lasts, one line for
// each distinct change. The end-of-run check decides; this is only sooner.
type live struct {
	w     io.Writer
	start *start

	mu   sync.Mutex // guards what follows, and the order of lines
	said map[string]bool
	own  map[string]bool // repositories that the run made, below the work tree
}

// liveSink returns where a run's events are told as they come: nowhere when a
// command draws on the terminal that they would be written to.
func (s *session) liveSink() event.Sink {
	if f, ok := s.g.Stderr.(*os.File); ok && IsTerminal(f) {
		return event.Discard
	}
	return &live{w: s.g.Stderr, start: s.start, said: map[string]bool{}, own: map[string]bool{}}
}

// Report writes a line, or nothing when it would be no news.
func (l *live) Report(e event.Event) {
	if !newsworthy(e) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Kind == event.WatchChange && (l.passing(e.Subject) || l.inOwn(e.Subject)) {
		return
	}
	if line := changeLine(e); !l.said[line] {
		l.said[line] = true
		fmt.Fprintf(l.w, "agentguard: %s\n", line)
	}
}

// passing says that a surface was not there before the run and is not there
// any more, together with its directory: what a run makes for itself and takes
// away.
func (l *live) passing(judged string) bool {
	if _, before := l.start.areas[0].set.Lookup(judged); before || !strings.Contains(judged, "/") {
		return false
	}
	return !exists(filepath.Dir(l.disk(judged)))
}

// inOwn says that a surface lies in a repository that the run itself made:
// nothing of the user's runs it, and the check tells what is left.
func (l *live) inOwn(judged string) bool {
	tree := l.start.areas[0]
	for i := range len(judged) {
		if judged[i] != '/' {
			continue
		}
		top := judged[:i]
		if top == ".git" || strings.HasSuffix(top, "/.git") {
			return false // what lies in a git directory runs by itself
		}
		if !l.own[top] && !slices.Contains(tree.dirs, top) && exists(filepath.Join(tree.dir, top, ".git")) {
			l.own[top] = true
		}
		if l.own[top] {
			return !strings.Contains(judged[i:], "/.git/")
		}
	}
	return false
}

// disk is where a told path lies.
func (l *live) disk(judged string) string {
	for _, a := range l.start.areas[1:] {
		if a.prefix != "" && within(judged, a.prefix) {
			return a.path(judged)
		}
	}
	return l.start.areas[0].path(judged)
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

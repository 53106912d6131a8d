package event

import "sync"

// Sink receives events. Report must be safe for concurrent use and must not
// block for long: mechanisms call it on their own path.
type Sink interface {
	Report(Event)
}

// Discard is the Sink that forgets.
var Discard Sink = discard{}

type discard struct{}

func (discard) Report(Event) {}

// Multi returns a Sink that hands each event to every one of sinks, in order.
func Multi(sinks ...Sink) Sink { return multi(sinks) }

type multi []Sink

func (m multi) Report(e Event) {
	for _, s := range m {
		s.Report(e)
	}
}

// Func makes a function a Sink.
type Func func(Event)

// Report calls f.
func (f Func) Report(e Event) { f(e) }

// Recorder is a Sink that keeps what it is given, for tests and for the end of
// a run. The zero value is ready to use.
type Recorder struct {
	mu     sync.Mutex // guards events
	events []Event
}

// Report keeps e.
func (r *Recorder) Report(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns a copy of what was reported so far.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}

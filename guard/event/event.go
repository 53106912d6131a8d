// Package event gives the vocabulary of what agentguard reports and the
// one-method interface that receives it.
//
// A mechanism never logs and never prints: it reports an [Event] to a [Sink],
// and whoever runs the mechanism decides whether a person, a file or a program
// reads it. The zero [Verdict] is [Denied], so a forgotten assignment refuses.
//
// Does not decide anything, and does not keep a secret out of an event: the
// one who fills an Event must never put a secret, a file's content or an
// environment value into it.
package event

import "time"

// Verdict says whether something was let through. The zero value denies.
type Verdict uint8

// The two verdicts.
const (
	Denied Verdict = iota
	Allowed
)

// String returns "denied" or "allowed".
func (v Verdict) String() string {
	if v == Allowed {
		return "allowed"
	}
	return "denied"
}

// MarshalText makes a verdict a word in JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Kind names what happened, as "area.what". Kinds are stable: programs match
// on them.
type Kind string

// The kinds in use.
const (
	RunStart     Kind = "run.start"     // a run begins; Subject is the command's name
	RunEnd       Kind = "run.end"       // a run ended; Detail["status"] is the exit status
	RunWeak      Kind = "run.weak"      // a protection is weaker than the design's; Reason says which
	EgressHTTP   Kind = "egress.http"   // one plain HTTP request; Subject is METHOD URL without query
	EgressTunnel Kind = "egress.tunnel" // one CONNECT; Subject is host:port
	NameRefused  Kind = "file.refused"  // a frozen name was refused while the command ran; Subject is its path
	FileChange   Kind = "file.change"   // a surface came, went or changed; Subject is its path
	FileStale    Kind = "file.stale"    // a frozen file differs from git's index because git could not write it
	GitState     Kind = "git.state"     // something in a git directory that the user's git would act on
	WatchChange  Kind = "watch.change"  // the watcher saw a surface change
	WatchGap     Kind = "watch.gap"     // the watcher may have missed something; Reason says why
	HookState    Kind = "hook.state"    // the state of core.hooksPath or of a hook
)

// Event is one thing that happened.
type Event struct {
	Time    time.Time         `json:"time"`
	Kind    Kind              `json:"kind"`
	Verdict Verdict           `json:"verdict"`
	Subject string            `json:"subject"`          // path, host:port or name; raw, to be quoted by whoever prints it
	Rule    string            `json:"rule,omitempty"`   // entry id or policy rule that decided
	Reason  string            `json:"reason,omitempty"` // one sentence, lower case
	Hint    string            `json:"hint,omitempty"`   // the command or policy line that allows or mends it
	Detail  map[string]string `json:"detail,omitempty"` // further facts, never a secret
}

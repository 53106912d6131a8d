// Package probe is the self-test: it tries, natively and one by one, what a
// sandbox promises to refuse and what it promises to leave working.
//
// A refusal proves something only if the same attempt succeeds without the
// sandbox on the same machine. So [Plant] lays out two identical throw-away
// trees with canaries and servers on loopback, [Main] runs every attempt in
// its process, once outside and once inside, and [Judge] puts both answers
// together: an attempt that did not succeed outside proves nothing and is
// [NotProven], never a pass.
//
// Does not reach for anything but what it planted: no other process, no
// address but loopback and, through the run's own proxy, one link-local name
// that the proxy must refuse. Does not prove that a run with another policy is
// closed: it tries the policy it was started under. Does not look for holes
// that nobody wrote an attempt for.
package probe

// Want is what an attempt should meet inside the sandbox.
type Want uint8

// The wants.
const (
	Refused Want = iota // an attack: must fail inside
	Works               // a positive control: must succeed inside
)

// Attempt is one thing to try.
type Attempt struct {
	ID     string // stable, lower case, dotted: file.ssh-key
	Title  string // for people, as what the agent does: read the ssh key
	Proves string // the protection that refuses it, or that must not break it
	Want   Want
}

// State is how an attempt ended in one process.
type State string

// The states. The zero value is no answer.
const (
	NoAnswer  State = ""
	Succeeded State = "succeeded"
	Denied    State = "denied" // an errno or a proxy's answer that refuses
	Absent    State = "absent" // this machine has nothing of the kind to try
	Broken    State = "broken" // failed for another reason, which proves nothing
)

// Outcome is what one attempt met in one process.
type Outcome struct {
	ID     string `json:"id"`
	State  State  `json:"state"`
	Errno  string `json:"errno,omitempty"`  // the name, EPERM
	Detail string `json:"detail,omitempty"` // never the value of a canary
}

// Verdict is what two outcomes show about an attempt.
type Verdict uint8

// The verdicts. The zero value is no proof.
const (
	NotProven Verdict = iota
	Proven            // an attack succeeded outside and was refused inside; a control succeeded inside
	Failed            // an attack succeeded inside, or a control did not work
	NotHere           // the machine has nothing of the kind, outside or inside: says nothing, counts for nothing
)

// Result is one attempt, judged.
type Result struct {
	Attempt
	Verdict Verdict
	Why     string
	Outside Outcome
	Inside  Outcome
}

package sandbox

import (
	"context"
	"os"
	"time"
)

// Process is a command in its sandbox.
type Process struct {
	listener *os.File      // the loopback listener inside, until taken
	broker   string        // why there is no name guard, empty when there is one or none was asked for
	landlock int           // ABI in force, 0 for none
	signal   chan<- Signal // to the loop that talks with the stage
	done     chan struct{} // closed when the command has ended and everything is put back
	status   int
	err      error
}

// Signal asks for a signal to be delivered to the command, or to its process
// group as a terminal would.
type Signal struct {
	Number int
	Group  bool
}

// Start starts spec's command. The context ends it. An error means that the
// command was not started: an [UnavailableError] when the machine lacks
// something, a [SetupError] when a part could not be put in force.
//
// With Network Proxy the command waits, once started, for nothing: Listener is
// there before Start returns, and whoever serves it is the only way out.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	p, err := Prepare(ctx, spec.As, spec.Stdin, spec.Stdout, spec.Stderr)
	if err != nil {
		return nil, err
	}
	return p.Start(spec)
}

// Pending is a sandbox whose namespaces are being made while its caller still
// works out what it is to hold. Nothing runs in it yet.
type Pending struct{ run *run }

// Prepare begins a sandbox for as (nil: the caller) with these standard files;
// the context ends it. Either Start or Cancel must follow. What the machine
// lacks may be told by either function.
func Prepare(ctx context.Context, as *Identity, stdin, stdout, stderr *os.File) (*Pending, error) {
	r, err := prepare(ctx, &Spec{As: as, Stdin: stdin, Stdout: stdout, Stderr: stderr})
	if err != nil {
		return nil, err
	}
	return &Pending{r}, nil
}

// Start starts spec's command, for whom and with the files that Prepare was
// given, whatever spec says of them.
func (p *Pending) Start(spec Spec) (*Process, error) { return p.run.start(spec) }

// Cancel ends what was prepared and waits until it is gone.
func (p *Pending) Cancel() { p.run.cancel() }

// Listener returns the loopback listener inside, on ProxyPort. The caller owns
// the file.
func (p *Process) Listener() *os.File {
	f := p.listener
	p.listener = nil
	return f
}

// Landlock returns the version of Landlock's interface in force, 0 for none.
func (p *Process) Landlock() int { return p.landlock }

// NoBroker says why the name guard that was asked for is not in force; it is
// empty when it is.
func (p *Process) NoBroker() string { return p.broker }

// Signal delivers s to the command if it still runs.
func (p *Process) Signal(s Signal) {
	select {
	case p.signal <- s:
	case <-p.done:
	}
}

// Wait returns when the command has ended, everything it had started is gone
// and the terminal is as it was: the command's exit status as a shell gives
// it (126 and 127 when it could not be started, 128 and the number when a
// signal ended it). An error means that agentguard lost hold of it.
func (p *Process) Wait() (status int, err error) {
	<-p.done
	return p.status, p.err
}

// Support is what the machine offers a sandbox.
type Support struct {
	Bwrap        string // path of the bubblewrap in use
	BwrapVersion string
	Landlock     int    // interface version, 0 for none
	NoBroker     string // why frozen names cannot be refused while a command runs; empty when they can
	Kernel       string
	Err          error // an UnavailableError when nothing can be started
}

// Detect looks at what the machine offers, by starting a sandbox in which
// nothing runs. It takes some ten milliseconds.
func Detect(ctx context.Context) Support {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return detect(ctx)
}

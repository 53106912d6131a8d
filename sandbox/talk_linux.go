package sandbox

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"

	"agentguard/sandbox/stage"
)

// packet is a message of the stage with the descriptor it carried.
type packet struct {
	stage.Message
	file *os.File
}

// talk is the supervisor's loop: it owns everything that the stage is told and
// everything it says, until the stage is gone.
func (r *run) talk(ctx context.Context) {
	packets := make(chan packet)
	go r.read(packets)
	signals := listenSignals()
	defer signal.Stop(signals)
	ended := ctx.Done()
	for {
		select {
		case p, ok := <-packets:
			if !ok {
				r.lost()
				return
			}
			r.hear(p)
		case s := <-r.signals:
			r.tell(s)
		case s := <-signals:
			r.handle(s)
		case <-ended:
			// Closing the socket ends the stage, and the stage's end the run.
			_ = r.ctl.Close()
			ended = nil
		}
	}
}

// read hands packets over until the socket is closed.
func (r *run) read(packets chan<- packet) {
	defer close(packets)
	defer r.ctl.Close()
	data, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	for {
		n, m, _, _, err := r.ctl.ReadMsgUnix(data, rights)
		if err != nil || n == 0 {
			return
		}
		msg, err := stage.DecodeMessage(data[:n])
		if err != nil {
			return
		}
		packets <- packet{msg, receivedFile(rights[:m])}
	}
}

func receivedFile(rights []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "from the sandbox")
}

func (r *run) hear(p packet) {
	switch p.Op {
	case stage.OpListener:
		r.p.listener = p.file
		return
	case stage.OpTerminal:
		r.term.attach(p.file)
		return
	case stage.OpLandlock:
		r.p.landlock = int(p.Value)
	case stage.OpBroker:
		if p.Value == 0 {
			r.p.broker = p.Text
		}
	case stage.OpRefused:
		r.refused(p.Text)
	case stage.OpFailed:
		r.p.status = 125
		r.p.err = &SetupError{Why: p.Text}
		r.begun(r.p.err)
	case stage.OpNotFound:
		r.p.status, r.p.err = int(p.Value), &NotStartedError{Argv0: r.spec.Argv[0], Status: int(p.Value), Why: p.Text}
		r.begun(nil)
	case stage.OpStarted:
		r.term.start()
		r.begun(nil)
	case stage.OpStopped:
		r.stopped(p.Value)
	case stage.OpExited:
		r.p.status, r.p.err = int(p.Value), nil
		r.ended = true
	}
	if p.file != nil {
		_ = p.file.Close() // not expected with this message
	}
}

// refused hands one refusal of the name guard on.
func (r *run) refused(text string) {
	parts := strings.SplitN(text, "\x00", 4)
	if len(parts) == 4 && r.spec.Refused != nil {
		r.spec.Refused(NameRefusal{Call: parts[0], Path: parts[1], Rule: parts[2], Comm: parts[3]})
	}
}

// begun says once whether the command was started.
func (r *run) begun(err error) { r.once.Do(func() { r.started <- err }) }

// lost is what happens when the stage is gone: properly, or not.
func (r *run) lost() {
	r.begun(errors.New("the stage did not start"))
	if !r.ended && r.p.err == nil {
		r.p.status, r.p.err = 125, errors.New("the sandbox ended before its command did")
	}
	close(r.silent)
}

// tell sends a signal on its way. A stage that is gone needs none.
func (r *run) tell(s Signal) {
	m := stage.Message{Op: stage.OpSignal, Value: uint32(s.Number)}
	if s.Group {
		m.Text = "group"
	}
	_, _ = r.ctl.Write(m.Encode())
}

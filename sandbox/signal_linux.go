package sandbox

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// relayed are the signals that this process hands on to the command, the way
// a terminal does it: to its process group for those that a key sends, to the
// command alone for the others.
var relayed = map[os.Signal]bool{
	unix.SIGINT: true, unix.SIGQUIT: true, unix.SIGTSTP: true, unix.SIGHUP: true,
	unix.SIGTERM: false, unix.SIGUSR1: false, unix.SIGUSR2: false,
}

// listenSignals subscribes to what is relayed, and to what concerns the
// terminal. A signal that the caller has ignored (nohup) stays ignored.
func listenSignals() chan os.Signal {
	c := make(chan os.Signal, 16)
	for s := range relayed {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	signal.Notify(c, unix.SIGWINCH, unix.SIGCONT)
	return c
}

// handle does what a signal to this process asks for.
func (r *run) handle(s os.Signal) {
	switch s {
	case unix.SIGWINCH:
		r.term.resize()
	case unix.SIGCONT:
		r.term.resume()
		r.tell(Signal{Number: int(unix.SIGCONT), Group: true})
	default:
		r.tell(Signal{Number: int(s.(syscall.Signal)), Group: relayed[s]})
	}
}

// stopped stops this process too, so that the shell that started it sees a
// stopped job, and goes on when the shell continues it.
func (r *run) stopped(number uint32) {
	switch unix.Signal(number) {
	case unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
	default:
		return // a debugger's or the command's own affair
	}
	if hasJobControl() {
		_ = r.term.pause() // it is tried again at the end
		stopGroup()
	}
	r.term.resume()
	r.tell(Signal{Number: int(unix.SIGCONT), Group: true})
}

// hasJobControl says whether somebody can continue this process: its parent,
// in the same session. Without one a stop would be for ever.
func hasJobControl() bool {
	parent := os.Getppid()
	if parent <= 0 {
		return false
	}
	theirs, err := unix.Getsid(parent)
	if err != nil {
		return false
	}
	ours, err := unix.Getsid(0)
	return err == nil && ours == theirs
}

// stopGroup does what the key would have done to this process's group, and
// returns when this process is continued.
func stopGroup() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signal.Ignore(unix.SIGTSTP) // this process stops by the other signal, at a known place
	_ = unix.Kill(0, unix.SIGTSTP)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
	signal.Reset(unix.SIGTSTP)
}

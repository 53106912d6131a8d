package stage

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// command is the one process that the run is about.
type command struct {
	ctl      *control
	config   *Config
	pid      int    // 0 until started, and for good when it could not be
	notFound uint32 // 126 or 127 then
}

// start confines its own thread and starts the command from it, then keeps the
// thread parked: letting it go would hand a confined thread to the runtime.
func (p *command) start(done chan<- error) {
	runtime.LockOSThread()
	done <- p.startHere()
	select {}
}

func (p *command) startHere() error {
	files := [3]uintptr{StdinFD, StdinFD + 1, StdinFD + 2}
	tty, err := p.terminal(&files)
	if err != nil {
		return err
	}
	// Process 1 leads the session and the command a process group in it. Were
	// the command the leader, its group would have no parent in the session,
	// and the kernel lets the stop key do nothing to such a group.
	if _, err := unix.Setsid(); err != nil {
		return fmt.Errorf("beginning a session: %w", err)
	}
	sys := &syscall.SysProcAttr{Setpgid: true}
	if tty >= 0 {
		if err := unix.IoctlSetInt(tty, unix.TIOCSCTTY, 0); err != nil {
			return fmt.Errorf("taking the pseudo-terminal: %w", err)
		}
		sys.Foreground, sys.Ctty = true, tty
	}
	err = confine(p.config, func(abi int) { p.ctl.send(Message{Op: OpLandlock, Value: uint32(abi)}) })
	if err != nil {
		return err
	}
	attr := &syscall.ProcAttr{
		Dir: p.config.Dir, Env: p.config.Env, Files: files[:],
		Sys: sys,
	}
	p.pid, err = p.exec(attr)
	for fd := StdinFD; fd <= StdinFD+2; fd++ {
		_ = unix.Close(fd) // the command has its own
	}
	if tty >= 0 {
		_ = unix.Close(tty) // so that the supervisor sees the end of it
	}
	if err != nil {
		p.pid, p.notFound = 0, shellStatus(err)
		p.ctl.send(Message{Op: OpNotFound, Value: p.notFound, Text: err.Error()})
		return nil
	}
	p.ctl.send(Message{Op: OpStarted, Value: uint32(p.pid)})
	return nil
}

// exec starts the command as execvp would: a name without a slash is looked
// for in the run's PATH, and a text file without a first line that names an
// interpreter is a shell script.
func (p *command) exec(attr *syscall.ProcAttr) (int, error) {
	name := p.config.Argv[0]
	if name == "" {
		return 0, unix.ENOENT
	}
	if strings.Contains(name, "/") {
		return forkExec(name, p.config.Argv, attr)
	}
	refused := error(unix.ENOENT)
	for _, dir := range strings.Split(p.path(), ":") {
		if dir == "" {
			dir = "."
		}
		path := dir + "/" + name
		if err := unix.Faccessat(unix.AT_FDCWD, absolute(p.config.Dir, path), unix.X_OK, unix.AT_EACCESS); err != nil {
			if errors.Is(err, unix.EACCES) {
				refused = unix.EACCES
			}
			continue
		}
		pid, err := forkExec(path, p.config.Argv, attr)
		if errors.Is(err, unix.EACCES) { // a directory, say
			refused = unix.EACCES
			continue
		}
		return pid, err
	}
	return 0, refused
}

func (p *command) path() string {
	for _, kv := range p.config.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			return v
		}
	}
	return "/usr/local/bin:/usr/bin:/bin"
}

func absolute(dir, path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return dir + "/" + path
}

func forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	pid, err := syscall.ForkExec(path, argv, attr)
	if errors.Is(err, unix.ENOEXEC) {
		return syscall.ForkExec("/bin/sh", append([]string{"sh", path}, argv[1:]...), attr)
	}
	return pid, err
}

// shellStatus is what a shell gives for a command that could not be started.
func shellStatus(err error) uint32 {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return 127
	}
	return 126
}

// reap is process 1's duty to every orphan of the run; it returns when the
// command itself has ended, and the kernel ends the rest with process 1.
func (p *command) reap() int {
	for {
		var st unix.WaitStatus
		pid, err := unix.Wait4(-1, &st, unix.WUNTRACED|unix.WALL, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			p.ctl.send(Message{Op: OpFailed, Text: fmt.Sprintf("waiting for the command: %v", err)})
			return failStatus
		case pid != p.pid:
			continue
		case st.Stopped():
			p.ctl.send(Message{Op: OpStopped, Value: uint32(st.StopSignal())})
			continue
		}
		status := uint32(st.ExitStatus())
		if st.Signaled() {
			status = 128 + uint32(st.Signal())
		}
		p.ctl.send(Message{Op: OpExited, Value: status})
		return 0
	}
}

// relay delivers the supervisor's signals until the supervisor is gone; the
// run ends with it.
func (p *command) relay() {
	for {
		m, err := p.ctl.receive()
		if err != nil {
			unix.Exit(failStatus)
		}
		if m.Op != OpSignal {
			continue
		}
		to := p.pid
		if m.Text == "group" {
			to = -p.pid // the command leads a group of its own
		}
		_ = unix.Kill(to, unix.Signal(m.Value)) // it may have ended meanwhile
	}
}

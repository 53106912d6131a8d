package stage

import (
	"bytes"
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
	guarded  bool   // the name guard is in force
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
	if err := p.session(tty); err != nil {
		return err
	}
	sys := &syscall.SysProcAttr{Setpgid: true}
	if tty >= 0 {
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
	path, argv, err := p.find()
	if err == nil {
		p.pid, err = syscall.ForkExec(path, argv, attr)
	}
	for fd := StdinFD; fd <= StdinFD+2; fd++ {
		_ = unix.Close(fd) // the command has its own
	}
	if tty >= 0 {
		_ = unix.Close(tty) // so that the supervisor sees the end of it
	}
	if err != nil {
		p.couldNot(err)
		return nil
	}
	p.ctl.send(Message{Op: OpStarted, Value: uint32(p.pid)})
	return nil
}

// session makes process 1 the leader of a session whose terminal tty is, if
// there is one. Were the command the leader, its process group would have no
// parent in the session, and the kernel lets the stop key do nothing to such a
// group.
func (p *command) session(tty int) error {
	if _, err := unix.Setsid(); err != nil {
		return fmt.Errorf("beginning a session: %w", err)
	}
	if tty >= 0 {
		if err := unix.IoctlSetInt(tty, unix.TIOCSCTTY, 0); err != nil {
			return fmt.Errorf("taking the pseudo-terminal: %w", err)
		}
	}
	return nil
}

// find looks for the command as execvp would: a name without a slash in the
// run's PATH, and a text file without a first line that names an interpreter
// is a shell script. What it finds is only tried; execve decides.
func (p *command) find() (path string, argv []string, err error) {
	name := p.config.Argv[0]
	argv = p.config.Argv
	if name == "" {
		return "", nil, unix.ENOENT
	}
	path = name
	if !strings.Contains(name, "/") {
		if path, err = p.search(name); err != nil {
			return "", nil, err
		}
	}
	if isScript(absolute(p.config.Dir, path)) {
		return "/bin/sh", append([]string{"sh", path}, argv[1:]...), nil
	}
	return path, argv, nil
}

func (p *command) search(name string) (string, error) {
	refused := error(unix.ENOENT)
	for _, dir := range strings.Split(p.path(), ":") {
		if dir == "" {
			dir = "."
		}
		path := dir + "/" + name
		var st unix.Stat_t
		if unix.Stat(absolute(p.config.Dir, path), &st) != nil {
			continue
		}
		if st.Mode&unix.S_IFMT == unix.S_IFREG && unix.Faccessat(unix.AT_FDCWD, absolute(p.config.Dir, path), unix.X_OK, unix.AT_EACCESS) == nil {
			return path, nil
		}
		refused = unix.EACCES
	}
	return "", refused
}

// isScript says that the kernel would not know how to execute an executable
// text file, and a shell would.
func isScript(path string) bool {
	if unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) != nil {
		return false
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	head := make([]byte, 64)
	n, err := unix.Read(fd, head)
	if err != nil {
		return false
	}
	head = head[:n]
	return !bytes.HasPrefix(head, []byte("#!")) && !bytes.HasPrefix(head, []byte("\x7fELF")) && bytes.IndexByte(head, 0) < 0
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
		pid, err := unix.Wait4(-1, &st, unix.WUNTRACED, nil)
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

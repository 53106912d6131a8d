package stage

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentguard/guard/surface"
	"agentguard/sandbox/broker"
)

// rules answers the broker from the run's names.
type rules struct{ *names }

// Decide refuses what would change a frozen name, or an inode that has one.
func (r rules) Decide(q *broker.Query) broker.Verdict {
	if q.Links > 1 {
		if path, ok := r.inodes[[2]uint64{q.Dev, q.Ino}]; ok {
			return broker.Verdict{Rule: "another name of " + path}
		}
	}
	if r.ofOthers(string(q.Path)) {
		return broker.Verdict{Rule: "the state of another work tree"}
	}
	if q.Op == broker.OpRemove && r.removable(string(q.Path)) {
		return broker.Verdict{Allow: true}
	}
	if v := r.judge(string(q.Path), surfaceType(q.Type)); v.frozen {
		// git tries to remove each directory that it has emptied, up to .git
		// itself: refused as ever, and no news.
		quiet := q.Op == broker.OpRemove && strings.HasSuffix(string(q.Path), "/.git")
		return broker.Verdict{Rule: v.rule, Quiet: quiet}
	}
	return broker.Verdict{Allow: true}
}

// Contents says that a rename may change what names below it mean, which is so
// everywhere but outside the areas.
func (r rules) Contents(from, to []byte) bool {
	for _, a := range r.areas {
		if strings.HasPrefix(string(from), a.Dir) || strings.HasPrefix(string(to), a.Dir) {
			return true
		}
	}
	return false
}

func surfaceType(mode uint32) surface.Type {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return surface.Regular
	case unix.S_IFDIR:
		return surface.Dir
	case unix.S_IFLNK:
		return surface.Symlink
	}
	return surface.Other
}

// brokered starts the command under the broker, or says why there is none.
func (p *command) brokered(n *names, done chan<- error) {
	runtime.LockOSThread()
	if err := broker.Available(); err != nil {
		p.without(err, done)
		return
	}
	files, err := p.standard()
	if err != nil {
		done <- err
		return
	}
	path, argv, err := p.find()
	if err != nil {
		p.couldNot(err)
		done <- nil
		return
	}
	cfg := broker.Config{
		Listener: -1,
		Rules:    rules{n},
		Restrict: func() error {
			return confine(p.config, func(abi int) { p.ctl.send(Message{Op: OpLandlock, Value: uint32(abi)}) })
		},
		Report: p.refused,
		Command: &broker.Command{
			Path: path, Args: argv, Env: p.config.Env, Dir: p.config.Dir,
			Setpgid: true, Foreground: p.config.TTY[0],
			Started: func(pid int, err error) {
				_ = files // held until here
				if err != nil {
					p.couldNot(err)
				} else {
					p.pid, p.guarded = pid, true
					p.ctl.send(Message{Op: OpBroker, Value: 1})
					p.ctl.send(Message{Op: OpStarted, Value: uint32(pid)})
				}
				done <- nil
			},
		},
	}
	err = broker.Serve(context.Background(), cfg, nil)
	// Nothing is brokered any more: every further call of the kind fails.
	err = fmt.Errorf("the name guard ended: %v", err)
	select {
	case done <- err:
	default: // the command runs: without the guard it must not go on
		p.ctl.send(Message{Op: OpFailed, Text: err.Error()})
		unix.Exit(failStatus)
	}
	select {}
}

// without starts the command where there is no broker, if that may be.
func (p *command) without(why error, done chan<- error) {
	if p.config.Broker.Mode == BrokerRequire {
		done <- fmt.Errorf("sandbox.broker: require, and there is none: %w", why)
		return
	}
	p.ctl.send(Message{Op: OpBroker, Text: why.Error()})
	go p.start(done)
}

// couldNot tells that the command could not be executed.
func (p *command) couldNot(err error) {
	p.pid, p.notFound = 0, shellStatus(err)
	p.ctl.send(Message{Op: OpNotFound, Value: p.notFound, Text: err.Error()})
}

// refused tells the supervisor of one refusal.
func (p *command) refused(r broker.Refusal) {
	p.ctl.send(Message{Op: OpRefused, Text: r.Call + "\x00" + r.Path + "\x00" + r.Rule + "\x00" + r.Comm})
}

// standard makes the command's descriptors process 1's own, which is where the
// broker takes them from.
func (p *command) standard() (tty int, err error) {
	files := [3]uintptr{StdinFD, StdinFD + 1, StdinFD + 2}
	if tty, err = p.terminal(&files); err != nil {
		return -1, err
	}
	if err := p.session(tty); err != nil {
		return -1, err
	}
	for i, fd := range files {
		if err := unix.Dup3(int(fd), i, 0); err != nil {
			return -1, fmt.Errorf("handing descriptor %d on: %w", i, err)
		}
	}
	for fd := StdinFD; fd <= StdinFD+2; fd++ {
		_ = unix.Close(fd) // duplicated
	}
	if tty >= 0 {
		_ = unix.Close(tty) // duplicated
	}
	return tty, nil
}

// letGo closes process 1's copies of the command's descriptors once it has
// its own, so that who reads its output sees the end of it.
func letGo() error {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the null device: %w", err)
	}
	defer unix.Close(null)
	for fd := range 3 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return fmt.Errorf("letting go of descriptor %d: %w", fd, err)
		}
	}
	return nil
}

// keepForBroker empties the capability sets of every thread but for what the
// broker's threads still have to use and to drop themselves.
func keepForBroker() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	kept := uint32(1<<unix.CAP_SYS_PTRACE | 1<<unix.CAP_SETPCAP)
	data := [2]unix.CapUserData{{Effective: kept, Permitted: kept}}
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	if e != 0 {
		return fmt.Errorf("dropping process 1's capabilities: %w", e)
	}
	return nil
}

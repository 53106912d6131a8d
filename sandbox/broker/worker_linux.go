//go:build amd64 || arm64

package broker

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// startPerformers starts the performing threads and waits until each is
// restricted.
func (s *server) startPerformers(wg *sync.WaitGroup) error {
	started := make(chan error)
	for range s.cfg.Performers {
		wg.Go(func() {
			// Never unlocked: the thread ends with the goroutine, and nothing
			// else may run on a thread that is restricted.
			runtime.LockOSThread()
			p := &worker{s: s, umask: -1}
			err := p.restrict()
			if err == nil && s.cfg.Command != nil {
				err = p.fork(s.cfg.Command)
			}
			started <- err
			switch {
			case err != nil:
			case s.cfg.Command != nil:
				p.serve()
			default:
				p.run()
			}
		})
	}
	var errs []error
	for range s.cfg.Performers {
		errs = append(errs, <-started)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	// Wake-ups on the caller's processor are faster; before Linux 6.6 there are none.
	_, _, _ = unix.RawSyscall(unix.SYS_IOCTL, uintptr(s.listener), ioctlSetFlags, syncWake)
	return nil
}

func (p *worker) restrict() error {
	// A signal in the middle of a hand-over would make the caller's open
	// return 0 without a descriptor: the kernel has marked the call answered
	// and takes the descriptor back. (The runtime's preemption signal did.)
	// SIGXFSZ from a truncate beyond our limit is kept out by the same.
	set := unix.Sigset_t{}
	for i := range set.Val {
		set.Val[i] = ^uint64(0)
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &set, nil); err != nil {
		return fmt.Errorf("blocking signals: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("giving a performing thread its own umask: %w", err)
	}
	if err := p.s.cfg.Restrict(); err != nil {
		return fmt.Errorf("restricting a performing thread: %w", err)
	}
	return hasNone()
}

func (p *worker) run() {
	for {
		r := p.next()
		if r == nil {
			return
		}
		p.perform(r)
		p.s.putBack(r)
	}
}

// serve receives, reads and performs on one thread: the command was forked
// from it, so its Landlock rules are the command's very own, and the kernel
// lets it look at any caller that is dumpable.
func (p *worker) serve() {
	p.read = &reader{}
	p.read.init(&p.s.masks)
	defer p.read.close()
	defer p.s.end() // nobody is left to call: the reading thread ends too
	r := &p.req
	r.base = [2]int{unix.AT_FDCWD, unix.AT_FDCWD}
	fds := [2]unix.PollFd{{Fd: int32(p.s.listener), Events: unix.POLLIN}, {Fd: int32(p.s.halt), Events: unix.POLLIN}}
	for {
		_, _, e := unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), 0, 0, 0, 0)
		if e == unix.EINTR {
			continue
		}
		if e != 0 || fds[1].Revents != 0 || fds[0].Revents&unix.POLLIN == 0 {
			return
		}
		if p.s.receiveInto(r, p.read) {
			p.perform(r)
		}
		r.release()
	}
}

// next returns a queued call, or waits for one.
func (p *worker) next() *request {
	s := p.s
	s.mu.Lock()
	if len(s.queue) > 0 {
		r := s.queue[0]
		s.queue = append(s.queue[:0], s.queue[1:]...)
		s.mu.Unlock()
		return r
	}
	if s.stopped {
		s.mu.Unlock()
		return nil
	}
	s.idle = append(s.idle, &p.box)
	s.mu.Unlock()
	return p.box.wait()
}

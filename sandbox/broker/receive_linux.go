//go:build amd64 || arm64

package broker

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receive is the reading thread's loop.
func (s *server) receive() error {
	for {
		s.mu.Lock()
		if s.stopped {
			s.mu.Unlock()
			return nil
		}
		var r *request
		alone := s.child != nil // another thread receives
		if n := len(s.free); n > 0 && !alone {
			r, s.free = s.free[n-1], s.free[:n-1]
		}
		s.starved = r == nil && !alone
		s.mu.Unlock()
		over, err := s.receiveOne(r)
		if err != nil || over {
			return err
		}
	}
}

// receiveOne waits for one call or one ask. Without a free request it waits
// for asks alone.
func (s *server) receiveOne(r *request) (over bool, err error) {
	fds := [2]unix.PollFd{{Fd: int32(s.wake), Events: unix.POLLIN}, {Fd: int32(s.listener), Events: unix.POLLIN}}
	watch := fds[:1]
	if r != nil {
		watch = fds[:]
	}
	_, _, e := unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&watch[0])), uintptr(len(watch)), 0, 0, 0, 0)
	if e != 0 && e != unix.EINTR {
		s.putBack(r)
		return false, fmt.Errorf("waiting for calls: %w", e)
	}
	if e == 0 && fds[0].Revents != 0 {
		var b [8]byte
		_, _ = unix.Read(s.wake, b[:]) // only to empty it
		s.answerAsks()
	}
	if e == 0 && r != nil && fds[1].Revents&unix.POLLIN != 0 {
		s.take(r)
		return false, nil
	}
	s.putBack(r)
	return r != nil && e == 0 && fds[1].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0, nil
}

// take receives one call into r, reads its arguments and passes it on.
func (s *server) take(r *request) {
	if !s.receiveInto(r, &s.read) {
		s.putBack(r)
		return
	}
	s.dispatch(r)
}

// receiveInto receives one call and reads its arguments. It reports whether
// there is something left to perform; otherwise the call is answered.
func (s *server) receiveInto(r *request, d *reader) bool {
	r.n = notification{}
	if e := ioctl(s.listener, ioctlRecv, unsafe.Pointer(&r.n)); e != 0 {
		return false // ENOENT: the caller died; EINTR: try again
	}
	s.count.Calls.Add(1)
	r.row = nil
	if r.n.nr >= 0 && r.n.nr < maxNumber {
		r.row = s.rows[r.n.nr]
	}
	switch {
	case r.row == nil || r.n.pid == 0: // not ours, or from outside the run
		s.send(r, 0, unix.EPERM)
		return false
	case r.row.kind == kindUmask:
		s.count.Umask.Add(1)
		s.masks.gen.Add(1)
		answer(s.listener, &response{id: r.n.id, flags: answerContinue})
		return false
	}
	e := d.read(r)
	if (e == unix.EPERM || e == unix.EACCES) && d != &s.read {
		// A caller that is not dumpable: the thread with the capability reads.
		r.release()
		_, e = s.ask(&ask{fill: r})
	}
	if !valid(s.listener, r.n.id) {
		s.count.Gone.Add(1)
		return false
	}
	if e != 0 {
		s.send(r, 0, e)
		return false
	}
	return true
}

func (s *server) putBack(r *request) {
	if r == nil {
		return
	}
	r.release()
	s.mu.Lock()
	s.free = append(s.free, r)
	starved := s.starved
	s.starved = false
	s.mu.Unlock()
	if starved {
		s.poke()
	}
}

// dispatch gives a call to the performing thread that was used last.
func (s *server) dispatch(r *request) {
	s.mu.Lock()
	n := len(s.idle)
	if n == 0 {
		s.queue = append(s.queue, r)
		s.mu.Unlock()
		return
	}
	p := s.idle[n-1]
	s.idle = s.idle[:n-1]
	s.mu.Unlock()
	p.give(r)
}

// send answers a call with a value or an error.
func (s *server) send(r *request, val int64, e syscall.Errno) {
	resp := response{id: r.n.id, val: val, err: -int32(e)}
	if e != 0 {
		resp.val = 0
	}
	if !answer(s.listener, &resp) {
		s.count.Gone.Add(1)
		return
	}
	s.count.Answered.Add(1)
}

// poke makes the reading thread look around.
func (s *server) poke() {
	one := [8]byte{1}
	_, _ = unix.Write(s.wake, one[:]) // EAGAIN: it is awake already
}

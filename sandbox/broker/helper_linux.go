//go:build amd64 || arm64

package broker

import (
	"fmt"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// helperCall is a call that may wait for as long as it likes.
type helperCall struct {
	nr      uintptr // openat or truncate, of the object's path in /proc/self/fd
	arg     uintptr // flags or length
	fd      bool    // the result is a descriptor to hand over
	cloexec uint32
}

// helper is what the forked process works on. It lives in the parent's heap;
// the child has a copy.
type helper struct {
	call     helperCall
	listener int
	lo, hi   int // the two descriptors to keep, in order
	path     [64]byte
	resp     response
	give     handover
	action   [4]uintptr
	mask     [1]uint64 // all but nudge
	all      [1]uint64
}

// returnAtOncePC is the address of a signal handler that does nothing.
var returnAtOncePC uintptr

const (
	// nudge interrupts a helper's call if it still waits. A helper that is past
	// it goes on to hand over: killing it there would tear the open, and leave
	// a FIFO's reader with an end that came and went.
	nudge      = unix.SIGURG
	saRestart  = 0x10000000
	sigsetSize = 8
)

// hand has a call performed by a process of its own, which answers the caller
// itself and can be killed. It keeps nothing of the request.
func (p *worker) hand(r *request, obj int, c helperCall) {
	h := &helper{call: c, listener: p.s.listener, lo: min(obj, p.s.listener), hi: max(obj, p.s.listener)}
	number(h.path[:], "/proc/self/fd/", obj)
	h.resp.id = r.n.id
	h.give = handover{id: r.n.id, flags: addfdSend, newFDFlags: c.cloexec}
	h.all[0] = ^uint64(0)
	h.mask[0] = h.all[0] &^ (1 << (nudge - 1))
	p.s.blocked.mu.Lock()
	pid, e := forkHelper(h)
	if e == 0 {
		p.s.blocked.open = append(p.s.blocked.open, blockedOpen{pid: pid, id: r.n.id, tid: r.n.pid})
	}
	p.s.blocked.mu.Unlock()
	if e != 0 {
		p.done(r, unix.ENFILE)
		return
	}
	p.s.count.Helpers.Add(1)
	p.s.blocked.poke()
}

// forkHelper forks the helper. The child has one thread and a copy of the
// memory, in which Go's runtime cannot run: raw system calls only, and signals
// blocked, as they are on every performing thread. Its exit sends no signal, so that a loop reaping children does not see it.
//
//go:norace
//go:noinline
//go:nosplit
func forkHelper(h *helper) (int, syscall.Errno) {
	pid, _, e := syscall.RawSyscall6(unix.SYS_CLONE, 0, 0, 0, 0, 0, 0)
	if e != 0 || pid != 0 {
		return int(pid), e
	}
	syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	_, _, e = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(nudge), 0, uintptr(unsafe.Pointer(&h.action)), sigsetSize, 0, 0)
	if e == 0 {
		h.action[0], h.action[1] = returnAtOncePC, h.action[1]&^saRestart
		syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(nudge), uintptr(unsafe.Pointer(&h.action)), 0, sigsetSize, 0, 0)
		syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&h.mask)), 0, sigsetSize, 0, 0)
	}
	if h.lo > 0 {
		syscall.RawSyscall6(unix.SYS_CLOSE_RANGE, 0, uintptr(h.lo-1), 0, 0, 0, 0)
	}
	if h.hi > h.lo+1 {
		syscall.RawSyscall6(unix.SYS_CLOSE_RANGE, uintptr(h.lo+1), uintptr(h.hi-1), 0, 0, 0, 0)
	}
	syscall.RawSyscall6(unix.SYS_CLOSE_RANGE, uintptr(h.hi+1), uintptr(^uint32(0)), 0, 0, 0, 0)
	var val uintptr
	if h.call.fd {
		val, _, e = syscall.RawSyscall6(h.call.nr, ^uintptr(99), uintptr(unsafe.Pointer(&h.path)), h.call.arg, 0, 0, 0)
		// From here on no nudge: see worker.restrict.
		syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&h.all)), 0, sigsetSize, 0, 0)
		if e == 0 {
			h.give.src = uint32(val)
			_, _, e = syscall.RawSyscall6(unix.SYS_IOCTL, uintptr(h.listener), ioctlAddFD, uintptr(unsafe.Pointer(&h.give)), 0, 0, 0)
			if e == 0 {
				syscall.RawSyscall6(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
			}
		}
	} else {
		_, _, e = syscall.RawSyscall6(h.call.nr, uintptr(unsafe.Pointer(&h.path)), h.call.arg, 0, 0, 0, 0)
	}
	if e == unix.EINTR {
		e = errRestart // nudged: the caller has a signal to take
	}
	h.resp.err = -int32(e)
	syscall.RawSyscall6(unix.SYS_IOCTL, uintptr(h.listener), ioctlSend, uintptr(unsafe.Pointer(&h.resp)), 0, 0, 0)
	for {
		syscall.RawSyscall6(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
	}
}

// blockedOpens are the helpers that have not ended.
type blockedOpens struct {
	mu      sync.Mutex // guards what follows
	open    []blockedOpen
	stopped bool
	wake    chan struct{}
}

type blockedOpen struct {
	pid int
	id  uint64
	tid uint32
}

func (b *blockedOpens) has(pid int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.open {
		if o.pid == pid {
			return true
		}
	}
	return false
}

func (b *blockedOpens) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *blockedOpens) stop() {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.poke()
}

// blockedTick is how late a signal reaches a caller whose open waits in a
// helper. The open itself is not late: the helper answers.
const blockedTick = 10 * time.Millisecond

// watchBlocked looks after helpers: it reaps them, and nudges those whose
// caller has a signal to handle or is gone.
func (s *server) watchBlocked() {
	b := &s.blocked
	tick := time.NewTicker(blockedTick)
	defer tick.Stop()
	for {
		b.mu.Lock()
		if b.stopped {
			for _, o := range b.open {
				s.abandon(o)
			}
			b.open = nil
			b.mu.Unlock()
			return
		}
		kept := b.open[:0]
		for _, o := range b.open {
			if !s.settled(o) {
				kept = append(kept, o)
			}
		}
		b.open = kept
		none := len(kept) == 0
		b.mu.Unlock()
		if none {
			<-b.wake
			continue
		}
		<-tick.C
	}
}

// settled reports whether a helper has ended or was made to.
func (s *server) settled(o blockedOpen) bool {
	if pid, err := unix.Wait4(o.pid, nil, unix.WNOHANG|unix.WALL, nil); err != nil || pid == o.pid {
		// A helper that was killed has not answered; if it has, this is nothing.
		answer(s.listener, &response{id: o.id, err: -int32(unix.EINTR)})
		return true
	}
	// An answer in the making looks like a caller that is gone, so neither is
	// a reason to kill: a nudge ends the call that waits, and nothing else. If
	// it comes too early, the next tick's does not.
	if !valid(s.listener, o.id) || pendingSignal(o.tid) {
		_ = unix.Kill(o.pid, nudge) // not reaped yet, so the number is its own
	}
	return false
}

// abandon ends a helper when nobody is served any more.
func (s *server) abandon(o blockedOpen) {
	for range 200 {
		_ = unix.Kill(o.pid, nudge) // as above
		if pid, err := unix.Wait4(o.pid, nil, unix.WNOHANG|unix.WALL, nil); err != nil || pid == o.pid {
			return
		}
		time.Sleep(time.Millisecond)
	}
	_ = unix.Kill(o.pid, unix.SIGKILL) // as above
	_, _ = unix.Wait4(o.pid, nil, unix.WALL, nil)
}

// pendingSignal says whether a thread has a signal to take.
func pendingSignal(tid uint32) bool {
	status := readSmall(fmt.Sprintf("/proc/%d/status", tid))
	own, _ := statusField(status, "SigPnd:", 16)
	shared, _ := statusField(status, "ShdPnd:", 16)
	blocked, ok := statusField(status, "SigBlk:", 16)
	return ok && (own|shared)&^blocked != 0
}

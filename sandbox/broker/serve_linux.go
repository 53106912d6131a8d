//go:build amd64 || arm64

package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	requests          = 64  // calls in flight; further callers wait in the kernel
	maxNumber         = 512 // highest system call number in the table, rounded up
	defaultEntries    = 200_000
	defaultPerformers = 4
	refusalsKept      = 1024
)

type server struct {
	cfg      Config
	count    *Counters
	listener int
	wake     int // eventfd: asks, an idle request after none was, or the end
	halt     int // eventfd: the end, for a thread that serves alone
	child    *child
	rows     [maxNumber]*call
	read     reader // the reading thread's
	masks    masks
	sticky   sticky
	uid      uint32
	selfFD   int // /proc/self/fd
	selfTask int // /proc/self/task
	blocked  blockedOpens
	refusals chan Refusal
	asks     chan *ask

	// names is held for reading while a call is resolved, decided and
	// performed, and for writing by renames: between judging a name and using
	// it, no directory of the run changes its own.
	names sync.RWMutex

	mu      sync.Mutex // guards what follows
	free    []*request
	idle    []*performer
	queue   []*request
	starved bool // the reading thread waits for a free request
	stopped bool
}

func serve(ctx context.Context, cfg Config, ready chan<- struct{}) error {
	runtime.LockOSThread() // never undone: this thread's capabilities are its own
	s, err := newServer(cfg)
	if err != nil {
		closeFD(cfg.Listener)
		return err
	}
	defer s.close()
	if err := keepOnlyPtrace(); err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer s.stop()
	if err := s.startPerformers(&wg); err != nil {
		return err
	}
	wg.Go(s.watchBlocked)
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		for r := range s.refusals {
			cfg.Report(r)
		}
	}()
	defer func() { close(s.refusals); <-reported }()
	stopWatching := context.AfterFunc(ctx, s.end)
	defer stopWatching()
	defer s.drain(&wg)
	if err := s.release(ready); err != nil {
		return err
	}
	return s.receive()
}

// release tells that calls are answered, and lets the command begin.
func (s *server) release(ready chan<- struct{}) error {
	if ready != nil {
		close(ready)
	}
	if s.child == nil {
		return nil
	}
	err := s.child.proceed()
	if s.cfg.Command.Started != nil {
		s.cfg.Command.Started(s.child.pid, err)
	}
	return err
}

// end makes the reading thread, and a thread that serves alone, stop.
func (s *server) end() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.poke()
	one := [8]byte{1}
	_, _ = unix.Write(s.halt, one[:]) // it is level-triggered: once is enough
}

func newServer(cfg Config) (*server, error) {
	if cfg.Rules == nil || cfg.Restrict == nil {
		return nil, errors.New("a broker needs rules and a way to restrict its threads")
	}
	if cfg.Report == nil {
		cfg.Report = func(Refusal) {}
	}
	if cfg.Counters == nil {
		cfg.Counters = new(Counters)
	}
	if cfg.Entries == 0 {
		cfg.Entries = defaultEntries
	}
	if cfg.Performers == 0 {
		cfg.Performers = defaultPerformers
	}
	if cfg.Command != nil {
		cfg.Listener, cfg.Performers = -1, 1
	}
	s := &server{cfg: cfg, count: cfg.Counters, listener: cfg.Listener, wake: -1, halt: -1, selfFD: -1, selfTask: -1,
		uid: uint32(os.Geteuid()), refusals: make(chan Refusal, refusalsKept), asks: make(chan *ask, requests)}
	s.blocked.wake = make(chan struct{}, 1)
	s.masks.gen.Store(1)
	s.read.init(&s.masks)
	for i := range calls {
		if nr := calls[i].number(runtime.GOARCH); nr >= 0 && calls[i].kind != kindAbsent {
			s.rows[nr] = &calls[i]
		}
	}
	for range requests {
		if cfg.Command != nil {
			break // the one performing thread has a request of its own
		}
		r := &request{}
		r.base = [2]int{unix.AT_FDCWD, unix.AT_FDCWD}
		s.free = append(s.free, r)
	}
	return s, s.openOwn()
}

// openOwn opens what the broker uses of itself, before its threads are
// restricted.
func (s *server) openOwn() error {
	var e syscall.Errno
	if s.wake, _ = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); s.wake < 0 {
		return errors.New("making an eventfd")
	}
	if s.halt, _ = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); s.halt < 0 {
		return errors.New("making an eventfd")
	}
	if s.selfFD, e = openat(unix.AT_FDCWD, nameSelfFD, openPath, 0); e != 0 {
		return fmt.Errorf("opening /proc/self/fd: %w", e)
	}
	if s.selfTask, e = openat(unix.AT_FDCWD, procTaskName, openPath, 0); e != 0 {
		return fmt.Errorf("opening /proc/self/task: %w", e)
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	mask, ok := statusField(text, "Umask:", 8)
	if !ok {
		return errors.New("no umask in /proc/self/status")
	}
	s.masks.first = uint32(mask)
	s.sticky = sticky{setting("protected_symlinks"), setting("protected_fifos"), setting("protected_regular")}
	return nil
}

// setting reads one of the kernel's protections; what cannot be read counts
// as set.
func setting(name string) int {
	text, err := os.ReadFile("/proc/sys/fs/" + name)
	if err != nil {
		return 2
	}
	switch strings.TrimSpace(string(text)) {
	case "0":
		return 0
	case "1":
		return 1
	}
	return 2
}

func (s *server) close() {
	if s.child != nil {
		closeFD(s.child.sock) // a command that was not let begin ends
	}
	closeFD(s.listener)
	closeFD(s.wake)
	closeFD(s.halt)
	closeFD(s.selfFD)
	closeFD(s.selfTask)
	s.read.close()
}

// drain lets the performing threads finish what they hold. They may need the
// reading thread for it, so it goes on answering asks.
func (s *server) drain(wg *sync.WaitGroup) {
	s.stop()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for {
		select {
		case a := <-s.asks:
			a.fd, a.e = s.read.answer(a)
			close(a.done)
		case <-done:
			return
		}
	}
}

// stop tells every performing thread to end after its call.
func (s *server) stop() {
	s.mu.Lock()
	s.stopped = true
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, p := range idle {
		p.give(nil)
	}
	s.blocked.stop()
}

// performer is one performing thread's mailbox.
type performer struct {
	word uint32 // 1: next is set
	next *request
}

func (p *performer) give(r *request) {
	p.next = r
	atomic.StoreUint32(&p.word, 1)
	futexWake(&p.word)
}

// wait returns the next call, or nil when there will be none.
func (p *performer) wait() *request {
	for atomic.LoadUint32(&p.word) == 0 {
		futexWait(&p.word, 0)
	}
	atomic.StoreUint32(&p.word, 0)
	return p.next
}

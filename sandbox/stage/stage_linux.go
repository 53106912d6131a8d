package stage

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// failStatus is the stage's own exit status when it could not enforce.
const failStatus = 125

func init() {
	if len(os.Args) == 2 && os.Args[0] == Path && os.Args[1] == Word {
		os.Exit(run())
	}
}

// run is the whole life of process 1.
func run() int {
	ctl := &control{fd: ControlFD}
	c, err := setUp(ctl)
	if err != nil {
		ctl.send(Message{Op: OpFailed, Text: err.Error()})
		return failStatus
	}
	p := &command{ctl: ctl, config: c}
	if err := p.begin(); err != nil {
		ctl.send(Message{Op: OpFailed, Text: err.Error()})
		return failStatus
	}
	if p.pid == 0 {
		return int(p.notFound)
	}
	go p.relay()
	return p.reap()
}

// begin starts the command, under the broker where there is to be one, and
// leaves process 1 with nothing of what it needed for that.
func (p *command) begin() error {
	started := make(chan error, 1)
	if p.config.Broker.Mode == BrokerOff {
		go p.start(started)
		if err := <-started; err != nil {
			return err
		}
		return dropAll()
	}
	// The broker's threads sit in system calls, each holding what lets another
	// goroutine run until the runtime notices.
	runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0)))
	n := newNames(&p.config.Broker, hasGit)
	if err := keepForBroker(); err != nil {
		return err
	}
	go p.brokered(n, started)
	if err := <-started; err != nil || p.pid == 0 {
		return err
	}
	if !p.guarded {
		return dropAll()
	}
	return letGo()
}

func hasGit(dir string) bool {
	var st unix.Stat_t
	return unix.Lstat(dir+"/.git", &st) == nil
}

// setUp does all that needs the capabilities of the run's user namespace.
func setUp(ctl *control) (*Config, error) {
	// Without this a process of the run with the same identity could read
	// process 1's memory and descriptors.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("hiding process 1's memory: %w", err)
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("closing inherited descriptors on exec: %w", err)
	}
	if m, err := ctl.receive(); err != nil || m.Op != OpGo {
		return nil, fmt.Errorf("not told to go on: %v", err)
	}
	b, err := readConfig(ConfigFD)
	if err != nil {
		return nil, err
	}
	c, err := Decode(b)
	if err != nil {
		return nil, err
	}
	if err := build(c.Mounts); err != nil {
		return nil, err
	}
	if c.Port != 0 {
		if err := listen(ctl, int(c.Port)); err != nil {
			return nil, err
		}
	}
	for _, fd := range []int{ConfigFD, ExeFD} {
		_ = unix.Close(fd) // nothing is written to either
	}
	return c, nil
}

func readConfig(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("no stage configuration: %w", err)
	}
	b := make([]byte, st.Size)
	for n := 0; n < len(b); {
		m, err := unix.Pread(fd, b[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil || m == 0 {
			return nil, fmt.Errorf("reading the stage configuration: %d of %d bytes: %v", n, len(b), err)
		}
		n += m
	}
	return b, nil
}

// listen makes the only way out: a loopback socket inside the empty network
// namespace, accepted from outside by whoever holds the descriptor.
func listen(ctl *control, port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making the proxy's listener: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port}); err != nil {
		return fmt.Errorf("binding the proxy's listener: %w", err)
	}
	if err := unix.Listen(fd, 1024); err != nil {
		return fmt.Errorf("listening for the proxy: %w", err)
	}
	return ctl.sendFD(Message{Op: OpListener, Value: uint32(port)}, fd)
}

// control is the supervisor's end of the conversation. A send that fails is
// left alone: the supervisor is gone then, and relay notices.
type control struct {
	fd int
	mu sync.Mutex // one packet at a time
}

func (c *control) send(m Message) { _ = c.sendFD(m, -1) }

func (c *control) sendFD(m Message, fd int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	for {
		err := unix.Sendmsg(c.fd, m.Encode(), rights, nil, unix.MSG_NOSIGNAL)
		if err != unix.EINTR {
			return err
		}
	}
}

// receive returns the next message, or an error when the supervisor is gone.
func (c *control) receive() (Message, error) {
	b := make([]byte, maxMessage)
	for {
		n, err := unix.Read(c.fd, b)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return Message{}, err
		case n == 0:
			return Message{}, fmt.Errorf("the supervisor is gone")
		}
		return DecodeMessage(b[:n])
	}
}

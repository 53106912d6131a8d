package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentguard/sandbox/stage"
)

// terminal joins the caller's terminal to the pseudo-terminal inside. A nil
// one, where none of the standard descriptors is a terminal, does nothing.
type terminal struct {
	is    [3]bool
	in    *os.File // the caller's, nil when stdin is none
	out   *os.File // where the output of the pseudo-terminal goes
	modes unix.Termios
	size  unix.Winsize

	master *os.File
	wake   [2]*os.File    // a pipe: a byte or its end makes the input loop look again
	work   sync.WaitGroup // the loops
	mu     sync.Mutex     // guards raw and closed
	raw    bool
	closed bool
}

func openTerminal(spec *Spec) (*terminal, error) {
	t := &terminal{}
	for i, f := range []*os.File{spec.Stdin, spec.Stdout, spec.Stderr} {
		if f == nil {
			continue
		}
		modes, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		if err != nil {
			continue // not a terminal
		}
		t.is[i], t.modes = true, *modes
		if i == 0 {
			t.in = f
		}
		if t.out == nil || i == 1 {
			t.out = f
		}
	}
	if t.is == [3]bool{} {
		return nil, nil
	}
	if size, err := unix.IoctlGetWinsize(int(t.out.Fd()), unix.TIOCGWINSZ); err == nil {
		t.size = *size
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	t.wake = [2]*os.File{r, w}
	return t, nil
}

func (t *terminal) describe(c *stage.Config) {
	if t == nil {
		return
	}
	c.TTY = t.is
	c.Termios = append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&t.modes)), unsafe.Sizeof(t.modes))...)
	c.Winsize = [4]uint16{t.size.Row, t.size.Col, t.size.Xpixel, t.size.Ypixel}
}

func (t *terminal) attach(master *os.File) {
	if t != nil {
		t.master = master
	}
}

// start joins the two once the command runs.
func (t *terminal) start() {
	if t == nil || t.master == nil {
		return
	}
	t.work.Add(1)
	go t.copyOut()
	if t.in != nil {
		t.resume()
		t.work.Add(1)
		go t.copyIn()
	}
}

// copyOut ends when every process inside has closed the pseudo-terminal.
func (t *terminal) copyOut() {
	defer t.work.Done()
	_, _ = io.Copy(onlyWriter{t.out}, t.master) // EIO is its end
	_ = t.wake[1].Close()                       // ends copyIn
}

// onlyWriter keeps io.Copy from looking for a faster way that a terminal does
// not offer.
type onlyWriter struct{ io.Writer }

// copyIn hands typed characters on, but never takes one while the run is in
// the background or after its end: those are the shell's.
func (t *terminal) copyIn() {
	defer t.work.Done()
	buf := make([]byte, 4096)
	for {
		fds := []unix.PollFd{{Fd: int32(t.wake[0].Fd()), Events: unix.POLLIN}}
		if t.foreground() {
			fds = append(fds, unix.PollFd{Fd: int32(t.in.Fd()), Events: unix.POLLIN})
		}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if fds[0].Revents != 0 {
			if n, _ := t.wake[0].Read(buf[:1]); n == 0 {
				return
			}
			continue
		}
		if len(fds) == 1 || fds[1].Revents == 0 || !t.foreground() {
			continue
		}
		n, err := unix.Read(int(t.in.Fd()), buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		if _, err := t.master.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (t *terminal) foreground() bool {
	group, err := unix.IoctlGetInt(int(t.in.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// resume puts the caller's terminal into raw mode, if it is this run's at the
// moment, and tells the inside its size.
func (t *terminal) resume() {
	if t == nil || t.master == nil {
		return
	}
	t.resize()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.in == nil || t.raw || t.closed || !t.foreground() {
		return
	}
	raw := t.modes
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(int(t.in.Fd()), unix.TCSETSW, &raw) == nil {
		t.raw = true
	}
	_, _ = t.wake[1].Write([]byte{0}) // a full pipe wakes as well
}

// pause gives the caller's terminal its own modes back.
func (t *terminal) pause() error {
	if t == nil || t.in == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.raw {
		return nil
	}
	t.raw = false
	// In the background the call would stop this process, and the modes are
	// the foreground's.
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	if !t.foreground() {
		return nil
	}
	if err := unix.IoctlSetTermios(int(t.in.Fd()), unix.TCSETSW, &t.modes); err != nil {
		return fmt.Errorf("restoring the terminal's modes: %w", err)
	}
	return nil
}

// resize tells the inside the size of the caller's terminal.
func (t *terminal) resize() {
	if t == nil || t.master == nil {
		return
	}
	if size, err := unix.IoctlGetWinsize(int(t.out.Fd()), unix.TIOCGWINSZ); err == nil {
		_ = unix.IoctlSetWinsize(int(t.master.Fd()), unix.TIOCSWINSZ, size) // an older size is no fault
	}
}

// end waits for the last output and puts everything back.
func (t *terminal) end() error {
	if t == nil {
		return nil
	}
	t.work.Wait()
	err := t.pause()
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	for _, f := range []*os.File{t.master, t.wake[0], t.wake[1]} {
		if f != nil {
			_ = f.Close() // copyOut may have closed one already
		}
	}
	return err
}

package stage

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// terminal gives the command a pseudo-terminal of the run's own devpts in
// place of each standard descriptor that is the caller's terminal. The
// caller's own never enters the sandbox, so there is nothing to push
// characters into and nothing to leave in a wrong mode. It returns the
// command's side, or -1.
func (p *command) terminal(files *[3]uintptr) (int, error) {
	c := p.config
	if c.TTY == [3]bool{} {
		return -1, nil
	}
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("making a pseudo-terminal: %w", err)
	}
	defer unix.Close(master)
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return -1, fmt.Errorf("unlocking the pseudo-terminal: %w", err)
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return -1, fmt.Errorf("naming the pseudo-terminal: %w", err)
	}
	slave, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("opening the pseudo-terminal: %w", err)
	}
	if err := likeCaller(slave, c); err != nil {
		return -1, err
	}
	if err := p.ctl.sendFD(Message{Op: OpTerminal}, master); err != nil {
		return -1, fmt.Errorf("handing the pseudo-terminal out: %w", err)
	}
	for i, is := range c.TTY {
		if is {
			files[i] = uintptr(slave)
		}
	}
	return slave, nil
}

// likeCaller gives the pseudo-terminal the modes and the size of the caller's.
func likeCaller(fd int, c *Config) error {
	if len(c.Termios) == int(unsafe.Sizeof(unix.Termios{})) {
		t := (*unix.Termios)(unsafe.Pointer(&c.Termios[0]))
		if err := unix.IoctlSetTermios(fd, unix.TCSETS, t); err != nil {
			return fmt.Errorf("setting the pseudo-terminal's modes: %w", err)
		}
	}
	w := unix.Winsize{Row: c.Winsize[0], Col: c.Winsize[1], Xpixel: c.Winsize[2], Ypixel: c.Winsize[3]}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &w); err != nil {
		return fmt.Errorf("setting the pseudo-terminal's size: %w", err)
	}
	return nil
}

//go:build amd64 || arm64

package broker

import (
	"bytes"
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal names a caller's controlling terminal. In the broker's own session
// that is what /dev/tty is for the broker too; in a session begun inside the
// run it is a pseudo-terminal of the run's own devpts.
func (p *worker) terminal(tid uint32) ([]byte, syscall.Errno) {
	session, tty, ok := statTerminal(readSmall(fmt.Sprintf("/proc/%d/stat", tid)))
	if !ok || tty == 0 {
		return nil, unix.ENXIO
	}
	if own, _, ok := statTerminal(readSmall("/proc/self/stat")); ok && own == session {
		return []byte("/dev/tty\x00"), 0
	}
	major := tty >> 8 & 0xfff
	minor := tty&0xff | tty>>12&0xfff00
	if major < 136 || major > 143 {
		return nil, unix.ENXIO
	}
	return number(p.num2[:], "/dev/pts/", int(minor+(major-136)<<20)), 0
}

// statTerminal reads the session and the terminal out of /proc/PID/stat, whose
// second field is a name that may hold anything.
func statTerminal(text []byte) (session int, tty uint32, ok bool) {
	i := bytes.LastIndexByte(text, ')')
	if i < 0 {
		return 0, 0, false
	}
	fields := bytes.Fields(text[i+1:])
	if len(fields) < 5 {
		return 0, 0, false
	}
	session, err := strconv.Atoi(string(fields[3]))
	if err != nil {
		return 0, 0, false
	}
	t, err := strconv.ParseInt(string(fields[4]), 10, 64)
	return session, uint32(t), err == nil
}

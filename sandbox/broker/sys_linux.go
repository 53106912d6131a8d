//go:build amd64 || arm64

package broker

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The wrappers below take buffers that end in NUL instead of strings: the
// broker serves every call from buffers it made once, and allocates nothing.

const openPath = unix.O_PATH | unix.O_CLOEXEC

var (
	nameDot      = []byte(".\x00")
	nameEmpty    = []byte("\x00")
	nameRoot     = []byte("/\x00")
	nameCwd      = []byte("cwd\x00")
	nameStatus   = []byte("status\x00")
	nameSelfFD   = []byte("/proc/self/fd\x00")
	procTaskName = []byte("/proc/self/task\x00")
)

func openat(dir int, name []byte, flags uint32, mode uint32) (int, syscall.Errno) {
	fd, _, e := unix.Syscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(&name[0])), uintptr(flags), uintptr(mode), 0, 0)
	return int(fd), e
}

func openat2(dir int, name []byte, how *unix.OpenHow) (int, syscall.Errno) {
	fd, _, e := unix.Syscall6(unix.SYS_OPENAT2, uintptr(dir), uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(how)), unsafe.Sizeof(*how), 0, 0)
	return int(fd), e
}

func readlinkat(dir int, name, buf []byte) (int, syscall.Errno) {
	n, _, e := unix.Syscall6(unix.SYS_READLINKAT, uintptr(dir), uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), 0, 0)
	return int(n), e
}

func read(fd int, buf []byte) (int, syscall.Errno) {
	n, _, e := unix.Syscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	return int(n), e
}

func closeFD(fd int) {
	if fd >= 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) // nothing was written through it by us
	}
}

// ioctl runs one of the listener's requests. It may wait for the caller's
// thread, so it lets the scheduler know.
func ioctl(fd int, req uint, arg unsafe.Pointer) syscall.Errno {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(req), uintptr(arg))
	return e
}

const (
	futexWaitPrivate = 128
	futexWakePrivate = 129
)

func futexWait(word *uint32, val uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitPrivate, uintptr(val), 0, 0, 0) // callers look at the word again
}

func futexWake(word *uint32) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWakePrivate, 1, 0, 0, 0) // cannot fail on a word of ours
}

// number writes a decimal number and NUL into buf and returns what it used.
func number(buf []byte, prefix string, n int) []byte {
	b := append(buf[:0], prefix...)
	var d [20]byte
	i := len(d)
	for {
		i--
		d[i] = byte('0' + n%10)
		n /= 10
		if n == 0 {
			break
		}
	}
	return append(append(b, d[i:]...), 0)
}

//go:build amd64 || arm64

package broker

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's structures of seccomp user notification (linux/seccomp.h).
type (
	notification struct {
		id    uint64
		pid   uint32
		flags uint32
		nr    int32
		arch  uint32
		ip    uint64
		args  [6]uint64
	}
	response struct {
		id    uint64
		val   int64
		err   int32
		flags uint32
	}
	handover struct {
		id         uint64
		flags      uint32
		src        uint32
		fd         uint32
		newFDFlags uint32
	}
)

const (
	ioctlRecv     = 0xc0502100
	ioctlSend     = 0xc0182101
	ioctlValid    = 0x40082102
	ioctlAddFD    = 0x40182103
	ioctlSetFlags = 0x40082104

	answerContinue = 1
	addfdSend      = 2
	syncWake       = 1

	filterListener = 1 << 3 // SECCOMP_FILTER_FLAG_NEW_LISTENER
	filterKillable = 1 << 5 // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

	// errRestart makes the caller's kernel restart the call or return EINTR,
	// as the pending signal's handler wishes.
	errRestart = syscall.Errno(512)
)

// valid says whether the caller of id still waits: what was read by its thread
// number before this was its own.
func valid(listener int, id uint64) bool {
	_, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(listener), ioctlValid, uintptr(unsafe.Pointer(&id)))
	return e == 0
}

// answer sends a value or an error. It reports whether the caller was there.
func answer(listener int, r *response) bool {
	for {
		e := ioctl(listener, ioctlSend, unsafe.Pointer(r))
		if e != unix.EINTR {
			return e == 0
		}
	}
}

// handOver installs descriptor fd in the caller and returns its number there.
// The caller goes on waiting: only then can the descriptor here be closed
// before it goes on, and a file that it wrote be executed by it at once
// (ETXTBSY otherwise). Nothing is torn by the two steps: of what could come in
// between, a caller that waits killably takes no signal but a fatal one.
func handOver(listener int, h *handover) (number int, e syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall(unix.SYS_IOCTL, uintptr(listener), ioctlAddFD, uintptr(unsafe.Pointer(h)))
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

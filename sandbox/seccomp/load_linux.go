package seccomp

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

// From linux/seccomp.h and linux/prctl.h; package syscall has none of them.
const (
	prSetNoNewPrivs        = 38
	seccompSetModeFilter   = 1
	seccompFilterFlagTsync = 1
	maximumInstructions    = 4096
)

// load is [Load] on Linux.
func load(p []Instruction) error {
	if len(p) == 0 || len(p) > maximumInstructions {
		return fmt.Errorf("loading seccomp filter: %d instructions", len(p))
	}
	number, ok := map[string]uintptr{"amd64": 317, "arm64": 277}[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("loading seccomp filter: none for %s", runtime.GOARCH)
	}
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("setting no_new_privs: %w", e)
	}
	program := struct {
		length uint16
		filter *Instruction
	}{uint16(len(p)), &p[0]}
	// On success with TSYNC the kernel returns 0; a positive number is the
	// thread that could not be brought under the filter.
	r, _, e := syscall.RawSyscall(number, seccompSetModeFilter, seccompFilterFlagTsync, uintptr(unsafe.Pointer(&program)))
	if e != 0 {
		return fmt.Errorf("loading seccomp filter: %w", e)
	}
	if r != 0 {
		return fmt.Errorf("loading seccomp filter: thread %d has a filter of its own", r)
	}
	return nil
}

//go:build amd64 || arm64

package broker

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const seccompSetFilter = 1 // SECCOMP_SET_MODE_FILTER

type filterProgram struct {
	n    uint16
	prog *Instr
}

func install() (int, error) {
	p, err := Program(runtime.GOARCH)
	if err != nil {
		return -1, err
	}
	prog := filterProgram{uint16(len(p)), &p[0]}
	fd, _, e := unix.RawSyscall(unix.SYS_SECCOMP, seccompSetFilter, filterListener|filterKillable, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(p)
	switch e {
	case 0:
		return int(fd), nil
	case unix.EBUSY:
		return -1, &UnavailableError{Need: "to be the only listener, and another one is above", Err: e}
	}
	return -1, fmt.Errorf("installing the seccomp program: %w", e)
}

func available() error {
	// With no program the kernel looks at the flags first and then faults.
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, seccompSetFilter, filterListener|filterKillable, 0)
	if e != unix.EFAULT {
		return &UnavailableError{Need: "seccomp user notification with killable waits (Linux 5.19)", Err: e}
	}
	how := unix.OpenHow{Flags: openPath, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	fd, e := openat2(unix.AT_FDCWD, nameRoot, &how)
	if e != 0 {
		return &UnavailableError{Need: "openat2", Err: e}
	}
	closeFD(fd)
	return readHidden()
}

// readHidden reads what a call needs from a child that is not dumpable.
func readHidden() error {
	var word [8]byte
	pid, e := forkHidden()
	if e != 0 {
		return &UnavailableError{Need: "a child to try on", Err: e}
	}
	defer func() {
		_ = unix.Kill(pid, unix.SIGKILL) // it only waits to be killed
		_, _ = unix.Wait4(pid, nil, unix.WALL, nil)
	}()
	// The child stops itself once it is not dumpable.
	if _, err := unix.Wait4(pid, nil, unix.WALL|unix.WUNTRACED, nil); err != nil {
		return &UnavailableError{Need: "a child to try on", Err: err}
	}
	probe := [8]byte{1, 2, 3}
	local := unix.Iovec{Base: &word[0]}
	local.SetLen(len(word))
	remote := unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&probe)), Len: len(probe)}
	n, err := unix.ProcessVMReadv(pid, []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
	runtime.KeepAlive(&probe)
	if err == nil && n != len(word) {
		err = errors.New("short read")
	}
	if err != nil {
		return &UnavailableError{Need: "to read the memory of a process that is not dumpable (CAP_SYS_PTRACE; yama 2 or 3 refuses)", Err: err}
	}
	var buf [64]byte
	fd, e := openat(unix.AT_FDCWD, number(buf[:], "/proc/", pid), openPath, 0)
	if e != 0 {
		return &UnavailableError{Need: "/proc of this process namespace", Err: e}
	}
	defer closeFD(fd)
	cwd, e := openat(fd, nameCwd, openPath, 0)
	if e != 0 {
		return &UnavailableError{Need: "to open the working directory of a process that is not dumpable", Err: e}
	}
	closeFD(cwd)
	return nil
}

// forkHidden makes a child that is not dumpable and stops itself. The child
// runs raw system calls only: it has one thread, and Go's runtime wants more.
//
//go:norace
//go:noinline
//go:nosplit
func forkHidden() (int, syscall.Errno) {
	pid, _, e := syscall.RawSyscall6(unix.SYS_CLONE, 0, 0, 0, 0, 0, 0)
	if e != 0 || pid != 0 {
		return int(pid), e
	}
	syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0, 0)
	self, _, _ := syscall.RawSyscall6(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	syscall.RawSyscall6(unix.SYS_KILL, self, uintptr(unix.SIGSTOP), 0, 0, 0, 0)
	for {
		syscall.RawSyscall6(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
	}
}

//go:build amd64 || arm64

package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// child is a command that waits for the broker to be ready.
type child struct {
	pid  int
	sock int // our end
}

// startup is what the forked child works on.
type startup struct {
	path, dir  *byte
	argv, envp **byte
	prog       filterProgram
	sock       int
	setsid     bool
	setpgid    bool
	foreground bool
	msg        unix.Msghdr
	iov        unix.Iovec
	control    [24]byte // one SCM_RIGHTS message, its descriptor at 16
	data       [4]byte
	pgrp       int32
	action     [4]uintptr
	noAction   [4]uintptr
	noSignals  [1]uint64
}

// fork forks the command from this thread. The child installs the program on
// itself, hands the listener up and waits: from its first instruction the
// command is brokered, and no thread of this process is.
func (p *worker) fork(c *Command) error {
	prog, err := Program(runtime.GOARCH)
	if err != nil {
		return err
	}
	st, err := newStartup(c, prog)
	if err != nil {
		return err
	}
	socks, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making the command's socket: %w", err)
	}
	st.sock = socks[1]
	pid, e := forkCommand(st)
	closeFD(socks[1])
	runtime.KeepAlive(prog)
	if e != 0 {
		closeFD(socks[0])
		return fmt.Errorf("forking the command: %w", e)
	}
	p.s.child = &child{pid, socks[0]}
	p.s.listener, err = p.s.child.listener()
	return err
}

func newStartup(c *Command, prog []Instr) (*startup, error) {
	st := &startup{setsid: c.Setsid, setpgid: c.Setpgid || c.Foreground, foreground: c.Foreground}
	var errs [4]error
	var argv, envp []*byte
	st.path, errs[0] = unix.BytePtrFromString(c.Path)
	argv, errs[1] = syscall.SlicePtrFromStrings(c.Args)
	envp, errs[2] = syscall.SlicePtrFromStrings(c.Env)
	if c.Dir != "" {
		st.dir, errs[3] = unix.BytePtrFromString(c.Dir)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("the command: %w", err)
	}
	st.argv, st.envp = &argv[0], &envp[0]
	st.prog = filterProgram{uint16(len(prog)), &prog[0]}
	st.iov = unix.Iovec{Base: &st.data[0], Len: 1}
	st.msg.Iov, st.msg.Iovlen = &st.iov, 1
	st.msg.Control, st.msg.Controllen = &st.control[0], uint64(unix.CmsgLen(4))
	binary.NativeEndian.PutUint64(st.control[0:], uint64(unix.CmsgLen(4)))
	binary.NativeEndian.PutUint32(st.control[8:], unix.SOL_SOCKET)
	binary.NativeEndian.PutUint32(st.control[12:], unix.SCM_RIGHTS)
	return st, nil
}

// listener receives the child's listener, or the reason there is none.
func (c *child) listener() (int, error) {
	var data [4]byte
	var oob [64]byte
	n, oobn, _, _, err := unix.Recvmsg(c.sock, data[:], oob[:], unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("receiving the listener: %w", err)
	}
	if n == 4 {
		e := syscall.Errno(binary.NativeEndian.Uint32(data[:]))
		if e == unix.EBUSY {
			return -1, &UnavailableError{Need: "to be the only listener, and another one is above", Err: e}
		}
		return -1, fmt.Errorf("preparing the command: %w", e)
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(msgs) != 1 {
		return -1, fmt.Errorf("receiving the listener: the command ended (%w)", errors.Join(err, unix.EPIPE))
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return -1, fmt.Errorf("receiving the listener: %w", errors.Join(err, unix.EBADMSG))
	}
	return fds[0], nil
}

// proceed lets the child execute the command and returns why it could not.
func (c *child) proceed() error {
	defer func() { closeFD(c.sock); c.sock = -1 }()
	if _, err := unix.Write(c.sock, []byte{1}); err != nil {
		return fmt.Errorf("starting the command: %w", err)
	}
	var data [4]byte
	for {
		n, err := unix.Read(c.sock, data[:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("starting the command: %w", err)
		case n == 4:
			return fmt.Errorf("executing the command: %w", syscall.Errno(binary.NativeEndian.Uint32(data[:])))
		default:
			return nil // the socket closed itself on execve
		}
	}
}

// forkCommand forks and becomes the command. As in forkHelper the child runs
// raw system calls only. Its signal handlers go before its signals come.
//
//go:norace
//go:noinline
//go:nosplit
func forkCommand(st *startup) (int, syscall.Errno) {
	pid, _, e := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 || pid != 0 {
		return int(pid), e
	}
	for sig := uintptr(1); sig <= 64; sig++ {
		_, _, e = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&st.action)), 8, 0, 0)
		if e == 0 && st.action[0] > 1 {
			syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&st.noAction)), 0, 8, 0, 0)
		}
	}
	if st.setsid {
		syscall.RawSyscall6(unix.SYS_SETSID, 0, 0, 0, 0, 0, 0)
	}
	if st.setpgid {
		syscall.RawSyscall6(unix.SYS_SETPGID, 0, 0, 0, 0, 0, 0)
	}
	if st.foreground {
		self, _, _ := syscall.RawSyscall6(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0)
		st.pgrp = int32(self)
		syscall.RawSyscall6(unix.SYS_IOCTL, 0, unix.TIOCSPGRP, uintptr(unsafe.Pointer(&st.pgrp)), 0, 0, 0)
	}
	e = 0
	if st.dir != nil {
		_, _, e = syscall.RawSyscall6(unix.SYS_CHDIR, uintptr(unsafe.Pointer(st.dir)), 0, 0, 0, 0, 0)
	}
	var fd, n uintptr
	if e == 0 {
		fd, _, e = syscall.RawSyscall6(unix.SYS_SECCOMP, seccompSetFilter, filterListener|filterKillable, uintptr(unsafe.Pointer(&st.prog)), 0, 0, 0)
	}
	if e == 0 {
		*(*int32)(unsafe.Pointer(&st.control[16])) = int32(fd)
		_, _, e = syscall.RawSyscall6(unix.SYS_SENDMSG, uintptr(st.sock), uintptr(unsafe.Pointer(&st.msg)), 0, 0, 0, 0)
	}
	if e == 0 {
		n, _, e = syscall.RawSyscall6(unix.SYS_READ, uintptr(st.sock), uintptr(unsafe.Pointer(&st.data)), 1, 0, 0, 0)
	}
	if e == 0 && n == 1 {
		syscall.RawSyscall6(unix.SYS_CLOSE_RANGE, 3, uintptr(^uint32(0)), unix.CLOSE_RANGE_CLOEXEC, 0, 0, 0)
		syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&st.noSignals)), 0, 8, 0, 0)
		_, _, e = syscall.RawSyscall6(unix.SYS_EXECVE, uintptr(unsafe.Pointer(st.path)), uintptr(unsafe.Pointer(st.argv)), uintptr(unsafe.Pointer(st.envp)), 0, 0, 0)
	}
	*(*uint32)(unsafe.Pointer(&st.data)) = uint32(e)
	syscall.RawSyscall6(unix.SYS_WRITE, uintptr(st.sock), uintptr(unsafe.Pointer(&st.data)), 4, 0, 0, 0)
	for {
		syscall.RawSyscall6(unix.SYS_EXIT_GROUP, 125, 0, 0, 0, 0, 0)
	}
}

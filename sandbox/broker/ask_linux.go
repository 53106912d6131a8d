//go:build amd64 || arm64

package broker

import (
	"bytes"
	"fmt"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ask is what a performing thread needs the reading thread for: to open
// something below a process's directory in /proc, which the kernel grants only
// to who may trace that process.
type ask struct {
	tid   uint32 // the caller
	dir   int
	name  []byte
	flags uint32
	copy  bool     // copy the descriptor that name is the number of
	fill  *request // read this request's arguments instead
	done  chan struct{}
	fd    int
	e     syscall.Errno
}

func (s *server) ask(a *ask) (int, syscall.Errno) {
	a.done = make(chan struct{})
	s.asks <- a
	s.poke()
	<-a.done
	return a.fd, a.e
}

func (s *server) answerAsks() {
	for {
		select {
		case a := <-s.asks:
			a.fd, a.e = s.read.answer(a)
			close(a.done)
		default:
			return
		}
	}
}

// answer opens for a caller what the caller could have opened itself: anything
// of its own process, of another one only what needs no capability, the memory
// only of one that the caller traces, and never anything of this process.
func (d *reader) answer(a *ask) (int, syscall.Errno) {
	if a.fill != nil {
		return -1, d.read(a.fill)
	}
	var link, path [pathMax]byte
	n, e := readlinkat(unix.AT_FDCWD, number(link[:], "/proc/self/fd/", a.dir), path[:])
	if e != 0 {
		return -1, e
	}
	pid, _, ok := procOf(path[:n])
	if !ok || pid == unix.Getpid() || isOwnThread(pid) {
		return -1, unix.EACCES
	}
	own := uint32(pid) == a.tid || threadOf(pid, int(a.tid))
	if !own && a.flags&unix.O_ACCMODE != 0 {
		own = tracedBy(pid, int(a.tid))
	}
	if a.copy {
		n, err := strconv.Atoi(string(trimNUL(a.name)))
		if !own || err != nil {
			return -1, unix.EACCES
		}
		return copyDescriptor(a.tid, n)
	}
	if own {
		return openat(a.dir, a.name, a.flags|unix.O_CLOEXEC, 0)
	}
	if a.flags&unix.O_ACCMODE != 0 {
		return -1, unix.EACCES // this process is everybody's ancestor, which yama would let write
	}
	if err := setEffective(0); err != nil {
		return -1, unix.EACCES
	}
	fd, e := openat(a.dir, a.name, a.flags|unix.O_CLOEXEC, 0)
	if err := setEffective(^uint64(0)); err != nil && e == 0 {
		closeFD(fd)
		return -1, unix.EACCES
	}
	return fd, e
}

func exists(path string) bool { return unix.Access(path, unix.F_OK) == nil }

func isOwnThread(tid int) bool { return exists("/proc/self/task/" + strconv.Itoa(tid)) }

// threadOf says whether tid is a thread of the process that pid belongs to.
func threadOf(pid, tid int) bool { return exists(fmt.Sprintf("/proc/%d/task/%d", pid, tid)) }

// tracedBy says whether a thread of tid's process traces pid.
func tracedBy(pid, tid int) bool {
	status := readSmall(fmt.Sprintf("/proc/%d/status", pid))
	tracer, ok := statusField(status, "TracerPid:", 10)
	return ok && tracer != 0 && threadOf(tid, int(tracer))
}

func readSmall(path string) []byte {
	fd, e := openat(unix.AT_FDCWD, append([]byte(path), 0), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if e != 0 {
		return nil
	}
	defer closeFD(fd)
	buf := make([]byte, 8192)
	n, e := read(fd, buf)
	if e != 0 {
		return nil
	}
	return buf[:n]
}

// tgid returns the process of a thread.
func (p *worker) tgid(tid uint32) (int, syscall.Errno) {
	id, ok := statusField(readSmall(fmt.Sprintf("/proc/%d/status", tid)), "Tgid:", 10)
	if !ok {
		return 0, unix.ESRCH
	}
	return int(id), 0
}

// owns says whether a canonical path is in the /proc directory of this process
// or of a helper of its.
func (s *server) owns(canon []byte) bool {
	pid, _, ok := procOf(canon)
	if !ok {
		return false
	}
	if pid == unix.Getpid() || s.blocked.has(pid) {
		return true
	}
	var num [32]byte
	var st unix.Stat_t
	return fstatat(s.selfTask, number(num[:], "", pid), &st) == 0
}

func fstatat(dir int, name []byte, st *unix.Stat_t) syscall.Errno {
	_, _, e := unix.Syscall6(sysFstatat, uintptr(dir), uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
	return e
}

const capPtrace = 1 << unix.CAP_SYS_PTRACE

func capabilities() (permitted uint64, err error) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return 0, fmt.Errorf("reading the thread's capabilities: %w", err)
	}
	return uint64(data[0].Permitted) | uint64(data[1].Permitted)<<32, nil
}

func setCapabilities(permitted, effective uint64) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{
		{Permitted: uint32(permitted), Effective: uint32(effective)},
		{Permitted: uint32(permitted >> 32), Effective: uint32(effective >> 32)},
	}
	return unix.Capset(&hdr, &data[0])
}

// setEffective raises or drops what the thread is permitted.
func setEffective(mask uint64) error {
	permitted, err := capabilities()
	if err != nil {
		return err
	}
	return setCapabilities(permitted, permitted&mask)
}

// keepOnlyPtrace leaves the reading thread CAP_SYS_PTRACE, if it has it.
func keepOnlyPtrace() error {
	permitted, err := capabilities()
	if err != nil {
		return err
	}
	if err := setCapabilities(permitted&capPtrace, permitted&capPtrace); err != nil {
		return fmt.Errorf("dropping the reading thread's capabilities: %w", err)
	}
	return nil
}

// hasNone fails when a restricted thread still has a capability.
func hasNone() error {
	permitted, err := capabilities()
	if err == nil && permitted != 0 {
		err = fmt.Errorf("capabilities %#x are left on a performing thread", permitted)
	}
	return err
}

// trimNUL returns a name without its NUL.
func trimNUL(name []byte) []byte { return bytes.TrimRight(name, "\x00") }

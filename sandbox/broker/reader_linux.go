//go:build amd64 || arm64

package broker

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const pathMax = 4096

// request is one call on its way: filled by the reading thread, finished by a
// performing one. Requests are made once and used again.
type request struct {
	n     notification
	row   *call
	base  [2]int // what a relative name starts from: AT_FDCWD (absolute), or a descriptor to close
	path  [2][pathMax + 2]byte
	plen  [2]int
	text  [pathMax + 2]byte // text of a symbolic link
	umask uint32
}

func (r *request) flags() uint32 {
	f := r.row.fixed
	if r.row.flags >= 0 {
		f |= uint32(r.n.args[r.row.flags])
	}
	return f
}

func (r *request) mode() uint32 {
	if r.row.mode < 0 {
		return 0
	}
	return uint32(r.n.args[r.row.mode])
}

// pathname returns the i-th name without its NUL.
func (r *request) pathname(i int) []byte { return r.path[i][:r.plen[i]] }

func (r *request) release() {
	for i, fd := range r.base {
		if fd >= 0 {
			closeFD(fd)
		}
		r.base[i] = unix.AT_FDCWD
	}
}

// proc is what the reading thread remembers about one caller. The descriptor
// of its /proc directory stops working when the thread ends, so a number that
// is used again is never mistaken for the old thread.
type proc struct {
	tid      uint32
	dir      int
	umask    uint32
	umaskGen uint64 // generation the umask was read in; 0: not kept
}

const procSlots = 128

// masks is what all readers know about umasks.
type masks struct {
	gen   atomic.Uint64 // umask calls seen, plus one; 1: everybody still has first
	first uint32
}

// reader opens what belongs to callers. It is one thread's.
type reader struct {
	procs [procSlots]proc
	masks *masks
	buf   [4096]byte
	num   [64]byte
}

func (d *reader) init(m *masks) {
	d.masks = m
	for i := range d.procs {
		d.procs[i].dir = -1
	}
}

func (d *reader) close() {
	for i := range d.procs {
		closeFD(d.procs[i].dir)
	}
}

func (d *reader) forget(p *proc) {
	if p.tid != 0 {
		closeFD(p.dir)
	}
	*p = proc{dir: -1}
}

// proc returns the entry of a thread, fresh when asked for.
func (d *reader) proc(tid uint32, fresh bool) (*proc, syscall.Errno) {
	p := &d.procs[tid%procSlots]
	if p.tid == tid && !fresh {
		return p, 0
	}
	d.forget(p)
	dir, e := openat(unix.AT_FDCWD, number(d.num[:], "/proc/", int(tid)), openPath|unix.O_DIRECTORY, 0)
	if e != 0 {
		return nil, e
	}
	*p = proc{tid: tid, dir: dir}
	return p, 0
}

// open opens a name below the caller's /proc directory as a path. An entry
// kept from a thread that has ended fails, and is then made anew once.
func (d *reader) open(tid uint32, name []byte, flags uint32) (int, syscall.Errno) {
	p, e := d.proc(tid, false)
	if e != 0 {
		return -1, e
	}
	fd, e := openat(p.dir, name, flags|unix.O_CLOEXEC, 0)
	if e != unix.ENOENT && e != unix.ESRCH {
		return fd, e
	}
	if p, e = d.proc(tid, true); e != 0 {
		return -1, e
	}
	return openat(p.dir, name, flags|unix.O_CLOEXEC, 0)
}

// valid applies what the kernel looks at before it reads any name.
func (r *request) valid() syscall.Errno {
	flags, bad := r.flags(), false
	switch r.row.kind {
	case kindOpen:
		if flags&flagTmpfile != 0 {
			bad = flags&(unix.O_DIRECTORY|flagCreat) != unix.O_DIRECTORY || flags&flagAccess == unix.O_RDONLY
		} else {
			bad = flags&flagCreat != 0 && flags&unix.O_DIRECTORY != 0
		}
	case kindMknod:
		switch r.mode() & typeMask {
		case 0, typeRegular, typeChar, typeBlock, typeFIFO, typeSocket:
		case typeDir:
			return unix.EPERM
		default:
			bad = true
		}
	case kindUnlink:
		bad = flags&^flagRemoveDir != 0
	case kindLink:
		bad = flags&^(flagFollow|flagEmpty) != 0
	case kindRename:
		bad = flags&^7 != 0 || flags&renameExchange != 0 && flags != renameExchange
	case kindChmod:
		bad = flags&^(flagNoFollow|flagEmpty) != 0
	case kindTruncate:
		bad = int64(r.n.args[r.row.dev]) < 0
	}
	if bad {
		return unix.EINVAL
	}
	return 0
}

// read fills a request's names, descriptors and umask.
func (d *reader) read(r *request) syscall.Errno {
	c := r.row
	if e := r.valid(); e != 0 {
		return e
	}
	if c.text >= 0 {
		n, e := d.str(r.n.pid, r.n.args[c.text], r.text[:])
		if e == 0 && n == 0 {
			e = unix.ENOENT // the kernel says so before it looks at the name
		}
		if e != 0 {
			return e
		}
	}
	if c.kind == kindFchmod {
		fd, e := d.descriptor(r.n.pid, int32(r.n.args[c.dir0]))
		r.base[0] = fd
		return e
	}
	if e := d.name(r, 0, c.dir0, c.path0); e != 0 {
		return e
	}
	if c.path1 >= 0 {
		if e := d.name(r, 1, c.dir1, c.path1); e != 0 {
			return e
		}
	}
	switch c.kind {
	case kindOpen, kindMkdir, kindMknod:
		return d.mask(r)
	}
	return 0
}

// name reads one name and opens what it is relative to.
func (d *reader) name(r *request, i int, dir, path int8) syscall.Errno {
	n, e := d.str(r.n.pid, r.n.args[path], r.path[i][:])
	if e != 0 {
		return e
	}
	r.plen[i] = n
	if n > 0 && r.path[i][0] == '/' {
		return 0
	}
	at := int32(unix.AT_FDCWD)
	if dir >= 0 {
		at = int32(r.n.args[dir])
	}
	if at == unix.AT_FDCWD {
		r.base[i], e = d.open(r.n.pid, nameCwd, openPath)
		return e
	}
	r.base[i], e = d.descriptor(r.n.pid, at)
	return e
}

// descriptor opens the object of one of the caller's descriptors as a path.
func (d *reader) descriptor(tid uint32, fd int32) (int, syscall.Errno) {
	if fd < 0 {
		return -1, unix.EBADF
	}
	n, e := d.open(tid, number(d.num[32:32], "fd/", int(fd)), openPath)
	switch e {
	case unix.ENOENT:
		e = unix.EBADF
	case unix.EACCES: // not dumpable, and the owner of its /proc files is not of this user namespace
		return copyDescriptor(tid, int(fd))
	}
	return n, e
}

const pidfdThread = unix.O_EXCL // PIDFD_THREAD, Linux 6.9

// copyDescriptor takes a copy of a thread's descriptor. Before Linux 6.9 only
// a process's first thread can be asked, whose descriptors are usually all
// threads'.
func copyDescriptor(tid uint32, fd int) (int, syscall.Errno) {
	pid, err := unix.PidfdOpen(int(tid), pidfdThread)
	if err == unix.EINVAL {
		pid, err = unix.PidfdOpen(int(tid), 0)
	}
	if err != nil {
		return -1, errno(err)
	}
	defer closeFD(pid)
	n, err := unix.PidfdGetfd(pid, fd, 0)
	return n, errno(err)
}

// str reads a string of the caller into buf and returns its length. It reads
// up to the end of a page first: what follows may not be mapped.
func (d *reader) str(tid uint32, addr uint64, buf []byte) (int, syscall.Errno) {
	n := 0
	for n < pathMax {
		want := min(pathMax-n, pathMax-int(addr&(pathMax-1)))
		got, e := readMemory(tid, addr, buf[n:n+want])
		if e != 0 {
			return 0, e
		}
		if i := bytes.IndexByte(buf[n:n+got], 0); i >= 0 {
			return n + i, 0
		}
		if got < want {
			return 0, unix.EFAULT
		}
		n, addr = n+got, addr+uint64(got)
	}
	return 0, unix.ENAMETOOLONG
}

func readMemory(tid uint32, addr uint64, buf []byte) (int, syscall.Errno) {
	local := unix.Iovec{Base: &buf[0], Len: uint64(len(buf))}
	remote := unix.RemoteIovec{Base: uintptr(addr), Len: len(buf)}
	n, _, e := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(tid),
		uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	return int(n), e
}

// mask finds the caller's umask. As long as nobody in the run called umask, it
// is the one everybody started with. Afterwards it is read, and kept until the
// next umask call of anybody, but only for a process with one thread: another
// thread may be on its way out of a umask call that was counted before.
func (d *reader) mask(r *request) syscall.Errno {
	r.umask = d.masks.first
	gen := d.masks.gen.Load()
	if gen == 1 {
		return 0
	}
	tid := r.n.pid
	if p := &d.procs[tid%procSlots]; p.tid == tid && p.umaskGen == gen {
		if fd, e := openat(p.dir, nameCwd, openPath, 0); e == 0 {
			closeFD(fd)
			r.umask = p.umask
			return 0
		}
	}
	fd, e := d.open(tid, nameStatus, unix.O_RDONLY)
	if e != 0 {
		return e
	}
	n, e := read(fd, d.buf[:])
	closeFD(fd)
	if e != 0 {
		return e
	}
	mask, ok := statusField(d.buf[:n], "Umask:", 8)
	if !ok {
		return unix.EIO
	}
	r.umask = uint32(mask)
	if threads, ok := statusField(d.buf[:n], "Threads:", 10); ok && threads == 1 {
		if p, e := d.proc(tid, false); e == 0 {
			p.umask, p.umaskGen = r.umask, gen
		}
	}
	return 0
}

// statusField finds one number in the text of a /proc status file.
func statusField(text []byte, field string, base int) (uint64, bool) {
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(field))
		if !ok {
			continue
		}
		v, err := strconv.ParseUint(string(bytes.TrimSpace(rest)), base, 64)
		return v, err == nil
	}
	return 0, false
}

//go:build amd64 || arm64

package broker

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// retries bounds how often an open starts over because the name appeared or
// went while it was judged. Within the run that needs another performing
// thread each time, outside it the host.
const retries = 32

// open performs open, openat and creat.
func (p *worker) open(r *request) {
	flags := r.flags()
	if flags&flagTmpfile != 0 {
		p.openTmpfile(r, flags)
		return
	}
	pl := &p.places[0]
	for range retries {
		again := p.openOnce(r, flags, pl)
		if !again {
			return
		}
		pl.close()
		pl.reset()
	}
	p.done(r, unix.EAGAIN)
}

// openOnce reports whether the name changed under it.
func (p *worker) openOnce(r *request, flags uint32, pl *place) (again bool) {
	excl := flags&(flagCreat|unix.O_EXCL) == flagCreat|unix.O_EXCL
	follow := flags&unix.O_NOFOLLOW == 0 && !excl
	e := p.resolve(r, 0, follow || r.endsInSlash(0), pl)
	if e == 0 && flags&flagCreat != 0 && (pl.slash || pl.dots) {
		e = unix.EISDIR
		if pl.dots && excl {
			e = unix.EEXIST
		}
	}
	if e != 0 {
		p.done(r, e)
		return false
	}
	if excl {
		p.openNew(r, flags, pl)
		return false
	}
	if !follow && pl.obj < 0 && pl.absent == 0 {
		if _, e := p.object(pl, 0, false); e != 0 {
			p.done(r, e)
			return false
		}
	}
	switch {
	case pl.obj >= 0:
		p.openOld(r, flags, pl)
	case flags&flagCreat == 0:
		p.done(r, pl.absent)
	default:
		return p.openNew(r, flags, pl)
	}
	return false
}

func (r *request) endsInSlash(i int) bool {
	return r.plen[i] > 0 && r.path[i][r.plen[i]-1] == '/'
}

// openNew makes a file. It insists that the file is new, because an existing
// one was not judged (and O_EXCL follows no link); without O_EXCL from the
// caller it then starts over.
func (p *worker) openNew(r *request, flags uint32, pl *place) (again bool) {
	if v := p.allowed(OpCreate, pl.canon, nil, typeRegular); !v.Allow {
		if flags&unix.O_EXCL != 0 {
			p.refuseNew(r, OpCreate, pl, v)
		} else {
			p.refuse(r, OpCreate, pl.canon, v)
		}
		return false
	}
	p.setUmask(r.umask)
	fd, e := openat(pl.parent, pl.name, flags|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOCTTY, r.mode())
	if e == unix.EEXIST && flags&unix.O_EXCL == 0 {
		return true
	}
	if e != 0 {
		p.done(r, e)
		return false
	}
	p.give(r, fd, flags)
	return false
}

// openOld opens an object that was judged, by its descriptor.
func (p *worker) openOld(r *request, flags uint32, pl *place) {
	kind := pl.stat.Mode & typeMask
	if e := p.mayOpen(flags, pl, kind); e != 0 {
		p.done(r, e)
		return
	}
	if kind == typeRegular && !inProc(pl.canon) {
		if v := p.allowed(OpWrite, pl.canon, &pl.stat, 0); !v.Allow {
			p.refuse(r, OpWrite, pl.canon, v)
			return
		}
	}
	how := flags&^(flagCreat|unix.O_EXCL|unix.O_NOFOLLOW) | unix.O_CLOEXEC | unix.O_NOCTTY
	switch {
	case kind == typeRegular && inProc(pl.canon) && string(trimNUL(pl.name)) == "mem":
		p.openMemory(r, how, flags, pl)
		return
	case kind == typeChar && pl.stat.Rdev == unix.Mkdev(5, 0):
		p.openTerminal(r, how, flags)
		return
	case kind == typeChar && unix.Major(pl.stat.Rdev) != 1 && pl.stat.Rdev != unix.Mkdev(5, 2),
		kind == typeBlock:
		p.hand(r, pl.obj, helperCall{nr: unix.SYS_OPENAT, arg: uintptr(how), fd: true, cloexec: flags & unix.O_CLOEXEC})
		return
	}
	p.reopen(r, how, flags, pl, kind)
}

// reopen opens a file without waiting; when it would have to wait, for a lease
// or for the other end of a FIFO, a helper does.
func (p *worker) reopen(r *request, how, flags uint32, pl *place, kind uint32) {
	try := how
	wait := flags&unix.O_NONBLOCK == 0 && (kind == typeRegular || kind == typeFIFO)
	if wait {
		try |= unix.O_NONBLOCK
	}
	e := unix.EWOULDBLOCK
	fd := -1
	if kind != typeFIFO || !wait || how&unix.O_ACCMODE != unix.O_RDONLY {
		fd, e = openat(p.s.selfFD, number(p.num[:], "", pl.obj), try, 0)
	}
	if wait && (e == unix.EWOULDBLOCK || e == unix.ENXIO && kind == typeFIFO) {
		p.hand(r, pl.obj, helperCall{nr: unix.SYS_OPENAT, arg: uintptr(how), fd: true, cloexec: flags & unix.O_CLOEXEC})
		return
	}
	if e != 0 {
		p.done(r, e)
		return
	}
	if wait {
		const settable = unix.O_APPEND | unix.O_DIRECT | unix.O_NOATIME | unix.O_ASYNC
		if _, _, e := unix.RawSyscall(unix.SYS_FCNTL, uintptr(fd), unix.F_SETFL, uintptr(how&settable)); e != 0 {
			closeFD(fd)
			p.done(r, e)
			return
		}
	}
	p.give(r, fd, flags)
}

// mayOpen applies what the kernel checks while it walks to an existing file.
func (p *worker) mayOpen(flags uint32, pl *place, kind uint32) syscall.Errno {
	if pl.slash && kind != typeDir {
		return unix.ENOTDIR
	}
	if flags&unix.O_DIRECTORY != 0 && kind != typeDir {
		return unix.ENOTDIR
	}
	if flags&flagCreat == 0 {
		return 0
	}
	if kind == typeDir {
		return unix.EISDIR
	}
	if pl.magic || pl.stat.Uid == p.s.uid {
		return 0
	}
	var dir unix.Stat_t
	if e := fstat(pl.parent, &dir); e != 0 {
		return e
	}
	if !p.s.sticky.open(p.s.uid, owner{dir.Mode, dir.Uid}, owner{pl.stat.Mode, pl.stat.Uid}) {
		return unix.EACCES
	}
	return 0
}

// openTmpfile makes a file without a name. Giving it one is a link, and judged
// then.
func (p *worker) openTmpfile(r *request, flags uint32) {
	pl := &p.places[0]
	follow := flags&unix.O_NOFOLLOW == 0 || r.endsInSlash(0)
	e := p.resolve(r, 0, follow, pl)
	if e == 0 && !follow && pl.obj < 0 {
		if _, e = p.object(pl, 0, false); e == unix.ELOOP {
			e = unix.ENOTDIR
		}
	}
	if e == 0 {
		e = pl.absent
	}
	if e == 0 && pl.stat.Mode&typeMask != typeDir {
		e = unix.ENOTDIR
	}
	if e != 0 {
		p.done(r, e)
		return
	}
	p.setUmask(r.umask)
	fd, e := openat(pl.obj, nameDot, flags|unix.O_CLOEXEC, r.mode())
	if e != 0 {
		p.done(r, e)
		return
	}
	p.give(r, fd, flags)
}

// openMemory opens a process's memory for its owner or its debugger.
func (p *worker) openMemory(r *request, how, flags uint32, pl *place) {
	fd, e := p.s.ask(&ask{tid: r.n.pid, dir: pl.parent, name: pl.name, flags: how | unix.O_NOFOLLOW})
	if e != 0 {
		p.done(r, e)
		return
	}
	p.give(r, fd, flags)
}

// give hands a descriptor over as the caller's answer.
func (p *worker) give(r *request, fd int, flags uint32) {
	h := handover{id: r.n.id, src: uint32(fd), newFDFlags: flags & unix.O_CLOEXEC}
	number, e := handOver(p.s.listener, &h)
	closeFD(fd)
	switch e {
	case 0:
		p.s.send(r, int64(number), 0)
	case unix.ENOENT, unix.ESRCH:
		p.s.count.Gone.Add(1)
	default: // the caller has no descriptor left, say
		p.done(r, e)
	}
}

// openTerminal opens /dev/tty: the caller's controlling terminal.
func (p *worker) openTerminal(r *request, how, flags uint32) {
	name, e := p.terminal(r.n.pid)
	if e != 0 {
		p.done(r, e)
		return
	}
	fd, e := openat(unix.AT_FDCWD, name, openPath, 0)
	if e != 0 {
		p.done(r, unix.ENXIO)
		return
	}
	defer closeFD(fd)
	p.hand(r, fd, helperCall{nr: unix.SYS_OPENAT, arg: uintptr(how), fd: true, cloexec: flags & unix.O_CLOEXEC})
}

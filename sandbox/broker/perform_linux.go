//go:build amd64 || arm64

package broker

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// worker is one performing thread: the run's identity, a file system context
// of its own, and buffers.
type worker struct {
	s      *server
	box    performer
	umask  int // set on this thread now, -1: none yet
	how    unix.OpenHow
	num    [64]byte
	num2   [64]byte
	places [2]place
	query  Query
	read   *reader // when this thread serves alone
	req    request
}

func (p *worker) perform(r *request) {
	for i := range p.places {
		p.places[i].reset()
	}
	defer func() {
		for i := range p.places {
			p.places[i].close()
		}
	}()
	if r.row.kind == kindRename {
		p.s.names.Lock()
		defer p.s.names.Unlock()
	} else {
		p.s.names.RLock()
		defer p.s.names.RUnlock()
	}
	switch r.row.kind {
	case kindOpen:
		p.open(r)
	case kindMkdir, kindMknod, kindSymlink:
		p.make(r)
	case kindLink:
		p.link(r)
	case kindRename:
		p.rename(r)
	case kindUnlink:
		p.unlink(r)
	case kindTruncate:
		p.truncate(r)
	case kindChmod, kindFchmod:
		p.chmod(r)
	default:
		p.s.send(r, 0, unix.EPERM)
	}
}

// setUmask gives this thread the caller's umask.
func (p *worker) setUmask(mask uint32) {
	if p.umask != int(mask) {
		unix.Umask(int(mask))
		p.umask = int(mask)
	}
}

func (p *worker) done(r *request, e syscall.Errno) { p.s.send(r, 0, e) }

// allowed asks the rules about one name. path stays the caller's.
func (p *worker) allowed(op Op, path []byte, st *unix.Stat_t, kind uint32) Verdict {
	q := &p.query
	*q = Query{Op: op, Path: path, Type: kind}
	if st != nil {
		q.Type, q.Dev, q.Ino, q.Links = st.Mode&typeMask, uint64(st.Dev), st.Ino, uint32(st.Nlink)
	}
	return p.s.cfg.Rules.Decide(q)
}

// refuse answers EPERM and reports.
func (p *worker) refuse(r *request, op Op, path []byte, v Verdict) {
	p.s.count.Refused.Add(1)
	if !v.Quiet {
		ref := Refusal{Op: op, Call: r.row.name, Path: string(path), Rule: v.Rule, PID: int(r.n.pid)}
		if comm := readSmall(fmt.Sprintf("/proc/%d/comm", r.n.pid)); len(comm) > 0 {
			ref.Comm = string(comm[:len(comm)-1])
		}
		select {
		case p.s.refusals <- ref:
		default:
			p.s.count.Dropped.Add(1)
		}
	}
	p.done(r, unix.EPERM)
}

// refuseNew refuses to make a name. When it is there already, that is what the
// caller is told, as the kernel would: mkdir -p of what exists is no attempt.
func (p *worker) refuseNew(r *request, op Op, pl *place, v Verdict) {
	var st unix.Stat_t
	if fstatat(pl.parent, pl.bareName(), &st) == 0 {
		p.done(r, unix.EEXIST)
		return
	}
	p.refuse(r, op, pl.canon, v)
}

// refuseOld refuses to touch a name. When there is none, the caller is told so.
func (p *worker) refuseOld(r *request, op Op, pl *place, v Verdict) {
	var st unix.Stat_t
	if e := fstatat(pl.parent, pl.bareName(), &st); e != 0 {
		p.done(r, e)
		return
	}
	p.refuse(r, op, pl.canon, v)
}

// make makes a directory, a node or a symbolic link.
func (p *worker) make(r *request) {
	pl := &p.places[0]
	if e := p.resolve(r, 0, false, pl); e != 0 {
		p.done(r, e)
		return
	}
	op, kind := OpMkdir, uint32(typeDir)
	switch r.row.kind {
	case kindMknod:
		if op, kind = OpCreate, r.mode()&typeMask; kind == 0 {
			kind = typeRegular
		}
	case kindSymlink:
		op, kind = OpSymlink, typeLink
	}
	if !pl.dots {
		if v := p.allowed(op, pl.canon, nil, kind); !v.Allow {
			p.refuseNew(r, op, pl, v)
			return
		}
	}
	var e syscall.Errno
	switch r.row.kind {
	case kindMkdir:
		p.setUmask(r.umask)
		_, _, e = unix.Syscall(unix.SYS_MKDIRAT, uintptr(pl.parent), uintptr(unsafe.Pointer(&pl.name[0])), uintptr(r.mode()))
	case kindMknod:
		p.setUmask(r.umask)
		_, _, e = unix.Syscall6(unix.SYS_MKNODAT, uintptr(pl.parent), uintptr(unsafe.Pointer(&pl.name[0])), uintptr(r.mode()), uintptr(uint32(r.n.args[r.row.dev])), 0, 0)
	default:
		_, _, e = unix.Syscall(unix.SYS_SYMLINKAT, uintptr(unsafe.Pointer(&r.text[0])), uintptr(pl.parent), uintptr(unsafe.Pointer(&pl.name[0])))
	}
	p.done(r, e)
}

func (p *worker) unlink(r *request) {
	pl := &p.places[0]
	flags := r.flags()
	if e := p.resolve(r, 0, false, pl); e != 0 {
		p.done(r, e)
		return
	}
	if !pl.dots {
		kind := uint32(0)
		if flags != 0 {
			kind = typeDir
		}
		if v := p.allowed(OpRemove, pl.canon, nil, kind); !v.Allow {
			p.refuseOld(r, OpRemove, pl, v)
			return
		}
	}
	_, _, e := unix.Syscall(unix.SYS_UNLINKAT, uintptr(pl.parent), uintptr(unsafe.Pointer(&pl.name[0])), uintptr(flags))
	p.done(r, e)
}

// link makes a hard link. Its source is a name that is left, or an object: a
// followed link, a descriptor.
func (p *worker) link(r *request) {
	from, to := &p.places[0], &p.places[1]
	flags := r.flags()
	follow := flags&flagFollow != 0
	if e := p.source(r, flags, follow, from); e != 0 {
		p.done(r, e)
		return
	}
	if e := p.resolve(r, 1, false, to); e != 0 {
		p.done(r, e)
		return
	}
	if v := p.allowed(OpLeave, from.canon, &from.stat, 0); !v.Allow {
		p.refuse(r, OpLeave, from.canon, v)
		return
	}
	if !to.dots {
		if v := p.allowed(OpLink, to.canon, &from.stat, 0); !v.Allow {
			p.refuseNew(r, OpLink, to, v)
			return
		}
	}
	dir, name, how := from.parent, from.name, uintptr(0)
	if from.obj >= 0 {
		dir, name, how = p.s.selfFD, number(p.num[:], "", from.obj), flagFollow
	}
	_, _, e := unix.Syscall6(unix.SYS_LINKAT, uintptr(dir), uintptr(unsafe.Pointer(&name[0])),
		uintptr(to.parent), uintptr(unsafe.Pointer(&to.name[0])), how, 0)
	p.done(r, e)
}

// source resolves what a hard link is made of.
func (p *worker) source(r *request, flags uint32, follow bool, from *place) syscall.Errno {
	if r.plen[0] == 0 && flags&flagEmpty != 0 {
		return p.own(r, from)
	}
	if e := p.resolve(r, 0, follow, from); e != 0 {
		return e
	}
	if from.absent != 0 {
		return from.absent
	}
	if from.obj < 0 {
		return from.lookAt(&from.stat)
	}
	if from.slash && from.stat.Mode&typeMask != typeDir {
		return unix.ENOTDIR
	}
	return 0
}

// own makes a place of the descriptor a request starts from.
func (p *worker) own(r *request, pl *place) (e syscall.Errno) {
	pl.obj, r.base[0] = r.base[0], unix.AT_FDCWD
	if e := fstat(pl.obj, &pl.stat); e != 0 {
		return e
	}
	pl.canon, e = p.canonical(pl.obj, pl.canBuf[:])
	if e == 0 && p.s.owns(pl.canon) {
		e = unix.EACCES
	}
	return e
}

func (p *worker) chmod(r *request) {
	pl := &p.places[0]
	flags := r.flags()
	noFollow := flags&flagNoFollow != 0 && !r.endsInSlash(0)
	var e syscall.Errno
	if r.row.kind == kindFchmod || r.plen[0] == 0 && flags&flagEmpty != 0 {
		e = p.own(r, pl)
	} else if e = p.resolve(r, 0, !noFollow, pl); e == 0 && noFollow && pl.obj < 0 {
		if _, e = p.object(pl, 0, false); e == unix.ELOOP {
			e = unix.EOPNOTSUPP // as the kernel says of chmod on a link
		}
	}
	if e == 0 && pl.obj < 0 {
		e = pl.absent
	}
	if e == 0 && pl.slash && pl.stat.Mode&typeMask != typeDir {
		e = unix.ENOTDIR
	}
	if e != 0 {
		p.done(r, e)
		return
	}
	if v := p.allowed(OpMode, pl.canon, &pl.stat, 0); !v.Allow {
		p.refuse(r, OpMode, pl.canon, v)
		return
	}
	num := number(p.num[:], "", pl.obj)
	_, _, e = unix.Syscall(unix.SYS_FCHMODAT, uintptr(p.s.selfFD), uintptr(unsafe.Pointer(&num[0])), uintptr(r.mode()))
	p.done(r, e)
}

// truncate cuts a file by name, in a helper: a lease may make it wait.
func (p *worker) truncate(r *request) {
	pl := &p.places[0]
	length := int64(r.n.args[r.row.dev])
	e := p.resolve(r, 0, true, pl)
	if e == 0 {
		e = pl.absent
	}
	if e == 0 && pl.slash && pl.stat.Mode&typeMask != typeDir {
		e = unix.ENOTDIR
	}
	if e == 0 && pl.stat.Mode&typeMask == typeRegular {
		e = p.fits(r, length, pl.stat.Size)
	}
	if e != 0 {
		p.done(r, e)
		return
	}
	if v := p.allowed(OpWrite, pl.canon, &pl.stat, 0); !v.Allow {
		p.refuse(r, OpWrite, pl.canon, v)
		return
	}
	p.hand(r, pl.obj, helperCall{nr: unix.SYS_TRUNCATE, arg: uintptr(length)})
}

// fits applies the caller's file size limit, which the kernel would look up on
// the performing thread.
func (p *worker) fits(r *request, length, size int64) syscall.Errno {
	var lim unix.Rlimit
	if err := unix.Prlimit(int(r.n.pid), unix.RLIMIT_FSIZE, nil, &lim); err != nil || length <= size || uint64(length) <= lim.Cur {
		return 0
	}
	if tgid, e := p.tgid(r.n.pid); e == 0 {
		_ = unix.Tgkill(tgid, int(r.n.pid), unix.SIGXFSZ) // EFBIG says it too
	}
	return unix.EFBIG
}

//go:build amd64 || arm64

package broker

import (
	"bytes"
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	renameNoReplace = 1
	renameExchange  = 2
)

// rename performs the three renames. It holds the names alone: while a
// directory's contents are judged nothing else of the run can be put into it.
func (p *worker) rename(r *request) {
	from, to := &p.places[0], &p.places[1]
	flags := r.flags()
	e := p.resolve(r, 0, false, from)
	if e == 0 {
		e = p.resolve(r, 1, false, to)
	}
	if e != 0 {
		p.done(r, e)
		return
	}
	if !from.dots && !to.dots {
		if !p.mayRename(r, flags, from, to) {
			return
		}
	}
	_, _, e = unix.Syscall6(unix.SYS_RENAMEAT2, uintptr(from.parent), uintptr(unsafe.Pointer(&from.name[0])),
		uintptr(to.parent), uintptr(unsafe.Pointer(&to.name[0])), uintptr(flags), 0)
	p.done(r, e)
}

// mayRename judges a rename, and answers the call when it may not be.
func (p *worker) mayRename(r *request, flags uint32, from, to *place) bool {
	if e := sameMount(from.parent, to.parent); e != 0 {
		p.done(r, e)
		return false
	}
	if e := fstatat(from.parent, from.bareName(), &from.stat); e != 0 {
		p.done(r, e)
		return false
	}
	there := fstatat(to.parent, to.bareName(), &to.stat)
	if flags&renameExchange != 0 {
		if there != 0 {
			p.done(r, there)
			return false
		}
		return p.mayMove(r, from, to, &from.stat) && p.mayMove(r, to, from, &to.stat)
	}
	if flags&renameNoReplace != 0 && there == 0 {
		p.done(r, unix.EEXIST)
		return false
	}
	return p.mayMove(r, from, to, &from.stat)
}

// sameMount says EXDEV for two directories on different mounts, which the
// kernel looks at before the names.
func sameMount(a, b int) syscall.Errno {
	var mount [2]uint64
	for i, fd := range [2]int{a, b} {
		var st unix.Statx_t
		if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil {
			return errno(err)
		}
		mount[i] = st.Mnt_id
	}
	if mount[0] != mount[1] {
		return unix.EXDEV
	}
	return 0
}

// mayMove judges one direction: the name left, the name that arrives, and for
// a directory what everything below it is called and would be called.
func (p *worker) mayMove(r *request, from, to *place, st *unix.Stat_t) bool {
	if v := p.allowed(OpLeave, from.canon, st, 0); !v.Allow {
		p.refuse(r, OpLeave, from.canon, v)
		return false
	}
	if v := p.allowed(OpArrive, to.canon, st, 0); !v.Allow {
		p.refuse(r, OpArrive, to.canon, v)
		return false
	}
	if st.Mode&typeMask != typeDir || !p.s.cfg.Rules.Contents(from.canon, to.canon) {
		return true
	}
	m := &move{p: p, left: p.s.cfg.Entries, old: bytes.Clone(from.canon), new: bytes.Clone(to.canon)}
	if m.dir(from.parent, from.bareName()) {
		return true
	}
	p.refuse(r, m.op, m.path, m.verdict)
	return false
}

// move walks a directory that is to be renamed. op, path and verdict tell what
// stood in the way.
type move struct {
	p        *worker
	left     int
	old, new []byte
	op       Op
	path     []byte
	verdict  Verdict
}

func (m *move) refuse(op Op, path []byte, v Verdict) bool {
	m.op, m.path, m.verdict = op, bytes.Clone(path), v
	return false
}

// dir judges everything below one directory. What cannot be read is refused.
func (m *move) dir(parent int, name []byte) bool {
	fd, e := openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if e != 0 {
		return m.refuse(OpLeave, m.old, Verdict{Rule: "a directory that cannot be read is not renamed"})
	}
	defer closeFD(fd)
	buf := make([]byte, 32<<10)
	for {
		n, _, e := unix.Syscall(unix.SYS_GETDENTS64, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
		if e != 0 {
			return m.refuse(OpLeave, m.old, Verdict{Rule: "a directory that cannot be read is not renamed"})
		}
		if n == 0 {
			return true
		}
		for b := buf[:n]; len(b) > 0; {
			size := binary.NativeEndian.Uint16(b[16:])
			entry := b[19:size]
			entry = entry[:bytes.IndexByte(entry, 0)+1]
			if !isDots(entry[:len(entry)-1]) && !m.entry(fd, entry, b[18]) {
				return false
			}
			b = b[size:]
		}
	}
}

// entry judges one entry by both its names.
func (m *move) entry(dir int, name []byte, dtype byte) bool {
	bare := name[:len(name)-1]
	if m.left--; m.left < 0 {
		return m.refuse(OpLeave, m.old, Verdict{Rule: "a directory with too many entries to judge is not renamed"})
	}
	if len(m.new)+len(bare)+1 >= pathMax || len(m.old)+len(bare)+1 >= pathMax {
		return m.refuse(OpLeave, m.old, Verdict{Rule: "a directory too deep to judge is not renamed"})
	}
	kind := uint32(dtype) << 12
	if dtype == unix.DT_UNKNOWN {
		var st unix.Stat_t
		if fstatat(dir, name, &st) != 0 {
			return m.refuse(OpLeave, m.old, Verdict{Rule: "a directory that cannot be read is not renamed"})
		}
		kind = st.Mode & typeMask
	}
	oldLen, newLen := len(m.old), len(m.new)
	m.old, m.new = below(m.old, bare), below(m.new, bare)
	defer func() { m.old, m.new = m.old[:oldLen], m.new[:newLen] }()
	if v := m.p.allowed(OpLeave, m.old, nil, kind); !v.Allow {
		return m.refuse(OpLeave, m.old, v)
	}
	if v := m.p.allowed(OpArrive, m.new, nil, kind); !v.Allow {
		return m.refuse(OpArrive, m.new, v)
	}
	return kind != typeDir || m.dir(dir, name)
}

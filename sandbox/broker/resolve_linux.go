//go:build amd64 || arm64

package broker

import (
	"bytes"
	"syscall"

	"golang.org/x/sys/unix"
)

const maxLinks = 40

// place is a resolved name: a directory held by descriptor, the last
// component, and the canonical path that is judged. The buffers are used again.
type place struct {
	parent int  // directory the name is in; AT_FDCWD for the root alone
	owned  bool // parent is ours to close
	obj    int  // the object itself as a path, or -1
	absent syscall.Errno
	dots   bool // the last component is ".", ".." or the root, never a new name
	slash  bool // the name ended in a slash
	magic  bool // obj is what a magic link of /proc led to; parent and name are the link's
	links  int
	stat   unix.Stat_t // of obj, when there is one

	name    []byte // last component with a trailing slash if there was one, and NUL
	canon   []byte
	nameBuf [pathMax + 2]byte
	canBuf  [2*pathMax + 2]byte
	text    [2][2*pathMax + 2]byte // texts of links, in turn
}

func (pl *place) reset() {
	pl.parent, pl.owned, pl.obj, pl.absent = unix.AT_FDCWD, false, -1, 0
	pl.dots, pl.slash, pl.magic, pl.links = false, false, false, 0
	pl.name, pl.canon = nil, nil
}

func (pl *place) close() {
	pl.setParent(unix.AT_FDCWD, false)
	closeFD(pl.obj)
	pl.obj = -1
}

func (pl *place) setParent(fd int, owned bool) {
	if pl.owned {
		closeFD(pl.parent)
	}
	pl.parent, pl.owned = fd, owned
}

// setName keeps the last component for the system calls to come.
func (pl *place) setName(bare []byte, slash bool) {
	b := append(pl.nameBuf[:0], bare...)
	if slash {
		b = append(b, '/')
	}
	pl.slash = slash
	pl.name = append(b, 0)
	pl.dots = isDots(bare)
}

func isDots(name []byte) bool {
	return len(name) == 1 && name[0] == '.' || len(name) == 2 && name[0] == '.' && name[1] == '.'
}

// canonical writes the path of a descriptor, as the kernel tells it.
func (p *worker) canonical(fd int, buf []byte) ([]byte, syscall.Errno) {
	n, e := readlinkat(p.s.selfFD, number(p.num[:], "", fd), buf)
	if e != 0 {
		return nil, e
	}
	if n >= pathMax {
		return nil, unix.ENAMETOOLONG
	}
	return buf[:n], 0
}

// below appends "/name" to a canonical path.
func below(dir, name []byte) []byte {
	if len(dir) != 1 || dir[0] != '/' {
		dir = append(dir, '/')
	}
	return append(dir, name...)
}

// resolve finds the i-th name of a request. With follow it resolves links in
// the last component too and opens the object, noting in absent when there is
// none; without, it leaves the last component alone.
//
// The kernel resolves the directory part in one step, refusing magic links.
// Whatever goes through /proc would be the broker's own view of it, so that is
// resolved again by hand, as the caller sees it.
func (p *worker) resolve(r *request, i int, follow bool, pl *place) syscall.Errno {
	base, path := r.base[i], r.pathname(i)
	if len(path) == 0 {
		return unix.ENOENT
	}
	for turn := 0; ; turn ^= 1 {
		end := len(bytes.TrimRight(path, "/"))
		if end == 0 {
			return p.root(pl, follow)
		}
		start := bytes.LastIndexByte(path[:end], '/') + 1
		dir, bare, slash := path[:start], path[start:end], end < len(path)
		if e := p.enter(base, dir, pl); e != 0 {
			return p.walk(r, base, path, follow, pl)
		}
		if inProc(pl.canon) {
			return p.walk(r, base, path, follow, pl)
		}
		pl.setName(bare, slash)
		if pl.dots {
			return p.last(pl)
		}
		pl.canon = below(pl.canon, bare)
		if !follow {
			return 0
		}
		text, e := p.object(pl, turn, true)
		if e != 0 || text == nil {
			return e
		}
		base, path = pl.parent, text
		if text[0] == '/' {
			base = unix.AT_FDCWD
		}
	}
}

func inProc(canon []byte) bool {
	rest, ok := bytes.CutPrefix(canon, []byte("/proc"))
	return ok && (len(rest) == 0 || rest[0] == '/')
}

// root makes a place of "/" itself.
func (p *worker) root(pl *place, follow bool) syscall.Errno {
	pl.setParent(unix.AT_FDCWD, false)
	pl.name, pl.dots, pl.canon = nameRoot, true, append(pl.canBuf[:0], '/')
	if !follow {
		return 0
	}
	return p.last(pl)
}

// enter opens the directory part of a path below base and tells its canonical
// path. The buffer of dir is followed by its last component, whose leading
// slash is borrowed for the NUL.
func (p *worker) enter(base int, dir []byte, pl *place) syscall.Errno {
	switch {
	case len(dir) == 0:
		if pl.parent != base {
			pl.setParent(base, false)
		}
	case len(bytes.TrimRight(dir, "/")) == 0:
		fd, e := openat(unix.AT_FDCWD, nameRoot, openPath|unix.O_DIRECTORY, 0)
		if e != 0 {
			return e
		}
		pl.setParent(fd, true)
	default:
		cut := len(dir) - 1
		dir[cut] = 0
		how := &p.how
		how.Flags, how.Resolve = openPath|unix.O_DIRECTORY, unix.RESOLVE_NO_MAGICLINKS
		fd, e := openat2(base, dir, how)
		dir[cut] = '/'
		if e != 0 {
			return e
		}
		pl.setParent(fd, true)
	}
	var e syscall.Errno
	pl.canon, e = p.canonical(pl.parent, pl.canBuf[:])
	return e
}

// last opens a final ".", ".." or "/".
func (p *worker) last(pl *place) (e syscall.Errno) {
	if pl.obj, e = openat(pl.parent, pl.name, openPath, 0); e != 0 {
		pl.obj = -1
		return e
	}
	if e := fstat(pl.obj, &pl.stat); e != 0 {
		return e
	}
	pl.canon, e = p.canonical(pl.obj, pl.canBuf[:])
	return e
}

// object opens the object of a name. When it is a link, the object stays
// closed; with follow the link's text is returned, without it ELOOP.
func (p *worker) object(pl *place, turn int, follow bool) ([]byte, syscall.Errno) {
	bare := pl.bareName()
	fd, e := openat(pl.parent, bare, openPath|unix.O_NOFOLLOW, 0)
	if e == unix.ENOENT {
		pl.absent = e
		return nil, 0
	}
	if e != 0 {
		return nil, e
	}
	if e := fstat(fd, &pl.stat); e != 0 {
		closeFD(fd)
		return nil, e
	}
	if pl.stat.Mode&typeMask != typeLink {
		pl.obj = fd
		return nil, 0
	}
	defer closeFD(fd)
	if pl.links++; pl.links > maxLinks || !follow {
		return nil, unix.ELOOP
	}
	if e := p.mayFollow(pl.parent, &pl.stat); e != 0 {
		return nil, e
	}
	return p.linkText(fd, pl.slash, pl.text[turn][:])
}

// bareName returns the last component without a trailing slash, for looking at
// a link itself.
func (pl *place) bareName() []byte {
	if !pl.slash {
		return pl.name
	}
	b := append(pl.text[0][:0], pl.name[:len(pl.name)-2]...)
	return append(b, 0)
}

func (p *worker) linkText(fd int, slash bool, buf []byte) ([]byte, syscall.Errno) {
	n, e := readlinkat(fd, nameEmpty, buf[:pathMax])
	if e != 0 {
		return nil, e
	}
	if n == 0 {
		return nil, unix.ENOENT
	}
	if slash {
		buf[n] = '/'
		n++
	}
	return buf[:n], 0
}

// mayFollow applies fs.protected_symlinks.
func (p *worker) mayFollow(dir int, link *unix.Stat_t) syscall.Errno {
	var st unix.Stat_t
	if p.s.sticky.symlinks == 0 || link.Uid == p.s.uid {
		return 0
	}
	if e := fstat(dir, &st); e != 0 {
		return e
	}
	if !p.s.sticky.follow(p.s.uid, owner{st.Mode, st.Uid}, owner{link.Mode, link.Uid}) {
		return unix.EACCES
	}
	return 0
}

func fstat(fd int, st *unix.Stat_t) syscall.Errno { return errno(unix.Fstat(fd, st)) }

// lookAt stats a name without following it.
func (pl *place) lookAt(st *unix.Stat_t) syscall.Errno {
	return fstatat(pl.parent, pl.name, st)
}

// errno turns the error of a wrapper back into the number it was.
func errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(syscall.Errno); ok {
		return e
	}
	return unix.EIO
}

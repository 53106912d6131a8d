//go:build amd64 || arm64

package broker

import (
	"bytes"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// walk resolves a path by hand, one component at a time, with /proc/self,
// /proc/thread-self and the magic links of /proc as the caller sees them. It
// is slow and rarely needed.
func (p *worker) walk(r *request, base int, path []byte, follow bool, pl *place) syscall.Errno {
	p.s.count.Slow.Add(1)
	w := &walker{p: p, r: r, pl: pl, cur: -1, follow: follow}
	defer func() { closeFD(w.cur) }()
	rest := bytes.Clone(path)
	if e := w.start(base, rest); e != 0 {
		return e
	}
	pl.setParent(unix.AT_FDCWD, false)
	for {
		next, done, e := w.step(rest)
		if e != 0 || done {
			return e
		}
		rest = next
	}
}

type walker struct {
	p      *worker
	r      *request
	pl     *place
	cur    int // directory reached so far, ours
	follow bool
}

func (w *walker) start(base int, path []byte) syscall.Errno {
	from, name := base, nameDot
	if path[0] == '/' {
		from, name = unix.AT_FDCWD, nameRoot
	}
	fd, e := openat(from, name, openPath|unix.O_DIRECTORY, 0)
	w.cur = fd
	return e
}

func (w *walker) move(fd int) {
	closeFD(w.cur)
	w.cur = fd
}

// step takes the first component off rest.
func (w *walker) step(rest []byte) (next []byte, done bool, e syscall.Errno) {
	rest = bytes.TrimLeft(rest, "/")
	comp, tail, _ := bytes.Cut(rest, []byte("/"))
	final := len(bytes.TrimLeft(tail, "/")) == 0
	slash := final && len(comp) < len(rest)
	if len(comp) == 0 {
		comp, final = []byte("."), true
	}
	name := append(bytes.Clone(comp), 0)
	if isDots(comp) {
		if final {
			return nil, true, w.finish(comp, slash, -1)
		}
		fd, e := openat(w.cur, name, openPath|unix.O_DIRECTORY, 0)
		if e == 0 {
			w.move(fd)
		}
		return tail, false, e
	}
	if final && !w.follow {
		return nil, true, w.finish(comp, slash, -1)
	}
	fd, e := openat(w.cur, name, openPath|unix.O_NOFOLLOW, 0)
	if e == unix.ENOENT && final {
		w.pl.absent = e
		return nil, true, w.finish(comp, slash, -1)
	}
	if e == unix.EACCES {
		return w.hidden(comp, tail, final, slash)
	}
	if e != 0 {
		return nil, false, e
	}
	return w.object(fd, comp, tail, final, slash)
}

// hidden goes on from a descriptor of a caller that is not dumpable, whose
// descriptor directory is open to nobody but itself.
func (w *walker) hidden(comp, tail []byte, final, slash bool) (next []byte, done bool, e syscall.Errno) {
	dir, e := w.p.canonical(w.cur, make([]byte, 2*pathMax))
	if e != 0 {
		return nil, false, e
	}
	if _, inside, ok := procOf(dir); !ok || !bytes.HasSuffix(inside, []byte("fd")) || !isMagic(inside, comp) {
		return nil, false, unix.EACCES
	}
	fd, e := w.p.s.ask(&ask{tid: w.r.n.pid, dir: w.cur, name: append(bytes.Clone(comp), 0), copy: true})
	if e != 0 {
		return nil, false, e
	}
	return w.arrive(fd, comp, tail, final, slash)
}

// arrive goes on from what a magic link led to.
func (w *walker) arrive(target int, comp, tail []byte, final, slash bool) (next []byte, done bool, e syscall.Errno) {
	var st unix.Stat_t
	if e := fstat(target, &st); e != 0 {
		closeFD(target)
		return nil, false, e
	}
	if final {
		w.pl.stat, w.pl.magic = st, true
		return nil, true, w.finish(comp, slash, target)
	}
	w.move(target)
	if st.Mode&typeMask != typeDir {
		return nil, false, unix.ENOTDIR
	}
	return tail, false, 0
}

// object goes on from the object of one component.
func (w *walker) object(fd int, comp, tail []byte, final, slash bool) (next []byte, done bool, e syscall.Errno) {
	var st unix.Stat_t
	if e := fstat(fd, &st); e != 0 {
		closeFD(fd)
		return nil, false, e
	}
	if st.Mode&typeMask != typeLink {
		if final {
			w.pl.stat = st
			return nil, true, w.finish(comp, slash, fd)
		}
		w.move(fd)
		if st.Mode&typeMask != typeDir {
			return nil, false, unix.ENOTDIR
		}
		return tail, false, 0
	}
	defer closeFD(fd)
	if w.pl.links++; w.pl.links > maxLinks {
		return nil, false, unix.ELOOP
	}
	if e := w.p.mayFollow(w.cur, &st); e != 0 {
		return nil, false, e
	}
	text, target, e := w.target(fd, comp)
	if e != 0 {
		return nil, false, e
	}
	if target < 0 {
		return w.splice(text, tail, slash)
	}
	return w.arrive(target, comp, tail, final, slash)
}

// splice puts the text of a link before what is left of the path.
func (w *walker) splice(text, tail []byte, slash bool) ([]byte, bool, syscall.Errno) {
	if len(text) == 0 {
		return nil, false, unix.ENOENT
	}
	if text[0] == '/' {
		fd, e := openat(unix.AT_FDCWD, nameRoot, openPath|unix.O_DIRECTORY, 0)
		if e != 0 {
			return nil, false, e
		}
		w.move(fd)
	}
	if len(tail) > 0 || slash {
		text = append(append(text, '/'), tail...)
	}
	if len(text) > 2*pathMax {
		return nil, false, unix.ENAMETOOLONG
	}
	return text, false, 0
}

// finish hands the walk's result to the place.
func (w *walker) finish(comp []byte, slash bool, obj int) syscall.Errno {
	pl := w.pl
	pl.setParent(w.cur, true)
	w.cur = -1
	pl.setName(comp, slash)
	pl.obj = obj
	dir, e := w.p.canonical(pl.parent, pl.canBuf[:])
	if e != 0 {
		return e
	}
	if w.p.s.owns(dir) {
		return unix.EACCES
	}
	pl.canon = dir
	switch {
	case pl.dots:
		if e := w.p.last(pl); e != 0 {
			return e
		}
	case pl.magic:
		if pl.canon, e = w.p.canonical(obj, pl.canBuf[:]); e != 0 {
			return e
		}
	default:
		pl.canon = below(dir, comp)
	}
	if w.p.s.owns(pl.canon) {
		return unix.EACCES
	}
	return 0
}

// target reads where a link leads: to a text, or for a magic link to an object.
func (w *walker) target(fd int, comp []byte) (text []byte, obj int, e syscall.Errno) {
	var fs unix.Statfs_t
	if e := errno(unix.Fstatfs(w.cur, &fs)); e != 0 {
		return nil, -1, e
	}
	buf := make([]byte, 2*pathMax+2)
	if fs.Type != unix.PROC_SUPER_MAGIC {
		text, e = w.p.linkText(fd, false, buf)
		return text, -1, e
	}
	dir, e := w.p.canonical(w.cur, buf)
	if e != 0 {
		return nil, -1, e
	}
	_, inside, isProcess := procOf(dir)
	switch {
	case !isProcess && string(comp) == "self":
		tgid, e := w.p.tgid(w.r.n.pid)
		return strconv.AppendInt(nil, int64(tgid), 10), -1, e
	case !isProcess && string(comp) == "thread-self":
		tgid, e := w.p.tgid(w.r.n.pid)
		text = strconv.AppendInt(nil, int64(tgid), 10)
		return strconv.AppendInt(append(text, "/task/"...), int64(w.r.n.pid), 10), -1, e
	case isProcess && isMagic(inside, comp):
		obj, e = w.p.s.ask(&ask{tid: w.r.n.pid, dir: w.cur, name: append(bytes.Clone(comp), 0), flags: openPath})
		return nil, obj, e
	}
	text, e = w.p.linkText(fd, false, make([]byte, 2*pathMax+2))
	return text, -1, e
}

// procOf splits a canonical path below a process's directory in /proc into the
// process and the rest.
func procOf(canon []byte) (pid int, inside []byte, ok bool) {
	rest, ok := bytes.CutPrefix(canon, []byte("/proc/"))
	if !ok {
		return 0, nil, false
	}
	digits, inside, _ := bytes.Cut(rest, []byte("/"))
	pid, err := strconv.Atoi(string(digits))
	return pid, inside, err == nil
}

// isMagic says whether a link in a process's directory leads to an object
// instead of a text. inside is its directory below /proc/PID.
func isMagic(inside, name []byte) bool {
	if task, ok := bytes.CutPrefix(inside, []byte("task/")); ok {
		_, inside, _ = bytes.Cut(task, []byte("/"))
	}
	switch string(inside) {
	case "":
		return string(name) == "cwd" || string(name) == "root" || string(name) == "exe"
	case "fd", "map_files", "ns":
		return true
	}
	return false
}

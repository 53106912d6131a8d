package watch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"agentguard/guard/event"
	"agentguard/guard/surface"

	"github.com/fsnotify/fsnotify"
)

// maxHash bounds what is read of one surface at each notice. Of a longer one
// its size, identity and times count.
const maxHash = 8 << 20 // bytes

// state is what is known of one surface. The zero value is an absent one.
type state struct {
	hit        surface.Hit
	present    bool
	unreadable bool
	typ        surface.Type
	perm       uint32
	size       int64
	dev, ino   uint64
	nlink      uint64
	link       string
	ctime      int64 // a program cannot set it, so it tells of a write that left the content as it was
	sum        [sha256.Size]byte
	hashed     bool
	watched    bool // this very file, beside its directory
}

// look reads what is there now. A surface that cannot be read is a state too,
// and not an absent one.
func (w *Watcher) look(r *root, p string) state {
	e, err := r.tree.Lstat(p)
	if errors.Is(err, surface.ErrNotExist) {
		return state{}
	}
	s := state{present: true, unreadable: err != nil}
	hit, ok := w.m.Match(p, e.Type)
	if !ok && err == nil {
		return state{}
	}
	s.fill(hit, e)
	if err != nil || e.Type != surface.Regular {
		return s
	}
	content, e, err := r.tree.Open(p)
	switch {
	case errors.Is(err, surface.ErrNotExist), errors.Is(err, surface.ErrNotRegular):
		return s // it changes just now; another notice is under way
	case err != nil:
		s.unreadable = true
		return s
	}
	defer content.Close() // read only: nothing is lost
	s.fill(hit, e)
	s.unreadable = s.read(content) != nil
	return s
}

func (s *state) fill(hit surface.Hit, e surface.WalkEntry) {
	s.hit, s.typ, s.perm, s.size, s.link = hit, e.Type, e.Perm, e.Size, e.Link
	s.dev, s.ino, s.nlink = e.Dev, e.Ino, e.Nlink
	if e.Type == surface.Dir {
		s.size, s.nlink = 0, 0 // of its content, which has surfaces of its own
	}
}

func (s *state) read(content io.Reader) error {
	if f, ok := content.(interface{ Stat() (fs.FileInfo, error) }); ok {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		s.ctime = changeTime(info)
	}
	if s.size > maxHash {
		return nil
	}
	h := sha256.New()
	buf := make([]byte, min(max(s.size, 0)+512, 32<<10)) // most are small, and a fresh page costs
	if _, err := io.CopyBuffer(h, io.LimitReader(content, maxHash), buf); err != nil {
		return err
	}
	h.Sum(s.sum[:0])
	s.hashed = true
	return nil
}

// since keeps of the old state what cannot be read now, so that a change that
// was made meanwhile shows when it can be read again.
func (s state) since(old state) state {
	switch {
	case !s.unreadable || !old.present:
		return s
	case s.ino == 0: // not even its identity
		s = old
		s.unreadable = true
	default:
		s.sum, s.hashed = old.sum, old.hashed
	}
	return s
}

// found is told by a walk of a name that is there.
func (w *Watcher) found(r *root, p string, typ surface.Type) {
	if _, known := w.known[p]; known && !w.learning {
		w.check(r, p, 0)
		return
	}
	hit, ok := w.m.Match(p, typ)
	if !ok {
		return
	}
	if !w.learning {
		w.check(r, p, fsnotify.Create)
		return
	}
	s := state{}
	if hit.Protection == surface.Note {
		if e, err := r.tree.Lstat(p); err == nil {
			s.present = true
			s.fill(hit, e)
		}
	} else {
		s = w.look(r, p)
	}
	if s.present {
		w.keep(r, p, state{}, s)
	}
}

// adopt takes the caller's set for what is known and tells what differs from
// it already. Of what is only noted the content is not read: there may be
// thousands.
func (w *Watcher) adopt(set *surface.Set) {
	for _, m := range set.Members {
		old := state{present: true}
		old.fill(m.Hit, m.WalkEntry)
		r := w.rootOf(m.Path)
		if m.Hit.Protection == surface.Note {
			w.known[m.Path] = old
			continue
		}
		now := w.look(r, m.Path)
		w.keep(r, m.Path, w.known[m.Path], now)
		if what := differs(old, now, 0); what != "" {
			w.tell(m.Path, what, old, now)
		}
	}
}

// rootOf returns the root below which a told path lies.
func (w *Watcher) rootOf(p string) *root {
	for _, r := range w.roots {
		if r.prefix != "" && len(p) > len(r.prefix) && p[:len(r.prefix)] == r.prefix && p[len(r.prefix)] == '/' {
			return r
		}
	}
	return w.roots[len(w.roots)-1]
}

// compareKnown looks at every known surface that is more than noted.
func (w *Watcher) compareKnown() {
	paths := make([]string, 0, len(w.known))
	for p, s := range w.known {
		if s.hit.Protection != surface.Note {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	for _, p := range paths {
		w.check(w.rootOf(p), p, 0)
	}
}

// check looks at a path that may be a surface and tells what changed since the
// last look, so the same change is told once however many notices it sends.
func (w *Watcher) check(r *root, p string, op fsnotify.Op) {
	old, known := w.known[p]
	if !known && !w.couldMatch(p) {
		return
	}
	now := w.look(r, p).since(old)
	what := differs(old, now, op)
	w.keep(r, p, old, now)
	if what != "" {
		w.tell(p, what, old, now)
	}
}

// keep remembers a state. A file is watched itself too, because a write and a
// new link through another name send no notice to its directory.
func (w *Watcher) keep(r *root, p string, old, now state) {
	if !now.present {
		delete(w.known, p)
		if old.watched {
			w.unwatch(r, p)
		}
		return
	}
	now.watched = old.watched && old.dev == now.dev && old.ino == now.ino
	if !now.watched && now.typ == surface.Regular && now.hit.Protection != surface.Note {
		now.watched = w.add(r, p)
	}
	w.known[p] = now
}

// couldMatch spares a look at a name that is no surface whatever its type is.
func (w *Watcher) couldMatch(p string) bool {
	for _, t := range []surface.Type{surface.Regular, surface.Dir, surface.Symlink, surface.Other} {
		if _, ok := w.m.Match(p, t); ok {
			return true
		}
	}
	return false
}

// differs says in a word what happened, "" for nothing.
func differs(old, now state, op fsnotify.Op) string {
	wrote := op&(fsnotify.Write|fsnotify.Create) != 0
	switch {
	case !old.present && !now.present:
		if op&fsnotify.Create != 0 {
			return "came and went"
		}
		return ""
	case !old.present:
		return "created"
	case !now.present && op&fsnotify.Rename != 0:
		return "moved away"
	case !now.present:
		return "removed"
	case now.unreadable && !old.unreadable:
		return "access changed"
	case old.typ != now.typ:
		return "type changed"
	case old.dev != now.dev || old.ino != now.ino:
		return "replaced"
	case old.size != now.size || old.link != now.link || old.hashed && now.hashed && old.sum != now.sum:
		return "changed"
	case old.unreadable != now.unreadable:
		return "access changed"
	case old.perm != now.perm:
		return "mode changed"
	case old.nlink < now.nlink:
		return "hard-linked"
	case old.nlink > now.nlink:
		return "unlinked elsewhere"
	case old.ctime == 0:
		if wrote && !old.hashed && now.typ == surface.Regular {
			return "written"
		}
		return ""
	case old.ctime != now.ctime && !now.hashed && now.typ == surface.Regular:
		return "changed" // too long to know better
	case old.ctime != now.ctime && wrote:
		return "written with the same content"
	case old.ctime != now.ctime:
		return "touched"
	}
	return ""
}

// tell reports one change. Its verdict says whether the policy lets an agent
// make it, not that it was stopped: it has happened.
func (w *Watcher) tell(p, what string, old, now state) {
	hit := now.hit
	if !now.present {
		hit = old.hit
	}
	if hit.Entry == nil { // came and went: judged as the file it most likely was
		var ok bool
		if hit, ok = w.m.Match(p, surface.Regular); !ok {
			return // only a link or a directory of this name would be one
		}
	}
	e := event.Event{Kind: event.WatchChange, Subject: p, Reason: what,
		Detail: map[string]string{"change": what, "protection": hit.Protection.String()}}
	if hit.Entry != nil {
		e.Rule, e.Detail["trigger"] = hit.Entry.ID, hit.Entry.Trigger
	}
	if now.present && now.typ != surface.Symlink {
		e.Detail["mode"] = fmt.Sprintf("%04o", now.perm)
	}
	switch hit.Protection {
	case surface.Freeze:
		e.Hint = "agentguard restore " + word(p)
	case surface.Review:
		e.Verdict, e.Hint = event.Allowed, "agentguard approve "+word(p)
	default:
		e.Verdict = event.Allowed
	}
	w.report(e)
}

// word returns p as one word of a command line.
func word(p string) string {
	for i := 0; i < len(p); i++ {
		c := p[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '/' && c != '_' && (c != '-' || i == 0) {
			return "$'" + quoted(p) + "'"
		}
	}
	return p
}

// quoted escapes for the $'…' of shells, in which any byte can be written.
func quoted(p string) string {
	var out []byte
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c < ' ' || c >= 0x7f || c == '\'' || c == '\\' {
			out = fmt.Appendf(out, `\x%02x`, c)
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

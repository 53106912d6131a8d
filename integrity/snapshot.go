package integrity

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"agentguard/guard/surface"
)

const (
	hashWorkers = 2        // more gained nothing when measured: system calls are the cost
	hashTries   = 3        // of one file that somebody writes meanwhile
	maxPart     = 16 << 20 // bytes of a structured file; a longer one counts as a whole
)

// UnstableError says that a surface was being written each time it was read,
// so that no hash of it means anything.
type UnstableError struct {
	Path  string
	Tries int
}

func (e *UnstableError) Error() string {
	return fmt.Sprintf("%q changed while it was read, %d times", e.Path, e.Tries)
}

// Snapshot hashes every member of set in t. Only regular files are opened, and
// no link is followed on the way to one. What vanished since the set was
// resolved is left out; what changed its type is recorded as what it is now.
//
// The executable part of a link is the file it names, where that is in the tree
// and no member of the set itself: its content is what runs.
func Snapshot(t surface.Tree, set *surface.Set) (*Manifest, error) {
	members := set.Members
	files := make([]File, len(members))
	errs := make([]error, len(members))
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(members)); i = next.Add(1) - 1 {
			files[i], errs[i] = hashMember(t, members[i])
		}
	}
	var wg sync.WaitGroup
	for range extraWorkers(members) {
		wg.Go(work)
	}
	work()
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i := range files {
		if err := followLink(t, set, members[i].Hit, &files[i]); err != nil {
			return nil, err
		}
	}
	return NewManifest(files), nil
}

// extraWorkers returns how many goroutines hash beside the calling one. Only a
// tree on disk is known to be read by several at once.
func extraWorkers(members []surface.Member) int {
	for _, m := range members {
		if m.Ino == 0 {
			return 0
		}
	}
	if len(members) < 8 {
		return 0 // starting one costs more than it saves
	}
	return hashWorkers - 1
}

// hashMember retries while the file changes under the hash.
func hashMember(t surface.Tree, m surface.Member) (File, error) {
	for range hashTries {
		f, stable, err := hashOnce(t, m)
		if err != nil {
			return File{}, fmt.Errorf("hashing %q: %w", m.Path, err)
		}
		if stable {
			return f, nil
		}
		m.Type = surface.Other // may be another now: look before opening
	}
	return File{}, &UnstableError{Path: m.Path, Tries: hashTries}
}

// hashOnce hashes one member. It is not stable when the file was written, or
// changed its type, in between.
func hashOnce(t surface.Tree, m surface.Member) (f File, stable bool, err error) {
	if m.Type != surface.Regular {
		e, err := t.Lstat(m.Path)
		if errors.Is(err, surface.ErrNotExist) {
			return File{Path: m.Path}, true, nil
		}
		if err != nil {
			return f, false, err
		}
		if e.Type != surface.Regular {
			return describe(m, e, textSum(e)), true, nil
		}
	}
	r, e, err := t.Open(m.Path)
	if errors.Is(err, surface.ErrNotExist) || errors.Is(err, surface.ErrNotRegular) {
		return f, false, nil
	}
	if err != nil {
		return f, false, err
	}
	defer r.Close() // read only: nothing is lost
	if e.Type != surface.Regular {
		return f, false, nil
	}
	before, err := identify(r)
	if err != nil {
		return f, false, err
	}
	whole, part, size, err := sums(r, m)
	if err != nil {
		return f, false, err
	}
	after, err := identify(r)
	if err != nil {
		return f, false, err
	}
	f = describe(m, e, whole)
	f.Part, f.Size = part, size
	return f, before == after && (before == identity{} || before.size == size), nil
}

func describe(m surface.Member, e surface.WalkEntry, sum Sum) File {
	f := File{Path: m.Path, Kind: kindOf(e.Type), Mode: e.Mode, Whole: sum, Part: sum,
		Protection: m.Hit.Protection, Perm: e.Perm & 0o777, Nlink: e.Nlink}
	if m.Hit.Entry != nil {
		f.Entry, f.Trigger = m.Hit.Entry.ID, m.Hit.Entry.Trigger
	}
	if f.Kind == Link {
		f.Size, f.link = int64(len(e.Link)), e.Link
	}
	return f
}

// textSum is the sum of what is no file: a link's text, a gitlink's id.
func textSum(e surface.WalkEntry) Sum {
	switch e.Type {
	case surface.Symlink:
		return sha256.Sum256([]byte(e.Link))
	case surface.Gitlink:
		return sha256.Sum256([]byte(e.Hash))
	}
	return Sum{}
}

// buffers are shared because most surfaces are far smaller than one, and
// making one a file would cost more than hashing it.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// sums reads the content once. A long one is streamed; it is kept in memory
// only where its executable part has to be found.
func sums(r io.Reader, m surface.Member) (whole, part Sum, size int64, err error) {
	structured := m.Hit.Entry != nil && m.Hit.Entry.Part != surface.Whole
	buf := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buf)
	n, err := io.ReadFull(r, buf[:])
	content := buf[:n]
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		whole = sha256.Sum256(content)
	case err != nil:
		return whole, part, 0, err
	default:
		content, whole, size, err = longSum(content, r, structured)
		if err != nil {
			return whole, part, size, err
		}
		structured = structured && size <= maxPart
	}
	size = max(size, int64(n))
	if structured {
		if p, all := surface.ExecutablePart(*m.Hit.Entry, m.Path, content); !all {
			return whole, sha256.Sum256(p), size, nil
		}
	}
	return whole, whole, size, nil
}

// longSum hashes head and what follows, and returns all of it when it is
// wanted and not too long.
func longSum(head []byte, r io.Reader, keep bool) (content []byte, sum Sum, size int64, err error) {
	h := sha256.New()
	w := io.Writer(h)
	var kept bytes.Buffer
	if keep {
		w = io.MultiWriter(h, &kept)
	}
	// A write to a hash or a buffer does not fail.
	size, err = io.Copy(w, io.LimitReader(io.MultiReader(bytes.NewReader(head), r), maxPart+1))
	if err == nil {
		var n int64
		n, err = io.Copy(h, r)
		size += n
	}
	h.Sum(sum[:0])
	return kept.Bytes(), sum, size, err
}

// identity is what must be the same before and after a file was hashed. A tree
// of git's is immutable and has none.
type identity struct {
	size         int64
	mtime, ctime int64
}

func identify(r io.Reader) (identity, error) {
	s, ok := r.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return identity{}, nil
	}
	info, err := s.Stat()
	if err != nil {
		return identity{}, err
	}
	return identity{size: info.Size(), mtime: info.ModTime().UnixNano(), ctime: changeTime(info)}, nil
}

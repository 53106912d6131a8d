package git

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// IndexEntry is one path of the index. Path is not checked: see [UnsafePath].
type IndexEntry struct {
	Path         string // of a sparse directory: with a slash at the end
	Mode         uint32 // 0o100644, 0o100755, 0o120000, 0o160000; 0o040000 for a sparse directory
	Hash         Hash
	Stage        uint8  // 0, or 1 to 3 for a conflict
	Size         uint32 // of the file when it was last compared, modulo 2^32
	Mtime        time.Time
	SkipWorktree bool
	AssumeValid  bool
	IntentToAdd  bool
}

// Index is the staging area.
type Index struct {
	Version int          // 0 when there is no index file
	Entries []IndexEntry // in git's order: by path, then stage

	cached []byte // names of trees, as git keeps them beside the entries
}

// Index reads this work tree's index; an absent one has no entries. A split
// index is an [*UnsupportedError].
func (r *Repo) Index() (*Index, error) {
	data, err := readIn(r.git, "index", maxIndex)
	if isNotExist(err) {
		return &Index{}, nil
	}
	if err != nil {
		return nil, err
	}
	x, err := ParseIndex(data, r.ObjectFormat)
	if corrupt, ok := errors.AsType[*CorruptError](err); ok {
		corrupt.What = join(r.git, "index")
	}
	return x, err
}

// ParseIndex reads an index file's bytes: versions 2 to 4, the checksum, and
// that the entries are in order, each once.
func ParseIndex(data []byte, f ObjectFormat) (*Index, error) {
	n := f.Size()
	fail := func(format string, args ...any) (*Index, error) {
		return nil, &CorruptError{What: "index", Why: fmt.Sprintf(format, args...)}
	}
	if n == 0 || len(data) < 12+n || string(data[:4]) != "DIRC" {
		return fail("it is no index")
	}
	if !checksumHolds(data, f) {
		return fail("its checksum is wrong")
	}
	version := binary.BigEndian.Uint32(data[4:])
	if version < 2 || version > 4 {
		return nil, &UnsupportedError{What: fmt.Sprintf("index version %d, which is not known", version)}
	}
	body := data[:len(data)-n]
	count := int(binary.BigEndian.Uint32(data[8:]))
	if count > len(body)/(42+n) {
		return fail("it is too short for its number of entries")
	}
	p := &indexParser{data: body, text: string(body), pos: 12, version: version, hash: n}
	bad := ""
	x := &Index{Version: int(version), Entries: make([]IndexEntry, count)}
	for i := range x.Entries {
		e := &x.Entries[i]
		if err := p.entry(e); err != nil {
			return fail("entry %d: %v", i, err)
		}
		if i > 0 && !entryBefore(&x.Entries[i-1], e) {
			p.object("it is out of order or there twice")
		}
		if p.bad != "" && bad == "" {
			bad = fmt.Sprintf("entry %d: %s", i, p.bad)
		}
	}
	// First the extensions: in a split index entries are not what they are elsewhere.
	if err := checkIndexExtensions(body[p.pos:]); err != nil {
		return nil, err
	}
	if bad != "" {
		return fail("%s", bad)
	}
	x.cached = cachedTrees(body[p.pos:])
	return x, nil
}

// checksumHolds checks the trailer, which is all zero under index.skipHash. It
// finds damage, not forgery, so the plain hash will do.
func checksumHolds(data []byte, f ObjectFormat) bool {
	n := f.Size()
	body, sum := data[:len(data)-n], data[len(data)-n:]
	if bytes.Equal(sum, make([]byte, n)) {
		return true
	}
	if f == SHA256 {
		s := sha256.Sum256(body)
		return bytes.Equal(s[:], sum)
	}
	s := sha1.Sum(body)
	return bytes.Equal(s[:], sum)
}

func entryBefore(a, b *IndexEntry) bool {
	c := strings.Compare(a.Path, b.Path)
	return c < 0 || c == 0 && a.Stage < b.Stage && a.Stage > 0
}

// The bits of an entry's flags.
const (
	flagAssumeValid = 0x8000
	flagExtended    = 0x4000
	flagNameLength  = 0x0fff
	extSkipWorktree = 0x4000
	extIntentToAdd  = 0x2000
)

type indexParser struct {
	data    []byte
	text    string // data again, of which paths are parts: one allocation for all
	pos     int
	version uint32
	hash    int    // bytes
	last    []byte // previous path, for version 4
	bad     string // what is wrong with an entry that could be read
}

func (p *indexParser) object(why string) {
	if p.bad == "" {
		p.bad = why
	}
}

func (p *indexParser) entry(e *IndexEntry) error {
	fixed := 42 + p.hash // up to and with the flags
	if len(p.data)-p.pos < fixed {
		return fmt.Errorf("it is cut off")
	}
	b := p.data[p.pos:]
	flags := binary.BigEndian.Uint16(b[fixed-2:])
	e.Mtime = time.Unix(int64(binary.BigEndian.Uint32(b[8:])), int64(binary.BigEndian.Uint32(b[12:])))
	e.Mode = binary.BigEndian.Uint32(b[24:])
	e.Size = binary.BigEndian.Uint32(b[36:])
	e.Hash = rawHash(b[40 : 40+p.hash])
	e.Stage = uint8(flags >> 12 & 3)
	e.AssumeValid = flags&flagAssumeValid != 0
	start := p.pos
	p.pos += fixed
	if flags&flagExtended != 0 {
		if p.version < 3 || len(p.data)-p.pos < 2 {
			return fmt.Errorf("it has extended flags")
		}
		ext := binary.BigEndian.Uint16(p.data[p.pos:])
		e.SkipWorktree = ext&extSkipWorktree != 0
		e.IntentToAdd = ext&extIntentToAdd != 0
		if ext&^(extSkipWorktree|extIntentToAdd) != 0 {
			p.object("it has flags that are not known")
		}
		p.pos += 2
	}
	if err := p.path(e, start, int(flags&flagNameLength)); err != nil {
		return err
	}
	p.checkMode(e)
	return nil
}

// path reads the path: in version 4 what differs from the previous one, else
// in full and padded to eight bytes from start.
func (p *indexParser) path(e *IndexEntry, start, length int) error {
	keep := 0
	if p.version == 4 {
		strip, n := indexVarint(p.data[p.pos:])
		if n == 0 || strip > len(p.last) {
			return fmt.Errorf("its path takes too much from the one before")
		}
		p.pos += n
		keep = len(p.last) - strip
	}
	end := bytes.IndexByte(p.data[p.pos:], 0)
	if end < 0 {
		return fmt.Errorf("its path does not end")
	}
	if p.version == 4 {
		p.last = append(p.last[:keep], p.data[p.pos:p.pos+end]...)
		e.Path = string(p.last)
		p.pos += end + 1
	} else {
		e.Path = p.text[p.pos : p.pos+end]
		p.pos = start + (p.pos+end-start+8)&^7
	}
	if p.pos > len(p.data) {
		return fmt.Errorf("its path does not end")
	}
	if e.Path == "" || length != min(len(e.Path), flagNameLength) {
		p.object("its path has another length than it says")
	}
	return nil
}

// indexVarint reads the number of bytes to take off the previous path; n is 0
// when it does not end.
func indexVarint(b []byte) (v, n int) {
	for i, c := range b {
		if i > 4 {
			return 0, 0
		}
		if i > 0 {
			v++
		}
		v = v<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return v, i + 1
		}
	}
	return 0, 0
}

// checkMode reduces the mode to git's and holds sparse directories, and
// nothing else, to a slash at their end.
func (p *indexParser) checkMode(e *IndexEntry) {
	switch e.Mode & 0o170000 {
	case 0o100000:
		e.Mode = modeFile | e.Mode&0o100/0o100*0o111
	case modeSymlink, modeGitlink, modeDir:
		e.Mode &= 0o170000
	default:
		p.object(fmt.Sprintf("its mode %o is not known", e.Mode))
	}
	if (e.Mode == modeDir) != strings.HasSuffix(e.Path, "/") {
		p.object(fmt.Sprintf("its mode %o does not fit its path", e.Mode))
	}
}

// checkIndexExtensions refuses those that change what the entries mean: their names
// begin with a small letter.
func checkIndexExtensions(b []byte) error {
	for len(b) > 0 {
		if len(b) < 8 {
			return &CorruptError{What: "index", Why: "an extension is cut off"}
		}
		name, size := string(b[:4]), int(binary.BigEndian.Uint32(b[4:]))
		switch {
		case size > len(b)-8:
			return &CorruptError{What: "index", Why: "an extension is cut off"}
		case name == "link":
			return &UnsupportedError{What: "a split index (git update-index --no-split-index makes it whole)"}
		case name == "sdir": // sparse directories, which entries show
		case name[0] < 'A' || name[0] > 'Z':
			return &UnsupportedError{What: fmt.Sprintf("the index extension %q, which is not known", name)}
		}
		b = b[8+size:]
	}
	return nil
}

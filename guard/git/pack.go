package git

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// The limits of a delta chain: git makes none deeper than 4095, and the deltas
// of one object are held together.
const (
	maxChain      = 4096
	maxChainBytes = 256 << 20
)

// The types in a pack besides those of [ObjectType].
const (
	packTag      = 4
	packOfsDelta = 6
	packRefDelta = 7
)

// pack is one pack file with its index.
type pack struct {
	base string // name without suffix
	file *os.File
	size int64
	idx  *packIndex
}

func openPack(root *os.Root, base string, format ObjectFormat) (*pack, error) {
	idx, err := openPackIndex(root, "pack/"+base+".idx", format)
	if err != nil {
		return nil, err
	}
	f, fi, err := openIn(root, "pack/"+base+".pack")
	if err != nil {
		idx.close()
		return nil, err
	}
	p := &pack{base: base, file: f, size: fi.Size() - int64(format.Size()), idx: idx}
	var head [8]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || string(head[:4]) != "PACK" {
		p.close()
		return nil, &CorruptError{What: f.Name(), Why: "it is no pack"}
	}
	if v := binary.BigEndian.Uint32(head[4:]); v != 2 && v != 3 {
		p.close()
		return nil, &UnsupportedError{What: fmt.Sprintf("pack version %d, which is not known", v)}
	}
	return p, nil
}

func (p *pack) close() {
	_ = p.file.Close() // only read
	p.idx.close()
}

func (p *pack) find(h Hash) (int64, bool, error) { return p.idx.find(h) }

// entry is one object of a pack as it is stored.
type entry struct {
	kind    byte  // as in the pack
	baseOff int64 // for packOfsDelta
	baseRef Hash  // for packRefDelta
	data    []byte
}

// readPacked reads the object at off and applies its deltas.
func (s *store) readPacked(p *pack, off int64, h Hash) (ObjectType, []byte, error) {
	t, data, err := s.resolve(p, off)
	if err == nil {
		return t, data, nil
	}
	if large, ok := errors.AsType[*TooLargeError](err); ok {
		return 0, nil, &TooLargeError{Name: h.String(), Size: large.Size}
	}
	return 0, nil, &CorruptError{What: "object " + h.String(), Why: err.Error()}
}

// resolve collects deltas down to an object that is stored whole, then applies
// them upwards. An offset delta's base lies before it, a named base may lie
// anywhere: the length of the chain is what bounds a cycle.
func (s *store) resolve(p *pack, off int64) (ObjectType, []byte, error) {
	var offs []int64
	var deltas [][]byte
	var t ObjectType
	var data []byte
	for held := 0; data == nil; {
		if c, ok := s.cache.get(p, off); ok {
			t, data = c.t, c.data
			break
		}
		e, err := s.readEntry(p, off)
		if err != nil {
			return 0, nil, err
		}
		if e.kind <= packTag {
			t, data = ObjectType(e.kind), e.data
			s.cache.put(p, off, t, data)
			break
		}
		offs, deltas = append(offs, off), append(deltas, e.data)
		if held += len(e.data); len(deltas) > maxChain || held > maxChainBytes {
			return 0, nil, errors.New("its chain of deltas is too long")
		}
		if off, err = p.baseOf(e); err != nil {
			return 0, nil, err
		}
	}
	for i := len(deltas) - 1; i >= 0; i-- {
		var err error
		if data, err = applyDelta(data, deltas[i]); err != nil {
			return 0, nil, err
		}
		s.cache.put(p, offs[i], t, data)
	}
	return t, data, nil
}

// baseOf returns where the base of a delta is. Packs on disk hold the bases of
// their deltas.
func (p *pack) baseOf(e entry) (int64, error) {
	if e.kind == packOfsDelta {
		return e.baseOff, nil
	}
	off, ok, err := p.find(e.baseRef)
	if err == nil && !ok {
		err = fmt.Errorf("the base %s of a delta is not in its pack", e.baseRef)
	}
	return off, err
}

// readEntry reads what is stored at off in p.
func (s *store) readEntry(p *pack, off int64) (entry, error) {
	if off < 12 || off >= p.size {
		return entry{}, errors.New("its offset is not in the pack")
	}
	i := s.inflater()
	defer s.inflaters.Put(i)
	i.buf.Reset(io.NewSectionReader(p.file, off, p.size-off))
	e, size, err := readEntryHeader(i.buf, off, s.format)
	if err != nil {
		return entry{}, err
	}
	if size > MaxObject {
		return entry{}, &TooLargeError{Size: size}
	}
	z, err := i.start(i.buf)
	if err != nil {
		return entry{}, err
	}
	e.data, err = i.inflate(z, size)
	return e, err
}

// readEntryHeader reads type, size and base.
func readEntryHeader(r io.ByteReader, off int64, format ObjectFormat) (e entry, size int64, err error) {
	c, err := r.ReadByte()
	if err != nil {
		return e, 0, err
	}
	e.kind = c >> 4 & 7
	size = int64(c & 15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = r.ReadByte(); err != nil || shift > 53 {
			return e, 0, errors.Join(errors.New("its size does not end"), err)
		}
		size |= int64(c&0x7f) << shift
	}
	switch e.kind {
	case packOfsDelta:
		back, err := readOffset(r)
		if err != nil || back <= 0 || back > off {
			return e, 0, errors.Join(errors.New("the base of a delta is not before it"), err)
		}
		e.baseOff = off - back
	case packRefDelta:
		e.baseRef.n = uint8(format.Size())
		for i := range e.baseRef.n {
			if e.baseRef.raw[i], err = r.ReadByte(); err != nil {
				return e, 0, err
			}
		}
	case 0, 5:
		return e, 0, fmt.Errorf("its type in the pack is %d", e.kind)
	}
	return e, size, nil
}

// readOffset reads the distance of an offset delta's base.
func readOffset(r io.ByteReader) (int64, error) {
	c, err := r.ReadByte()
	if err != nil {
		return 0, err
	}
	n := int64(c & 0x7f)
	for c&0x80 != 0 {
		if c, err = r.ReadByte(); err != nil {
			return 0, err
		}
		if n >= 1<<48 {
			return 0, errors.New("too far")
		}
		n = (n+1)<<7 | int64(c&0x7f)
	}
	return n, nil
}

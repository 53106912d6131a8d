package git

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sort"
)

// smallIndex is up to which size a pack's index is read whole.
const smallIndex = 4 << 20

// packIndex finds the offsets in one pack. It believes nothing but what it
// checks: an index that lies gives an object of another hash.
type packIndex struct {
	name  string
	r     io.ReaderAt
	file  *os.File // nil when read whole
	fan   [256]uint32
	width int64 // of a hash
}

func openPackIndex(root *os.Root, name string, format ObjectFormat) (*packIndex, error) {
	f, fi, err := openIn(root, name)
	if err != nil {
		return nil, err
	}
	x := &packIndex{name: join(root, name), r: f, file: f, width: int64(format.Size())}
	if fi.Size() <= smallIndex {
		data, err := readAll(f, fi, x.name, smallIndex)
		x.close()
		if err != nil {
			return nil, err
		}
		x.r = bytes.NewReader(data)
	}
	if err := x.readHead(fi.Size()); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

func (x *packIndex) readHead(size int64) error {
	head := make([]byte, 8+4*256)
	if _, err := x.r.ReadAt(head, 0); err != nil {
		return &CorruptError{What: x.name, Why: "it is too short for an index"}
	}
	if string(head[:4]) != "\xfftOc" {
		return &UnsupportedError{What: "a pack index of version 1, which is not read (git index-pack makes a new one)"}
	}
	if v := binary.BigEndian.Uint32(head[4:]); v != 2 {
		return &UnsupportedError{What: fmt.Sprintf("a pack index of version %d, which is not known", v)}
	}
	var last uint32
	for i := range x.fan {
		n := binary.BigEndian.Uint32(head[8+4*i:])
		if n < last {
			return &CorruptError{What: x.name, Why: "its fan-out table goes down"}
		}
		x.fan[i], last = n, n
	}
	if min := 8 + 4*256 + int64(last)*(x.width+8) + 2*x.width; size < min {
		return &CorruptError{What: x.name, Why: "it is too short for its number of objects"}
	}
	return nil
}

func (x *packIndex) close() {
	if x.file != nil {
		_ = x.file.Close() // only read
		x.file = nil
	}
}

// hashAt reads the i-th hash into buf.
func (x *packIndex) hashAt(i int64, buf []byte) error {
	_, err := x.r.ReadAt(buf, 8+4*256+i*x.width)
	return err
}

// lowerBound returns the position of the first hash that is not below key,
// among those with key's first byte, and where these end.
func (x *packIndex) lowerBound(key []byte) (pos, end int64, err error) {
	lo := int64(0)
	if key[0] > 0 {
		lo = int64(x.fan[key[0]-1])
	}
	end = int64(x.fan[key[0]])
	buf := make([]byte, x.width)
	n := sort.Search(int(end-lo), func(i int) bool {
		if e := x.hashAt(lo+int64(i), buf); e != nil {
			err = e
		}
		return bytes.Compare(buf, key) >= 0
	})
	return lo + int64(n), end, err
}

func (x *packIndex) find(h Hash) (int64, bool, error) {
	key := h.raw[:h.n]
	pos, end, err := x.lowerBound(key)
	if err != nil || pos == end {
		return 0, false, err
	}
	var got [32]byte
	if err := x.hashAt(pos, got[:x.width]); err != nil || !bytes.Equal(got[:x.width], key) {
		return 0, false, err
	}
	return x.offset(pos)
}

func (x *packIndex) offset(pos int64) (int64, bool, error) {
	n := int64(x.fan[255])
	table := 8 + 4*256 + n*(x.width+4)
	var buf [8]byte
	if _, err := x.r.ReadAt(buf[:4], table+4*pos); err != nil {
		return 0, false, err
	}
	off := binary.BigEndian.Uint32(buf[:4])
	if off>>31 == 0 {
		return int64(off), true, nil
	}
	if _, err := x.r.ReadAt(buf[:], table+4*n+8*int64(off&0x7fffffff)); err != nil {
		return 0, false, err
	}
	return int64(binary.BigEndian.Uint64(buf[:]) &^ (1 << 63)), true, nil
}

// prefixed calls fn for every hash that begins with the hex digits prefix.
func (x *packIndex) prefixed(key []byte, prefix string, fn func(Hash)) error {
	pos, end, err := x.lowerBound(key)
	for ; err == nil && pos < end; pos++ {
		var h Hash
		h.n = uint8(x.width)
		if err = x.hashAt(pos, h.raw[:h.n]); err != nil || h.String()[:len(prefix)] != prefix {
			return err
		}
		fn(h)
	}
	return err
}

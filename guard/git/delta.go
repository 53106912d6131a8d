package git

import (
	"errors"
	"sync"
)

var errDelta = errors.New("a delta is damaged")

// applyDelta makes an object from its base and a delta.
func applyDelta(base, delta []byte) ([]byte, error) {
	from, delta, ok1 := deltaSize(delta)
	to, delta, ok2 := deltaSize(delta)
	if !ok1 || !ok2 || from != int64(len(base)) {
		return nil, errDelta
	}
	if to > MaxObject {
		return nil, &TooLargeError{Size: to}
	}
	out := make([]byte, 0, to)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		var piece []byte
		if op&0x80 != 0 {
			off, n, rest, ok := copyArgs(op, delta)
			if !ok || off+n > len(base) {
				return nil, errDelta
			}
			piece, delta = base[off:off+n], rest
		} else {
			if op == 0 || int(op) > len(delta) {
				return nil, errDelta
			}
			piece, delta = delta[:op], delta[op:]
		}
		if len(out)+len(piece) > int(to) {
			return nil, errDelta
		}
		out = append(out, piece...)
	}
	if len(out) != int(to) {
		return nil, errDelta
	}
	return out, nil
}

// copyArgs reads offset and length of a copy instruction.
func copyArgs(op byte, delta []byte) (off, n int, rest []byte, ok bool) {
	for i := range 7 {
		if op>>i&1 == 0 {
			continue
		}
		if len(delta) == 0 {
			return 0, 0, nil, false
		}
		if i < 4 {
			off |= int(delta[0]) << (8 * i)
		} else {
			n |= int(delta[0]) << (8 * (i - 4))
		}
		delta = delta[1:]
	}
	if n == 0 {
		n = 0x10000
	}
	return off, n, delta, true
}

func deltaSize(b []byte) (n int64, rest []byte, ok bool) {
	for i, c := range b {
		if i > 8 {
			break
		}
		n |= int64(c&0x7f) << (7 * i)
		if c&0x80 == 0 {
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}

// maxCache bounds the content that a [deltaCache] keeps.
const maxCache = 32 << 20

// deltaCache keeps objects that are likely bases: trees of neighbouring
// commits are deltas of one another. When it is full it is emptied.
type deltaCache struct {
	mu   sync.Mutex // guards everything below
	m    map[cacheKey]cached
	size int
}

type cacheKey struct {
	pack *pack
	off  int64
}

type cached struct {
	t    ObjectType
	data []byte
}

func (c *deltaCache) get(p *pack, off int64) (cached, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.m[cacheKey{p, off}]
	return v, ok
}

// put keeps data, which nobody may change any more.
func (c *deltaCache) put(p *pack, off int64, t ObjectType, data []byte) {
	if len(data) > maxCache/16 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size += len(data); c.size > maxCache || c.m == nil {
		c.m, c.size = map[cacheKey]cached{}, len(data)
	}
	c.m[cacheKey{p, off}] = cached{t, data}
}

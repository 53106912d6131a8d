package surface

import "bytes"

// index finds the rules whose anchor may fit a component: first by its whole
// text, then by what follows its last dot, then by its first three bytes. Small
// filters answer for most components without a look into a map. Rules under
// one key hang together by [rule.next].
type index struct {
	exact     map[string]*rule
	suffix    map[string]*rule // by the part of the name from the last dot on
	prefix    map[[3]byte]*rule
	rest      *rule // neither
	exactSet  filter
	suffixSet filter
	startSet  filter
}

func newIndex(size int) index {
	return index{
		exact:  make(map[string]*rule, size),
		suffix: make(map[string]*rule, size/8),
		prefix: make(map[[3]byte]*rule, size/8),
	}
}

// filter is a set of small hashes: no false negatives, few false positives.
// It is small enough to stay in the first cache.
type filter [256]uint64

func (f *filter) add(h uint32)      { f[h>>6&255] |= 1 << (h & 63) }
func (f *filter) has(h uint32) bool { return f[h>>6&255]&(1<<(h&63)) != 0 }

// hashText looks at five bytes and the length, which tells names apart well
// enough at a fraction of a whole hash's cost.
func hashText[T string | []byte](b T) uint32 {
	n := len(b)
	h := uint32(b[0]) | uint32(b[n-1])<<8 | uint32(b[n>>1])<<16 | uint32(b[n>>2])<<24
	h = h*0x9e3779b1 ^ (uint32(b[n-1-n>>2])+uint32(n)<<8)*0x85ebca6b
	return h ^ h>>15
}

func hashStart(b [3]byte) uint32 {
	h := (uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16) * 0x9e3779b1
	return h ^ h>>15
}

func (x *index) add(r *rule) {
	s := &r.parts[r.anchor]
	if s.tokens == nil {
		r.next, x.exact[s.literal] = x.exact[s.literal], r
		x.exactSet.add(hashText(s.literal))
		return
	}
	if key, ok := s.suffixKey(); ok {
		r.next, x.suffix[key] = x.suffix[key], r
		x.suffixSet.add(hashText(key))
		return
	}
	if t := s.tokens; len(t) > 3 && t[0].kind == tokenByte && t[1].kind == tokenByte && t[2].kind == tokenByte {
		key := [3]byte{t[0].b, t[1].b, t[2].b}
		r.next, x.prefix[key] = x.prefix[key], r
		x.startSet.add(hashStart(key))
		return
	}
	r.next, x.rest = x.rest, r
}

// suffixKey is the literal end of the segment from its last dot on.
func (s *segment) suffixKey() (string, bool) {
	for i := len(s.tokens) - 1; i >= 0 && s.tokens[i].kind == tokenByte; i-- {
		if s.tokens[i].b == '.' {
			key := make([]byte, 0, len(s.tokens)-i)
			for _, t := range s.tokens[i:] {
				key = append(key, t.b)
			}
			return string(key), true
		}
	}
	return "", false
}

// lists returns the rules worth a look for the component.
func (x *index) lists(b []byte) (l [4]*rule) {
	if x.exactSet.has(hashText(b)) {
		l[0] = x.exact[string(b)]
	}
	if i := bytes.LastIndexByte(b, '.'); i >= 0 && x.suffixSet.has(hashText(b[i:])) {
		l[1] = x.suffix[string(b[i:])]
	}
	if len(b) >= 3 {
		if key := [3]byte(b); x.startSet.has(hashStart(key)) {
			l[2] = x.prefix[key]
		}
	}
	l[3] = x.rest
	return l
}

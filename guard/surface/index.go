package surface

import "bytes"

// index finds the rules whose anchor may fit a component: first by its whole
// text, then by what follows its last dot, then by its first two bytes. Two
// small filters answer for most components without a look into a map.
type index struct {
	exact    map[string][]*rule
	suffix   map[string][]*rule // by the part of the name from the last dot on
	prefix   map[[2]byte][]*rule
	rest     []*rule // neither
	exactSet filter
	startSet filter
}

// filter is a set of small hashes: no false negatives, few false positives.
type filter [16]uint64

func (f *filter) add(h uint32)      { f[h>>6&15] |= 1 << (h & 63) }
func (f *filter) has(h uint32) bool { return f[h>>6&15]&(1<<(h&63)) != 0 }

func hashExact[T string | []byte](b T) uint32 {
	n := len(b)
	return uint32(b[0])*7 + uint32(b[n-1])*31 + uint32(b[n>>1])*131 + uint32(n)*257
}

func hashStart(a, b byte) uint32 { return uint32(a)*31 + uint32(b)*97 }

func (x *index) add(r *rule) {
	s := &r.parts[r.anchor]
	if s.tokens == nil {
		if x.exact == nil {
			x.exact = map[string][]*rule{}
		}
		x.exact[s.literal] = append(x.exact[s.literal], r)
		x.exactSet.add(hashExact(s.literal))
		return
	}
	if key, ok := s.suffixKey(); ok {
		if x.suffix == nil {
			x.suffix = map[string][]*rule{}
		}
		x.suffix[key] = append(x.suffix[key], r)
		return
	}
	if t := s.tokens; len(t) > 2 && t[0].kind == tokenByte && t[1].kind == tokenByte {
		if x.prefix == nil {
			x.prefix = map[[2]byte][]*rule{}
		}
		key := [2]byte{t[0].b, t[1].b}
		x.prefix[key] = append(x.prefix[key], r)
		x.startSet.add(hashStart(key[0], key[1]))
		return
	}
	x.rest = append(x.rest, r)
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
func (x *index) lists(b []byte) (l [4][]*rule) {
	if x.exactSet.has(hashExact(b)) {
		l[0] = x.exact[string(b)]
	}
	if x.suffix != nil {
		if i := bytes.LastIndexByte(b, '.'); i >= 0 {
			l[1] = x.suffix[string(b[i:])]
		}
	}
	if len(b) >= 2 && x.startSet.has(hashStart(b[0], b[1])) {
		l[2] = x.prefix[[2]byte{b[0], b[1]}]
	}
	l[3] = x.rest
	return l
}

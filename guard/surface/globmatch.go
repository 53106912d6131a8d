package surface

import (
	"unicode"
	"unicode/utf8"
)

// match tells whether a folded name fits the segment.
func (s *segment) match(b []byte) bool {
	if s.double {
		return true
	}
	if s.tokens == nil {
		return string(b) == s.literal
	}
	return matchTokens(s.tokens, b)
}

// matchTokens goes back only to the last star, so it is never slower than
// the product of both lengths.
func matchTokens(tokens []token, b []byte) bool {
	ti, bi := 0, 0
	starT, starB := -1, 0
	for {
		if ti < len(tokens) {
			t := &tokens[ti]
			if t.kind == tokenStar {
				starT, starB = ti, bi
				ti++
				continue
			}
			if n := t.match(b[bi:]); n > 0 {
				ti, bi = ti+1, bi+n
				continue
			}
		} else if bi == len(b) {
			return true
		}
		if starT < 0 || starB >= len(b) {
			return false
		}
		_, n := utf8.DecodeRune(b[starB:])
		starB += n
		ti, bi = starT+1, starB
	}
}

// match returns how many bytes of b the token takes, 0 for none.
func (t *token) match(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	if t.kind == tokenByte {
		if b[0] == t.b {
			return 1
		}
		return 0
	}
	r, n := utf8.DecodeRune(b)
	if t.kind == tokenClass && t.class.has(r) == t.class.negate {
		return 0
	}
	return n
}

// has compares without case: the name is folded, the set is as written.
func (c *class) has(r rune) bool {
	for o := r; ; {
		for _, rr := range c.ranges {
			if rr.lo <= o && o <= rr.hi {
				return true
			}
		}
		if o = unicode.SimpleFold(o); o == r {
			return false
		}
	}
}

// matchParts tells whether the parts fit all of p from component i on.
func matchParts(parts []segment, p name, i int) bool {
	for k := range parts {
		s := &parts[k]
		if s.double {
			rest := parts[k+1:]
			if len(rest) == 0 {
				return i < p.len()
			}
			for ; i < p.len(); i++ {
				if matchParts(rest, p, i) {
					return true
				}
			}
			return false
		}
		if i >= p.len() || !s.match(p.part(i)) {
			return false
		}
		i++
	}
	return i == p.len()
}

// canReach tells whether the parts could fit something below p, which is
// matched from its component i on.
func canReach(parts []segment, p name, i int) bool {
	for k := range parts {
		s := &parts[k]
		if s.double || i >= p.len() {
			return true
		}
		if !s.match(p.part(i)) {
			return false
		}
		i++
	}
	return false
}

package egress

import "strings"

// canonicalPath returns the one spelling of a path that is judged and sent:
// escapes of unreserved bytes are decoded, other escapes are upper case, bytes
// that may not stand in a path are escaped. What servers read in more than one
// way is refused: dot segments in any encoding, empty segments, backslashes,
// control bytes. An encoded slash stays data inside its segment, as in the
// scoped names of npm.
func canonicalPath(raw string) (string, error) {
	if raw == "" {
		return "/", nil
	}
	if raw[0] != '/' {
		return "", bad(CodePath, "the path does not start with a slash")
	}
	var b strings.Builder
	b.Grow(len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '%':
			v, ok := unhex(raw[i+1:])
			if !ok {
				return "", bad(CodePath, "the path holds a percent sign that starts no escape")
			}
			if v < ' ' || v == 0x7f || v == '\\' {
				return "", bad(CodePath, "the path holds an encoded control byte or backslash")
			}
			writeByte(&b, v, unreserved(v))
			i += 2
		case c <= ' ' || c >= 0x7f || c == '\\' || c == '#' || c == '?':
			return "", bad(CodePath, "the path holds a byte that may not stand in a path")
		default:
			writeByte(&b, c, unreserved(c) || strings.IndexByte("/!$&'()*+,;=:@[]", c) >= 0)
		}
	}
	path := b.String()
	return path, checkSegments(path)
}

// checkSegments refuses a path with a segment that is empty, but for the last,
// or that some server takes for a dot segment.
func checkSegments(path string) error {
	for rest, more := path[1:], true; more; {
		var seg string
		seg, rest, more = strings.Cut(rest, "/")
		if seg == "" && more {
			return bad(CodePath, "the path holds an empty segment (two slashes in a row)")
		}
		if !strings.ContainsAny(seg, ".%") {
			continue
		}
		plain, ok := decodeFully(seg)
		if !ok {
			return bad(CodePath, "the path is encoded too many times over")
		}
		for _, part := range strings.FieldsFunc(plain, func(c rune) bool { return c == '/' || c == '\\' }) {
			part, _, _ = strings.Cut(part, ";")
			if part = strings.TrimSpace(part); part == "." || part == ".." {
				return bad(CodePath, "the path holds a dot segment")
			}
		}
	}
	return nil
}

// loosePath is the path as the most lenient server would read it: decoded as
// often as possible, parameters after ';' cut. Deny rules are held against it
// too.
func loosePath(path string) string {
	if !strings.ContainsAny(path, "%;") {
		return path
	}
	plain, _ := decodeFully(path)
	segs := strings.Split(strings.ReplaceAll(plain, "\\", "/"), "/")
	out := segs[:0]
	for i, s := range segs {
		s, _, _ = strings.Cut(s, ";")
		if s == "" && i > 0 && i < len(segs)-1 {
			continue
		}
		out = append(out, s)
	}
	return strings.Join(out, "/")
}

// maxDecodings is how often a path may be encoded over: enough for any honest
// client, and a bound on the work that a hostile one can cause.
const maxDecodings = 5

// decodeFully decodes escapes until none is left, so that no number of
// encodings hides a byte. It says false when there were too many.
func decodeFully(s string) (string, bool) {
	for range maxDecodings {
		t := decodeOnce(s)
		if len(t) == len(s) {
			return s, true
		}
		s = t
	}
	return s, false
}

func decodeOnce(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' {
			if v, ok := unhex(s[i+1:]); ok {
				b.WriteByte(v)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func writeByte(b *strings.Builder, c byte, plain bool) {
	const hex = "0123456789ABCDEF"
	if plain {
		b.WriteByte(c)
		return
	}
	b.WriteByte('%')
	b.WriteByte(hex[c>>4])
	b.WriteByte(hex[c&15])
}

// unhex reads the two hexadecimal digits that s starts with.
func unhex(s string) (byte, bool) {
	if len(s) < 2 {
		return 0, false
	}
	hi, ok1 := hexDigit(s[0])
	lo, ok2 := hexDigit(s[1])
	return hi<<4 | lo, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

package surface

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// foldName returns the form under which a name is compared: what the laxest
// file system would take for the same name. ASCII lower-case names are their
// own form; a byte that is no UTF-8 stands for itself.
func foldName(name string) string {
	s := foldRunes(name)
	s = trimNTFS(s)
	if long, ok := shortName(s); ok {
		return long
	}
	return s
}

// foldRunes folds case, drops what HFS+ ignores and composes. Decomposing
// comes first because a fold may hide in a composed letter, composing last so
// that both spellings meet.
func foldRunes(s string) string {
	ascii := true
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for rest := norm.NFD.String(s); rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteByte(rest[0])
		case ignoredByHFS(r):
		default:
			foldRune(&b, r)
		}
		rest = rest[n:]
	}
	return norm.NFC.String(norm.NFD.String(b.String()))
}

// foldRune writes the fold of one rune: the smallest of its case orbit, which
// is the same for every member, in lower case where it has one.
func foldRune(b *strings.Builder, r rune) {
	if long, ok := fullFold(r); ok {
		b.WriteString(long)
		return
	}
	least := r
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		least = min(least, o)
	}
	b.WriteRune(unicode.ToLower(least))
}

// fullFold is the part of Unicode's full case folding that can make ASCII
// names; case-insensitive APFS applies it.
func fullFold(r rune) (string, bool) {
	switch r {
	case 'ß', 'ẞ':
		return "ss", true
	case 'ﬀ':
		return "ff", true
	case 'ﬁ':
		return "fi", true
	case 'ﬂ':
		return "fl", true
	case 'ﬃ':
		return "ffi", true
	case 'ﬄ':
		return "ffl", true
	case 'ﬅ', 'ﬆ':
		return "st", true
	}
	return "", false
}

// ignoredByHFS are the code points HFS+ leaves out of a comparison, the list
// that git's own is_hfs_dotgit uses (CVE-2014-9390).
func ignoredByHFS(r rune) bool {
	return 0x200c <= r && r <= 0x200f || 0x202a <= r && r <= 0x202e ||
		0x206a <= r && r <= 0x206f || r == 0xfeff
}

// trimNTFS drops what NTFS drops: a stream's name (".git::$INDEX_ALLOCATION"
// is ".git") and dots and spaces at the end. A name of nothing else stays.
func trimNTFS(s string) string {
	t := s
	if i := strings.IndexByte(t, ':'); i > 0 && strings.IndexByte(t[i:], '$') > 0 {
		t = t[:i]
	}
	t = strings.TrimRight(t, ". ")
	if t == "" {
		return s
	}
	return t
}

// shortName maps the 8.3 names that NTFS gives git's own files to the long
// ones. Others depend on what else is in the directory.
func shortName(s string) (string, bool) {
	i := strings.IndexByte(s, '~')
	if i <= 0 || i != len(s)-2 || s[i+1] < '1' || '9' < s[i+1] {
		return "", false
	}
	switch s[:i] {
	case "git":
		return ".git", true
	case "gitmod":
		return ".gitmodules", true
	case "gitatt":
		return ".gitattributes", true
	}
	return "", false
}

// name is a path in the form in which it is compared, split.
type name struct {
	bytes []byte   // the components side by side, without slashes
	ends  []uint16 // where each ends
}

// The room an ordinary path needs; whoever splits one has it on the stack.
const (
	nameBytes = 256
	nameParts = 32
	maxName   = 1 << 15 // longer than any system call takes
)

func (p name) len() int { return len(p.ends) }

// part returns component i.
func (p name) part(i int) []byte {
	if i == 0 {
		return p.bytes[:p.ends[0]]
	}
	return p.bytes[p.ends[i-1]:p.ends[i]]
}

// head returns the first n components.
func (p name) head(n int) name { return name{p.bytes, p.ends[:n]} }

// splitName folds and splits path into the room given. It answers false for
// a path too long to be one, which callers take for the worst.
func splitName(path string, b []byte, ends []uint16) (name, bool) {
	if len(path) > maxName {
		return name{}, false
	}
	start, plain := 0, true
	for i := 0; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			c := path[i]
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			if c >= utf8.RuneSelf || c == '~' || c == ':' {
				plain = false
			}
			b = append(b, c)
			continue
		}
		if from := i - (len(b) - start); from < i {
			if last := path[i-1]; !plain || last == '.' || last == ' ' {
				b = append(b[:start], foldName(path[from:i])...)
			}
			if len(b) > 1<<16-1 {
				return name{}, false
			}
			ends = append(ends, uint16(len(b)))
			start, plain = len(b), true
		}
	}
	return name{b, ends}, true
}

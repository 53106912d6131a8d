package surface

import (
	"strings"
	"unicode/utf8"
)

const (
	maxGlob        = 4096 // bytes; longer than a path
	maxDoubleStars = 4    // more make matching slow and no glob clearer
)

// ParseGlob checks a glob of a policy; its error is a [*GlobError].
//
// The language is gitignore's, with names compared as [Matcher.Match]
// compares them:
//
//	name      a base name at any depth
//	/name     only at the root of the workspace
//	a/b       from the root of the workspace
//	name/     only a directory of that name, and what is below it
//	**/a      at any depth      a/**   everything below a
//	a/**/b    any number of directories between
//	*  ?      any characters, one character; never a slash
//	[a-z] [!a-z] [^a-z]   one character of, or not of, a set
//	\x        the character x itself
//
// A directory that a policy's glob matches brings along everything below it.
// Refused, because they would quietly mean something else than was meant: an
// empty glob, "!", braces, "." and ".." components, "//", character classes
// by name, an unfinished set or escape.
func ParseGlob(glob string) error {
	_, err := parseUserGlob(glob)
	return err
}

// glob is a parsed pattern.
type glob struct {
	parts   []segment
	rooted  bool // matches only from the root of the workspace
	dirOnly bool // ended in a slash
}

// segment is one component of a glob.
type segment struct {
	double  bool    // "**"
	literal string  // the folded name, where there is no wildcard
	tokens  []token // else
}

type tokenKind uint8

const (
	tokenByte  tokenKind = iota
	tokenOne             // ?
	tokenStar            // *
	tokenClass           // [...]
)

type token struct {
	kind  tokenKind
	b     byte
	class *class
}

type class struct {
	negate bool
	ranges []runeRange
}

type runeRange struct{ lo, hi rune }

func parseUserGlob(text string) (glob, error) {
	var p globParser
	g, why := p.parse(text)
	if why != "" {
		return glob{}, &GlobError{Glob: text, Why: why}
	}
	return g, nil
}

// globParser keeps the parts of many globs side by side: a catalogue is
// compiled at every start, and memory of its own for each part is most of
// what that costs.
type globParser struct {
	segments []segment
	tokens   []token
}

// parse returns the glob, or why it is none.
func (p *globParser) parse(text string) (glob, string) {
	switch {
	case text == "":
		return glob{}, "is empty"
	case len(text) > maxGlob:
		return glob{}, "is too long"
	case strings.IndexByte(text, 0) >= 0:
		return glob{}, "has a NUL byte"
	case text[0] == '!':
		return glob{}, "negation is not supported"
	}
	var g glob
	body := text
	if strings.HasSuffix(body, "/") && !strings.HasSuffix(body, `\/`) {
		g.dirOnly, body = true, body[:len(body)-1]
	}
	g.rooted = strings.Contains(body, "/")
	body = strings.TrimPrefix(body, "/")
	doubles, start := 0, len(p.segments)
	for more := true; more; {
		var part string
		part, body, more = strings.Cut(body, "/")
		seg, why := p.segment(part)
		if why != "" {
			return glob{}, why
		}
		if seg.double {
			if doubles++; doubles > maxDoubleStars {
				return glob{}, "has too many **"
			}
			if n := len(p.segments); n > start && p.segments[n-1].double {
				continue
			}
		}
		p.segments = append(p.segments, seg)
	}
	g.parts = p.segments[start:len(p.segments):len(p.segments)]
	if len(g.parts) > 1 && g.parts[0].double {
		g.parts, g.rooted = g.parts[1:], false
	}
	return g, ""
}

func (p *globParser) segment(part string) (segment, string) {
	switch part {
	case "":
		return segment{}, "has an empty component"
	case ".", "..":
		return segment{}, "has a " + part + " component"
	case "**":
		return segment{double: true}, ""
	}
	if !strings.ContainsAny(part, "*?[\\{}") {
		return segment{literal: foldName(part)}, ""
	}
	start := len(p.tokens)
	plain, why := p.tokenize(part)
	if why != "" {
		return segment{}, why
	}
	if plain != "" {
		return segment{literal: foldName(plain)}, ""
	}
	tokens := p.tokens[start:len(p.tokens):len(p.tokens)]
	// Names lose dots and spaces at their end before they are compared.
	if last := tokens[len(tokens)-1]; last.kind == tokenByte && (last.b == '.' || last.b == ' ') {
		return segment{}, "ends in a dot or a space behind a wildcard"
	}
	return segment{tokens: tokens}, ""
}

// tokenize appends the tokens of a component; plain is its text when nothing
// in it is wild.
func (p *globParser) tokenize(part string) (plain, why string) {
	var run []byte // literal text since the last wildcard
	start, wild := len(p.tokens), false
	flush := func() {
		if len(run) > 0 {
			for _, b := range []byte(foldRunes(string(run))) {
				p.tokens = append(p.tokens, token{kind: tokenByte, b: b})
			}
			run = run[:0]
		}
	}
	for i := 0; i < len(part); i++ {
		switch c := part[i]; c {
		case '\\':
			if i++; i == len(part) {
				return "", "ends in a backslash"
			}
			run = append(run, part[i])
		case '{', '}':
			return "", "has a brace; write one glob for each alternative"
		case '*':
			flush()
			if n := len(p.tokens); n == start || p.tokens[n-1].kind != tokenStar {
				p.tokens = append(p.tokens, token{kind: tokenStar})
			}
			wild = true
		case '?':
			flush()
			p.tokens, wild = append(p.tokens, token{kind: tokenOne}), true
		case '[':
			flush()
			class, n, why := parseClass(part[i:])
			if why != "" {
				return "", why
			}
			p.tokens, wild = append(p.tokens, class), true
			i += n - 1
		default:
			run = append(run, c)
		}
	}
	if !wild {
		return string(run), ""
	}
	flush()
	return "", ""
}

// parseClass reads a set at the start of s and returns its length in s.
func parseClass(s string) (t token, length int, why string) {
	t = token{kind: tokenClass, class: &class{}}
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		t.class.negate = true
		i++
	}
	for first := true; ; first = false {
		if i >= len(s) {
			return t, 0, "has an unfinished ["
		}
		if s[i] == ']' && !first {
			return t, i + 1, ""
		}
		if strings.HasPrefix(s[i:], "[:") {
			return t, 0, "has a named character class"
		}
		lo, n := classRune(s[i:])
		if n == 0 {
			return t, 0, "has an unfinished ["
		}
		i += n
		hi := lo
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			hi, n = classRune(s[i+1:])
			if n == 0 {
				return t, 0, "has an unfinished ["
			}
			i += 1 + n
		}
		if lo > hi {
			return t, 0, "has a set whose range runs backwards"
		}
		t.class.ranges = append(t.class.ranges, runeRange{lo, hi})
	}
}

func classRune(s string) (r rune, n int) {
	if s == "" {
		return 0, 0
	}
	if s[0] == '\\' {
		if len(s) == 1 {
			return 0, 0
		}
		r, n = utf8.DecodeRuneInString(s[1:])
		return r, n + 1
	}
	return utf8.DecodeRuneInString(s)
}

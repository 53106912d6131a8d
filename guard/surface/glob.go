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
	kind   tokenKind
	b      byte
	negate bool
	ranges []runeRange
}

type runeRange struct{ lo, hi rune }

func parseUserGlob(text string) (glob, error) {
	g, why := parseGlob(text)
	if why != "" {
		return glob{}, &GlobError{Glob: text, Why: why}
	}
	return g, nil
}

// parseGlob returns the glob, or why it is none.
func parseGlob(text string) (glob, string) {
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
	doubles := 0
	for _, part := range strings.Split(body, "/") {
		seg, why := parseSegment(part)
		if why != "" {
			return glob{}, why
		}
		if seg.double {
			if doubles++; doubles > maxDoubleStars {
				return glob{}, "has too many **"
			}
			if n := len(g.parts); n > 0 && g.parts[n-1].double {
				continue
			}
		}
		g.parts = append(g.parts, seg)
	}
	if len(g.parts) > 1 && g.parts[0].double {
		g.parts, g.rooted = g.parts[1:], false
	}
	return g, ""
}

func parseSegment(part string) (segment, string) {
	switch part {
	case "":
		return segment{}, "has an empty component"
	case ".", "..":
		return segment{}, "has a " + part + " component"
	case "**":
		return segment{double: true}, ""
	}
	tokens, plain, why := tokenize(part)
	if why != "" {
		return segment{}, why
	}
	if plain != "" {
		return segment{literal: foldName(plain)}, ""
	}
	// Names lose dots and spaces at their end before they are compared.
	for n := len(tokens); n > 0 && tokens[n-1].kind == tokenByte && (tokens[n-1].b == '.' || tokens[n-1].b == ' '); n-- {
		return segment{}, "ends in a dot or a space behind a wildcard"
	}
	return segment{tokens: tokens}, ""
}

// tokenize splits a component; plain is its text when nothing in it is wild.
func tokenize(part string) (tokens []token, plain, why string) {
	var run strings.Builder // literal text since the last wildcard
	wild := false
	flush := func() {
		for _, b := range []byte(foldRunes(run.String())) {
			tokens = append(tokens, token{kind: tokenByte, b: b})
		}
		run.Reset()
	}
	for i := 0; i < len(part); {
		switch c := part[i]; c {
		case '\\':
			if i+1 == len(part) {
				return nil, "", "ends in a backslash"
			}
			run.WriteByte(part[i+1])
			i += 2
		case '{', '}':
			return nil, "", "has a brace; write one glob for each alternative"
		case '*':
			flush()
			if n := len(tokens); n == 0 || tokens[n-1].kind != tokenStar {
				tokens = append(tokens, token{kind: tokenStar})
			}
			wild = true
			i++
		case '?':
			flush()
			tokens, wild = append(tokens, token{kind: tokenOne}), true
			i++
		case '[':
			flush()
			class, n, why := parseClass(part[i:])
			if why != "" {
				return nil, "", why
			}
			tokens, wild = append(tokens, class), true
			i += n
		default:
			run.WriteByte(c)
			i++
		}
	}
	if !wild {
		return nil, run.String(), ""
	}
	flush()
	return tokens, "", ""
}

// parseClass reads a set at the start of s and returns its length in s.
func parseClass(s string) (t token, length int, why string) {
	t.kind = tokenClass
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		t.negate = true
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
		t.ranges = append(t.ranges, runeRange{lo, hi})
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

package git

import "strings"

// wildmatch matches text as git's wildmatch does with WM_PATHNAME: "*" and "?"
// stop at a slash, "**" between slashes does not.
func wildmatch(pattern, text string, fold bool) (bool, error) {
	if fold {
		pattern, text = strings.ToLower(pattern), strings.ToLower(text)
	}
	m := matcher{steps: 1 << 18}
	ok := m.match(pattern, text, true)
	if m.steps <= 0 {
		return false, &UnsupportedError{What: "an include pattern that takes too long to match"}
	}
	return ok, nil
}

// matcher bounds the work of a pattern that its author may have written to be
// slow.
type matcher struct{ steps int }

// match matches p against t; start tells that p begins after a slash or at the
// beginning.
func (m *matcher) match(p, t string, start bool) bool {
	for ; len(p) > 0; m.steps-- {
		if m.steps <= 0 {
			return false
		}
		if p[0] == '*' {
			return m.star(p, t, start)
		}
		if t == "" {
			return false
		}
		start = p[0] == '/'
		switch p[0] {
		case '?':
			if t[0] == '/' {
				return false
			}
			p = p[1:]
		case '[':
			rest, hit, ok := class(p[1:], t[0])
			if !ok || !hit || t[0] == '/' {
				return false
			}
			p = rest
		default:
			if p[0] == '\\' && len(p) > 1 {
				p = p[1:]
			}
			if p[0] != t[0] {
				return false
			}
			p = p[1:]
		}
		t = t[1:]
	}
	return t == ""
}

func (m *matcher) star(p, t string, start bool) bool {
	n := len(p) - len(strings.TrimLeft(p, "*"))
	rest := p[n:]
	deep := n >= 2 && start && (rest == "" || rest[0] == '/')
	if deep && rest != "" && m.match(rest[1:], t, true) {
		return true // "**/" matches no directory at all
	}
	for i := 0; ; i++ {
		if m.match(rest, t[i:], false) {
			return true
		}
		if i == len(t) || !deep && t[i] == '/' || m.steps <= 0 {
			return false
		}
	}
}

// class matches c against the bracket expression p begins with, after its "[".
func class(p string, c byte) (rest string, hit, ok bool) {
	not := strings.HasPrefix(p, "!") || strings.HasPrefix(p, "^")
	if not {
		p = p[1:]
	}
	for first := true; ; first = false {
		if p == "" {
			return "", false, false
		}
		if p[0] == ']' && !first {
			return p[1:], hit != not, true
		}
		if strings.HasPrefix(p, "[:") {
			name, after, found := strings.Cut(p[2:], ":]")
			if !found {
				return "", false, false
			}
			hit = hit || posixClass(name, c)
			p = after
			continue
		}
		lo, after, good := classByte(p)
		hi := lo
		if good && len(after) > 1 && after[0] == '-' && after[1] != ']' {
			hi, after, good = classByte(after[1:])
		}
		if !good {
			return "", false, false
		}
		hit = hit || lo <= c && c <= hi
		p = after
	}
}

func classByte(p string) (c byte, rest string, ok bool) {
	if p[0] == '\\' {
		p = p[1:]
	}
	if p == "" {
		return 0, "", false
	}
	return p[0], p[1:], true
}

func posixClass(name string, c byte) bool {
	up, low, digit := 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9'
	switch name {
	case "alpha":
		return up || low
	case "alnum":
		return up || low || digit
	case "digit":
		return digit
	case "upper":
		return up
	case "lower":
		return low
	case "xdigit":
		return digit || 'a' <= c|0x20 && c|0x20 <= 'f'
	case "space":
		return c == ' ' || '\t' <= c && c <= '\r'
	case "blank":
		return c == ' ' || c == '\t'
	case "punct":
		return '!' <= c && c <= '~' && !up && !low && !digit
	case "graph":
		return '!' <= c && c <= '~'
	case "print":
		return ' ' <= c && c <= '~'
	case "cntrl":
		return c < ' ' || c == 0x7f
	}
	return false
}

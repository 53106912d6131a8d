package git

import (
	"bytes"
	"strings"
)

// ConfigValue is one assignment in a configuration file.
type ConfigValue struct {
	Key     string // section and name in lower case, subsection as written: remote.Origin.url
	Value   string // unquoted
	NoValue bool   // "key" alone, which git reads as true
	Scope   Scope
	Origin  string // file
	Line    int
}

// ParseConfig reads one configuration file's text as git does; includes are
// values like others. file is for errors and Origin. Failure: [*ConfigError].
//
// White space inside an unquoted value is kept, as git does since 2.45; before
// it made each a space. A NUL, at which git's C strings end early, is refused.
func ParseConfig(file string, data []byte) ([]ConfigValue, error) {
	p := &configParser{file: file, data: data, line: 1}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		p.at = 1 + bytes.Count(data[:i], []byte("\n"))
		return nil, p.fail("it holds a NUL byte")
	}
	p.data = bytes.TrimPrefix(p.data, []byte("\xef\xbb\xbf"))
	if err := p.parse(); err != nil {
		return nil, err
	}
	return p.values, nil
}

// configParser follows git's config.c function by function, so that the two
// agree on odd input.
type configParser struct {
	file    string
	data    []byte
	pos     int
	line    int  // of the next byte
	at      int  // line of the last byte
	eof     bool // next has returned the line end that stands for the end
	section string
	values  []ConfigValue
}

func (p *configParser) fail(why string) error {
	return &ConfigError{File: p.file, Line: p.at, Why: why}
}

// next returns the next byte, CR LF as LF, and LF at the end of the file.
func (p *configParser) next() byte {
	p.at = p.line
	if p.pos >= len(p.data) {
		p.eof = true
		return '\n'
	}
	c := p.data[p.pos]
	p.pos++
	if c == '\r' && p.pos < len(p.data) && p.data[p.pos] == '\n' {
		c = '\n'
		p.pos++
	}
	if c == '\n' {
		p.line++
	}
	return c
}

func (p *configParser) parse() error {
	comment := false
	for {
		c := p.next()
		var err error
		switch {
		case c == '\n':
			if p.eof {
				return nil
			}
			comment = false
		case comment || isConfigSpace(c):
		case c == '#' || c == ';':
			comment = true
		case c == '[':
			err = p.header()
		case isAlpha(c):
			err = p.assignment(c)
		default:
			err = p.fail("a line begins with neither a section nor a name")
		}
		if err != nil {
			return err
		}
	}
}

// header reads a section's name after the "[".
func (p *configParser) header() error {
	var name strings.Builder
	for {
		c := p.next()
		switch {
		case p.eof:
			return p.fail("a section's name does not end")
		case c == ']':
			p.section = name.String() + "."
			return nil
		case isConfigSpace(c):
			return p.subsection(&name, c)
		case !isKeyByte(c) && c != '.':
			return p.fail("a section's name holds a character that is not allowed")
		}
		name.WriteByte(lower(c))
	}
}

func (p *configParser) subsection(name *strings.Builder, c byte) error {
	for isConfigSpace(c) {
		if c == '\n' {
			return p.fail("a section's name does not end on its line")
		}
		c = p.next()
	}
	if c != '"' {
		return p.fail("a subsection is not in quotation marks")
	}
	name.WriteByte('.')
	for {
		c = p.next()
		if c == '"' {
			break
		}
		if c == '\\' {
			c = p.next()
		}
		if c == '\n' {
			return p.fail("a subsection's name does not end on its line")
		}
		name.WriteByte(c)
	}
	if p.next() != ']' {
		return p.fail("a subsection's name is not followed by a bracket")
	}
	p.section = name.String() + "."
	return nil
}

// assignment reads a name, whose first byte is c, and its value.
func (p *configParser) assignment(c byte) error {
	line := p.at
	var name strings.Builder
	for ; !p.eof && isKeyByte(c); c = p.next() {
		name.WriteByte(lower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	v := ConfigValue{Key: p.section + name.String(), Origin: p.file, Line: line}
	switch c {
	case '\n':
		v.NoValue = true
	case '=':
		var err error
		if v.Value, err = p.value(); err != nil {
			return err
		}
	default:
		return p.fail("a name is not followed by \"=\"")
	}
	p.values = append(p.values, v)
	return nil
}

func (p *configParser) value() (string, error) {
	var out, space []byte // space is written only when something follows it
	quote, comment := false, false
	for {
		c := p.next()
		switch {
		case c == '\n':
			if quote {
				return "", p.fail("a quotation does not end on its line")
			}
			return string(out), nil
		case comment:
		case isConfigSpace(c) && !quote:
			if len(out) > 0 {
				space = append(space, c)
			}
		case (c == ';' || c == '#') && !quote:
			comment = true
		default:
			out = append(out, space...)
			space = space[:0]
			switch {
			case c == '"':
				quote = !quote
			case c == '\\':
				c = p.next()
				i := strings.IndexByte("tbn\\\"", c)
				if i < 0 && c != '\n' {
					return "", p.fail("an escape sequence is not known")
				}
				if i >= 0 {
					out = append(out, "\t\b\n\\\""[i])
				}
			default:
				out = append(out, c)
			}
		}
	}
}

func isConfigSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isAlpha(c byte) bool       { return 'a' <= lower(c) && lower(c) <= 'z' }
func isKeyByte(c byte) bool     { return isAlpha(c) || '0' <= c && c <= '9' || c == '-' }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// readConfigFile reads and parses one file. Links are followed only in the
// user's own files.
func readConfigFile(file string, follow bool) ([]ConfigValue, error) {
	data, err := readFile(file, maxConfig, follow)
	if err != nil {
		return nil, err
	}
	return ParseConfig(file, data)
}

package policy

import (
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// word is a value with the place and the spelling it had in its file.
type word[T any] struct {
	v T
	origin
}

// origin is where a value came from.
type origin struct {
	pos  Pos
	key  string // dotted
	text string // the whole value on one line
}

func (o origin) err(format error) *Error {
	return &Error{File: o.pos.File, Line: o.pos.Line, Col: o.pos.Col, Key: o.key, Msg: o.key + ": " + format.Error()}
}

func (w *walker) origin(n *yaml.Node, key string) origin {
	return origin{pos: w.pos(n), key: key, text: flowText(n)}
}

// maxEntries bounds one list.
const maxEntries = 1000

// list reads a sequence; read returns false after it told what is wrong.
func list[T any](w *walker, n *yaml.Node, key string, read func(*yaml.Node, string) (T, bool)) []word[T] {
	if n.Kind != yaml.SequenceNode {
		w.wrongType(n, key, "a list")
		return nil
	}
	if len(n.Content) > maxEntries {
		w.fail(n, key, "%s has more than %d entries", key, maxEntries)
		return nil
	}
	out := make([]word[T], 0, len(n.Content))
	for _, c := range n.Content {
		if v, ok := read(c, key); ok {
			out = append(out, word[T]{v, w.origin(c, key)})
		}
	}
	return out
}

// one reads a single value.
func one[T any](w *walker, n *yaml.Node, key string, read func(*yaml.Node, string) (T, bool)) *word[T] {
	v, ok := read(n, key)
	if !ok {
		return nil
	}
	return &word[T]{v, w.origin(n, key)}
}

// text reads a text that is not empty.
func (w *walker) text(n *yaml.Node, key string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		w.wrongType(n, key, "a text")
		return "", false
	}
	switch {
	case n.Value == "":
		w.fail(n, key, "%s is empty", key)
	case strings.ContainsRune(n.Value, 0):
		w.fail(n, key, "%s holds a NUL byte", key)
	default:
		return n.Value, true
	}
	return "", false
}

// anyText reads a text that may be empty.
func (w *walker) anyText(n *yaml.Node, key string) (string, bool) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && n.Value == "" {
		return "", true
	}
	return w.text(n, key)
}

// checked makes a reader of texts out of a parser.
func checked[T any](w *walker, parse func(string) (T, error)) func(*yaml.Node, string) (T, bool) {
	return func(n *yaml.Node, key string) (v T, ok bool) {
		s, ok := w.text(n, key)
		if !ok {
			return v, false
		}
		v, err := parse(s)
		if err != nil {
			w.fail(n, key, "%s: %s", key, err)
			return v, false
		}
		return v, true
	}
}

// enum makes a reader of a closed list of words.
func enum[T any](w *walker, words map[string]T) func(*yaml.Node, string) (T, bool) {
	return func(n *yaml.Node, key string) (v T, ok bool) {
		s, ok := w.text(n, key)
		if !ok {
			return v, false
		}
		if v, ok = words[s]; !ok {
			w.fail(n, key, "unknown value %q for %s: %s", clip(s), key, nearest(s, keysOf(words)))
		}
		return v, ok
	}
}

func (w *walker) boolean(n *yaml.Node, key string) (bool, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		w.wrongType(n, key, "true or false")
		return false, false
	}
	return n.Value == "true" || n.Value == "True" || n.Value == "TRUE", true
}

// number reads a positive decimal number without sign, base or separators.
func (w *walker) number(limit int64) func(*yaml.Node, string) (int64, bool) {
	return func(n *yaml.Node, key string) (int64, bool) {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!int" {
			w.wrongType(n, key, "a whole number")
			return 0, false
		}
		v, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil || v < 1 || v > limit || strconv.FormatInt(v, 10) != n.Value {
			w.fail(n, key, "%s: want a whole number from 1 to %d", key, limit)
			return 0, false
		}
		return v, true
	}
}

// size reads a number of bytes, as 4096 or 8G.
func (w *walker) size(n *yaml.Node, key string) (int64, bool) {
	digits := n.Value
	shift := 0
	if i := strings.IndexByte("KMGT", lastByte(digits)); i >= 0 {
		shift = 10 * (i + 1)
		digits = digits[:len(digits)-1]
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < 1 || !allDigits(digits) || v > math.MaxInt64>>shift {
		w.fail(n, key, "%s: want a number of bytes, as 512M or 8G", key)
		return 0, false
	}
	return v << shift, true
}

func lastByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}

// pairs reads a mapping of texts that has no fixed keys, in file order. A
// value may be empty.
func (w *walker) pairs(n *yaml.Node, key string, each func(k, v *yaml.Node, key string)) {
	if n.Kind != yaml.MappingNode {
		w.wrongType(n, key, "keys and values")
		return
	}
	if len(n.Content) > 2*maxEntries {
		w.fail(n, key, "%s has more than %d entries", key, maxEntries)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		each(n.Content[i], n.Content[i+1], key)
	}
}

// flowText writes a value on one line so that nothing of it is hidden: what is
// not a plain word is quoted.
func flowText(n *yaml.Node) string {
	parts := make([]string, 0, len(n.Content))
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			parts = append(parts, flowText(n.Content[i])+": "+flowText(n.Content[i+1]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		for _, c := range n.Content {
			parts = append(parts, flowText(c))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case yaml.ScalarNode:
		return quote(n.Value)
	}
	return ""
}

// quote returns s as it is when it is a plain word and cannot mislead, quoted
// in ASCII otherwise.
func quote(s string) string {
	for i := 0; i < len(s); i++ {
		c := s[i]
		plain := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_./~*@+-=%:", c) >= 0
		if !plain {
			return strconv.QuoteToASCII(s)
		}
	}
	if s == "" || strings.HasSuffix(s, ":") {
		return strconv.Quote(s)
	}
	return s
}

package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// parse reads one file into a document. In node mode yaml.v3 says nothing of
// duplicate keys, drops further documents and passes anchors, aliases, merge
// keys and tags, so all of these are looked for here.
func parse(src *Source, gaps []gap) (*document, Errors) {
	w := &walker{file: src.Name, gaps: gaps}
	if err := checkBytes(src); err != nil {
		return nil, Errors{err}
	}
	root, err := decode(src)
	if err != nil {
		return nil, Errors{err}
	}
	w.lines = strings.Split(string(src.Data), "\n")
	if root == nil {
		return nil, Errors{{File: src.Name, Line: 1, Col: 1, Key: "version", Msg: `the file says nothing: it needs at least "version: 1"`}}
	}
	w.checkTree(root)
	if len(w.errs) > 0 {
		return nil, w.sorted()
	}
	doc := w.document(root)
	return doc, w.sorted()
}

// sorted returns the errors in the order of the file.
func (w *walker) sorted() Errors {
	slices.SortStableFunc(w.errs, func(a, b *Error) int {
		return cmp.Or(a.Line-b.Line, a.Col-b.Col)
	})
	return w.errs
}

// checkBytes refuses what would make lines count differently for different
// readers, or show a person something else than the parser reads.
func checkBytes(src *Source) *Error {
	data := src.Data
	fail := func(at int, msg string) *Error {
		before := data[:at]
		line := bytes.Count(before, []byte("\n")) + 1
		col := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
		return &Error{File: src.Name, Line: line, Col: col, Msg: msg}
	}
	if len(data) > maxSize {
		return &Error{File: src.Name, Msg: "is larger than 1 MiB"}
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			return fail(i, "is not valid UTF-8")
		case r == 0:
			return fail(i, "holds a NUL byte")
		case r == '\r' && (i+1 == len(data) || data[i+1] != '\n'):
			return fail(i, "holds a carriage return without a newline")
		case r == 0x85 || r == 0x2028 || r == 0x2029:
			return fail(i, "holds a line break that editors do not show as one")
		case r == 0xFEFF:
			return fail(i, "holds a byte order mark; save it as plain UTF-8")
		case 0x202A <= r && r <= 0x202E, 0x2066 <= r && r <= 0x2069, r == 0x200E, r == 0x200F, r == 0x061C:
			return fail(i, "holds a character that changes the direction of text, so it may read differently than it means")
		}
		i += n
	}
	return nil
}

// decode returns the root node of the only document, nil for an empty one.
func decode(src *Source) (root *yaml.Node, failure *Error) {
	defer func() {
		// The library panics on some broken input; a policy that cannot be read
		// is refused like any other.
		if r := recover(); r != nil {
			root, failure = nil, &Error{File: src.Name, Line: 1, Col: 1, Msg: "is not YAML that can be read"}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(src.Data))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, syntaxError(src, err)
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, &Error{File: src.Name, Line: second.Line, Col: max(second.Column, 1), Msg: `a second document starts here ("---"): a policy is one document`}
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(src, err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, nil
	}
	if n := doc.Content[0]; n.Kind != yaml.ScalarNode || n.Tag != "!!null" || n.Value != "" || n.Anchor != "" {
		return n, nil
	}
	return nil, nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxError turns the library's text into a position. Its line is one too
// low for what the parser (and not the scanner) found, and missing on the
// first line; it has no column, so the line's first word is pointed at.
func syntaxError(src *Source, err error) *Error {
	text := err.Error()
	m := yamlLine.FindStringSubmatch(text)
	msg := strings.TrimPrefix(text, m[0])
	line, _ := strconv.Atoi(m[1]) // empty means the first line
	if m[1] == "" || strings.HasPrefix(msg, "did not find expected") {
		line++
	}
	lines := strings.Split(string(src.Data), "\n")
	line = min(max(line, 1), len(lines))
	col := 1
	if trimmed := strings.TrimLeft(lines[line-1], " "); trimmed != "" {
		col = len(lines[line-1]) - len(trimmed) + 1
	}
	return &Error{File: src.Name, Line: line, Col: col, Msg: "is not valid YAML: " + msg}
}

// maxErrors bounds what is told about one file.
const maxErrors = 50

// walker turns nodes into values and collects what is wrong with them.
type walker struct {
	file  string
	lines []string
	gaps  []gap // what is not built yet
	at    cursor
	errs  Errors
}

func (w *walker) fail(n *yaml.Node, key, format string, args ...any) {
	if len(w.errs) < maxErrors {
		w.errs = append(w.errs, &Error{File: w.file, Line: n.Line, Col: n.Column, Key: key, Msg: fmt.Sprintf(format, args...)})
	}
}

func (w *walker) pos(n *yaml.Node) Pos { return Pos{File: w.file, Line: n.Line, Col: n.Column} }

// checkTree refuses the parts of YAML by which a file can say something at
// another place than where it has effect.
func (w *walker) checkTree(n *yaml.Node) {
	switch {
	case len(w.errs) >= maxErrors:
		return
	case n.Kind == yaml.AliasNode:
		w.fail(n, "", "aliases (*name) are not allowed in a policy")
		return // what it points at is checked where it stands
	case n.Anchor != "":
		w.fail(n, "", "anchors (&name) are not allowed in a policy")
	case n.Style&yaml.TaggedStyle != 0, w.startsWith(n, '!'):
		w.fail(n, "", "tags (!name) are not allowed in a policy")
	}
	if n.Kind == yaml.MappingNode {
		w.checkKeys(n)
	}
	for _, c := range n.Content {
		w.checkTree(c)
	}
}

func (w *walker) checkKeys(n *yaml.Node) {
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && len(w.errs) < maxErrors; i += 2 {
		k := n.Content[i]
		if k.Tag == "!!merge" {
			w.fail(k, "<<", "merge keys (<<) are not allowed in a policy")
			continue
		}
		if k.Kind != yaml.ScalarNode {
			if k.Kind != yaml.AliasNode { // told by checkTree
				w.fail(k, "", "a key must be a word")
			}
			continue
		}
		if first, dup := seen[k.Value]; dup {
			w.fail(k, k.Value, "duplicate key %q: it is already on line %d", k.Value, first)
			continue
		}
		seen[k.Value] = k.Line
	}
}

// cursor is a place in the source. Nodes come in the order of the file, so
// going on from the last one keeps a long line from being read for each.
type cursor struct {
	line, col, byte int
}

// startsWith looks at the source text where n begins: the library forgets the
// tag "!", and no plain value can start with it.
func (w *walker) startsWith(n *yaml.Node, c byte) bool {
	if n.Line < 1 || n.Line > len(w.lines) {
		return false
	}
	if n.Line != w.at.line || n.Column < w.at.col {
		w.at = cursor{line: n.Line, col: 1}
	}
	text := w.lines[n.Line-1]
	for w.at.col < n.Column && w.at.byte < len(text) {
		_, size := utf8.DecodeRuneInString(text[w.at.byte:])
		w.at.byte += size
		w.at.col++
	}
	return w.at.byte < len(text) && text[w.at.byte] == c
}

// field reads the value of one key; key is the dotted name.
type field func(v *yaml.Node, key string)

// mapping reads n by a table of keys, tells unknown ones with the nearest
// known one, and refuses those whose mechanism is not built.
func (w *walker) mapping(n *yaml.Node, key string, fields map[string]field) bool {
	if n.Kind != yaml.MappingNode {
		w.wrongType(n, key, "keys and values")
		return false
	}
	for i := 0; i+1 < len(n.Content) && len(w.errs) < maxErrors; i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		read, ok := fields[k.Value]
		if !ok {
			w.fail(k, join(key, k.Value), "unknown key %q: %s", clip(k.Value), nearest(k.Value, keysOf(fields)))
			continue
		}
		full := join(key, k.Value)
		before := len(w.errs)
		read(v, full)
		if len(w.errs) == before {
			w.checkGap(k, v, full)
		}
	}
	return true
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func (w *walker) wrongType(n *yaml.Node, key, want string) {
	if key == "" {
		key = "the policy"
	}
	got := map[yaml.Kind]string{yaml.MappingNode: "keys and values", yaml.SequenceNode: "a list"}[n.Kind]
	if n.Kind == yaml.ScalarNode {
		got = map[string]string{
			"!!null": "nothing", "!!bool": "true or false", "!!int": "a number", "!!float": "a number",
			"!!timestamp": "a date", "!!str": "a text",
		}[n.Tag]
	}
	hint := ""
	if want == "a text" && n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		hint = "; put it in quotes"
	}
	w.fail(n, key, "%s is %s, want %s%s", key, got, want, hint)
}

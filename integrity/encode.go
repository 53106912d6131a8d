package integrity

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// FileName is where a repository keeps the manifest of its own surfaces.
const FileName = ".agentguard.sum"

const (
	header       = "agentguard.sum 1"
	maxLine      = 64 << 10 // bytes; a path of 4,096 escaped bytes and the rest fit well
	maxText      = 64 << 20 // bytes of a whole manifest
	sameAsWhole  = "="      // the executable part is the whole
	columns      = 6
	headerPrefix = "agentguard.sum "
)

// SyntaxError says where the text of a manifest is not one.
type SyntaxError struct {
	Line int // from 1
	Msg  string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("manifest line %d: %s", e.Line, e.Msg) }

// WriteTo writes the text form: a line with the version, then one line a
// surface, sorted by the bytes of its path, so that two branches' additions
// merge by line:
//
//	path entry kind mode sha256-of-all sha256-of-the-executable-part
//
// A path of other than plain characters is quoted, so that any bytes are text.
// There is exactly one text for a manifest.
func (m *Manifest) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	b.WriteString(header + "\n")
	for _, f := range m.Files() {
		part := f.Part.String()
		if f.Part == f.Whole {
			part = sameAsWhole
		}
		fmt.Fprintf(&b, "%s %s %s %06o %s %s\n", quote(f.Path), quote(f.Entry), f.Kind, f.Mode, f.Whole, part)
	}
	n, err := b.WriteTo(w)
	if err != nil {
		return n, fmt.Errorf("writing manifest: %w", err)
	}
	return n, nil
}

// Read reads what [Manifest.WriteTo] writes and nothing else: an unknown
// version, a line out of order or twice, the marks of an unresolved merge and
// any other spelling are a [*SyntaxError].
func Read(r io.Reader) (*Manifest, error) {
	limited := &io.LimitedReader{R: r, N: maxText + 1}
	sc := bufio.NewScanner(limited)
	sc.Buffer(make([]byte, 0, 4096), maxLine)
	sc.Split(wholeLines)
	m, line := &Manifest{text: true}, 0
	for sc.Scan() {
		line++
		if err := m.readLine(line, sc.Text()); err != nil {
			return nil, &SyntaxError{Line: line, Msg: err.Error()}
		}
	}
	if err := sc.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) || errors.Is(err, errUnended) {
			return nil, &SyntaxError{Line: line + 1, Msg: err.Error()}
		}
		return nil, fmt.Errorf("reading manifest: %w", err)
	}
	if limited.N == 0 {
		return nil, &SyntaxError{Line: line, Msg: fmt.Sprintf("longer than %d bytes", maxText)}
	}
	if line == 0 {
		return nil, &SyntaxError{Line: 1, Msg: "empty, want " + strconv.Quote(header)}
	}
	return m, nil
}

var errUnended = errors.New("cut off: the last line has no end")

// wholeLines is a split function that, other than ScanLines, keeps a carriage
// return and refuses a last line without its end: a manifest that was cut
// short must not pass for a shorter one.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, errUnended
	}
	return 0, nil, nil
}

func (m *Manifest) readLine(n int, text string) error {
	for _, mark := range []string{"<<<<<<<", "|||||||", "=======", ">>>>>>>"} {
		if strings.HasPrefix(text, mark) {
			return fmt.Errorf("unresolved merge conflict (%s)", mark)
		}
	}
	if n == 1 {
		return readHeader(text)
	}
	f, err := parseLine(text)
	if err != nil {
		return err
	}
	if k := len(m.files); k > 0 {
		switch last := m.files[k-1].Path; {
		case last == f.Path:
			return fmt.Errorf("%q is there twice", f.Path)
		case last > f.Path:
			return fmt.Errorf("%q is not sorted: it comes after %q", f.Path, last)
		}
	}
	m.files = append(m.files, f)
	return nil
}

func readHeader(text string) error {
	switch {
	case text == header:
		return nil
	case strings.HasPrefix(text, headerPrefix):
		return fmt.Errorf("version %q is not known, want 1", strings.TrimPrefix(text, headerPrefix))
	}
	return fmt.Errorf("no manifest, want %q", header)
}

func parseLine(text string) (File, error) {
	var f File
	col := strings.Split(text, " ")
	if len(col) != columns {
		return f, fmt.Errorf("%d columns, want %d", len(col), columns)
	}
	var err error
	if f.Path, err = unquote(col[0]); err != nil {
		return f, fmt.Errorf("path: %w", err)
	}
	if f.Entry, err = unquote(col[1]); err != nil {
		return f, fmt.Errorf("entry: %w", err)
	}
	if f.Kind, err = parseKind(col[2]); err != nil {
		return f, err
	}
	mode, err := strconv.ParseUint(col[3], 8, 32)
	if f.Mode = uint32(mode); err != nil || fmt.Sprintf("%06o", f.Mode) != col[3] {
		return f, fmt.Errorf("mode %q is not six octal digits", col[3])
	}
	if f.Whole, err = parseSum(col[4]); err != nil {
		return f, err
	}
	if f.Part = f.Whole; col[5] != sameAsWhole {
		if f.Part, err = parseSum(col[5]); err != nil {
			return f, err
		}
		if f.Part == f.Whole {
			return f, fmt.Errorf("the same sum twice, want %q", sameAsWhole)
		}
	}
	return f, nil
}

func parseKind(word string) (Kind, error) {
	for k, name := range kindNames {
		if name == word && Kind(k) != Absent {
			return Kind(k), nil
		}
	}
	return Absent, fmt.Errorf("kind %q is not known", word)
}

func parseSum(text string) (Sum, error) {
	var s Sum
	if len(text) != hex.EncodedLen(len(s)) || strings.ToLower(text) != text {
		return s, fmt.Errorf("%q is no sum of 64 lower-case hex digits", text)
	}
	if _, err := hex.Decode(s[:], []byte(text)); err != nil {
		return s, fmt.Errorf("%q is no sum: %w", text, err)
	}
	return s, nil
}

// quote returns s as one word: itself when it is plain, else a Go string
// literal of ASCII without a space.
func quote(s string) string {
	if plain(s) {
		return s
	}
	return strings.ReplaceAll(strconv.QuoteToASCII(s), " ", `\x20`)
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("._-/+@,:~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// unquote reverses quote and takes no other spelling of the same bytes, so a
// path cannot be hidden behind a second one.
func unquote(word string) (string, error) {
	s := word
	if strings.HasPrefix(word, `"`) {
		var err error
		if s, err = strconv.Unquote(word); err != nil {
			return "", fmt.Errorf("%s is not quoted right", word)
		}
	}
	if quote(s) != word {
		return "", fmt.Errorf("%q is spelled otherwise than %s", word, quote(s))
	}
	return s, nil
}

package policy

import (
	"fmt"
	"strings"
)

// Error is one thing wrong with a policy, at the place where it was written.
type Error struct {
	File      string
	Line, Col int    // 1-based; 0 for a flag or a whole file
	Key       string // dotted key, "" for the document
	Msg       string
}

// Error prints "file:line:col: message".
func (e *Error) Error() string {
	return Pos{e.File, e.Line, e.Col}.String() + ": " + e.Msg
}

// Errors is everything wrong with a policy, in the order of the files.
type Errors []*Error

// Error prints one error a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each error to errors.As.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// String prints "file:line:col", or the file alone where there is no line.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Pending is one line of the repository's file that widens the policy and does
// not count because the user did not say yes.
type Pending struct {
	Pos  Pos
	Key  string // dotted key, as "sandbox.read"
	Text string // the whole value on one line, quoted where it could mislead
	Err  *Error // set when a yes would make it an error, as for a grant of "/"
}

// String prints "file:line:col: key: value".
func (p Pending) String() string {
	return p.Pos.String() + ": " + p.Key + ": " + p.Text
}

package git

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxObject is the content size above which an object is not read.
const MaxObject = 64 << 20

// ObjectType is what an object is. The zero value is none.
type ObjectType uint8

// The types of objects.
const (
	Commit ObjectType = iota + 1
	Tree
	Blob
	Tag
)

var typeNames = [...]string{"none", "commit", "tree", "blob", "tag"}

// String returns git's word for t.
func (t ObjectType) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return typeNames[0]
}

func parseType(word string) ObjectType {
	for t := Commit; t <= Tag; t++ {
		if typeNames[t] == word {
			return t
		}
	}
	return 0
}

// Read returns an object without hashing it again: whoever can write the
// object store decides what it holds. The content is shared and must not be
// changed.
func (r *Repo) Read(h Hash) (ObjectType, []byte, error) {
	s, err := r.objects()
	if err != nil {
		return 0, nil, err
	}
	return s.read(h)
}

// ReadVerified returns an object after hashing it again: its content is what
// its name says. It is shared and must not be changed.
func (r *Repo) ReadVerified(h Hash) (ObjectType, []byte, error) {
	t, data, err := r.Read(h)
	if err != nil {
		return 0, nil, err
	}
	if r.ObjectFormat.sum(t, data) != h {
		return 0, nil, &CorruptError{What: "object " + h.String(), Why: "its content has another hash, or is a SHA-1 collision attack"}
	}
	return t, data, nil
}

// readAs reads a verified object that must be of type want.
func (r *Repo) readAs(h Hash, want ObjectType) ([]byte, error) {
	t, data, err := r.ReadVerified(h)
	if err != nil {
		return nil, err
	}
	if t != want {
		return nil, &CorruptError{What: "object " + h.String(), Why: fmt.Sprintf("it is a %s where a %s is named", t, want)}
	}
	return data, nil
}

// parseHeader reads "TYPE SIZE" in front of a loose object.
func parseHeader(s string) (ObjectType, int64, error) {
	word, digits, _ := strings.Cut(s, " ")
	t := parseType(word)
	size, err := strconv.ParseInt(digits, 10, 64)
	if t == 0 || err != nil || size < 0 {
		return 0, 0, fmt.Errorf("its header is %q", s)
	}
	return t, size, nil
}

// peel follows tags from h, and from a commit to its tree when want is Tree.
func (r *Repo) peel(h Hash, want ObjectType) (Hash, error) {
	for range 16 {
		t, data, err := r.ReadVerified(h)
		if err != nil {
			return Hash{}, err
		}
		if t == want || want == 0 && t != Tag {
			return h, nil
		}
		key := ""
		switch {
		case t == Tag:
			key = "object"
		case t == Commit && want == Tree:
			key = "tree"
		default:
			return Hash{}, &CorruptError{What: "object " + h.String(), Why: fmt.Sprintf("it is a %s, not a %s", t, want)}
		}
		if h, err = r.firstHeader(h, data, key); err != nil {
			return Hash{}, err
		}
	}
	return Hash{}, &CorruptError{What: "object " + h.String(), Why: "it is a tag of a tag, without end"}
}

// firstHeader reads the hash in the first line of a commit or tag.
func (r *Repo) firstHeader(of Hash, data []byte, key string) (Hash, error) {
	line, _, _ := strings.Cut(string(data[:min(len(data), 80)]), "\n")
	value, ok := strings.CutPrefix(line, key+" ")
	h, err := ParseHash(value)
	if !ok || err != nil || int(h.n) != r.ObjectFormat.Size() {
		return Hash{}, &CorruptError{What: "object " + of.String(), Why: fmt.Sprintf("its first line names no %s", key)}
	}
	return h, nil
}

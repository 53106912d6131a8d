package git

import (
	"bytes"
	"fmt"
	"strings"

	"agentguard/guard/surface"
)

// The modes of git's trees.
const (
	modeDir     = 0o040000
	modeFile    = 0o100644
	modeExec    = 0o100755
	modeSymlink = 0o120000
	modeGitlink = 0o160000
)

// maxTreeDepth and maxTreeEntries bound a walk: a few small objects can name
// one another into a tree without end for practical purposes.
const (
	maxTreeDepth   = 1024
	maxTreeEntries = 20_000_000
)

// treeEntry is one entry of a tree object.
type treeEntry struct {
	name string
	mode uint32
	hash Hash
}

// readTree reads and parses a verified tree; the zero hash is the empty one.
func (r *Repo) readTree(h Hash) ([]treeEntry, error) {
	if h.IsZero() {
		return nil, nil
	}
	data, err := r.readAs(h, Tree)
	if err != nil {
		return nil, err
	}
	entries, err := parseTree(data, r.ObjectFormat)
	if err != nil {
		return nil, &CorruptError{What: "tree " + h.String(), Why: err.Error()}
	}
	return entries, nil
}

// parseTree reads a tree's entries and holds them to git's order, so that no
// name is there twice and two trees can be merged in one pass. Names are not
// checked for more than that they are one component: see [UnsafePath].
func parseTree(data []byte, format ObjectFormat) ([]treeEntry, error) {
	n := format.Size()
	text := string(data) // names are parts of it
	out := make([]treeEntry, 0, len(data)/(n+16)+1)
	for pos := 0; pos < len(data); {
		sp := bytes.IndexByte(data[pos:min(pos+8, len(data))], ' ')
		if sp < 0 {
			return nil, fmt.Errorf("an entry has no mode")
		}
		mode, err := parseMode(data[pos : pos+sp])
		if err != nil {
			return nil, err
		}
		pos += sp + 1
		end := bytes.IndexByte(data[pos:], 0)
		if end <= 0 || pos+end+1+n > len(data) {
			return nil, fmt.Errorf("an entry is cut off")
		}
		e := treeEntry{name: text[pos : pos+end], mode: mode, hash: rawHash(data[pos+end+1 : pos+end+1+n])}
		if strings.Contains(e.name, "/") {
			return nil, fmt.Errorf("the name %q holds a slash", e.name)
		}
		if e.hash.IsZero() {
			return nil, fmt.Errorf("the name %q has no object", e.name)
		}
		if err := inOrder(out, e); err != nil {
			return nil, err
		}
		out = append(out, e)
		pos += end + 1 + n
	}
	return out, nil
}

// parseMode reads an octal mode and reduces it as git does.
func parseMode(digits []byte) (uint32, error) {
	var m uint32
	for _, c := range digits {
		if c < '0' || c > '7' {
			return 0, fmt.Errorf("the mode %q is not octal", digits)
		}
		m = m<<3 | uint32(c-'0')
	}
	switch m & 0o170000 {
	case modeDir, modeSymlink, modeGitlink:
		return m & 0o170000, nil
	case 0o100000:
		if m&0o100 != 0 {
			return modeExec, nil
		}
		return modeFile, nil
	}
	return 0, fmt.Errorf("the mode %q is not known", digits)
}

// inOrder tells whether e may follow the entries before it.
func inOrder(before []treeEntry, e treeEntry) error {
	if len(before) == 0 {
		return nil
	}
	if compareEntries(before[len(before)-1], e) >= 0 {
		return fmt.Errorf("the name %q is out of order or there twice", e.name)
	}
	if e.mode != modeDir {
		return nil
	}
	// A file "a" and a directory "a" are apart by what sorts between "a" and "a/".
	for i := len(before) - 1; i >= 0 && strings.HasPrefix(before[i].name, e.name); i-- {
		if before[i].name == e.name {
			return fmt.Errorf("the name %q is there twice", e.name)
		}
	}
	return nil
}

// compareEntries is git's order: a directory sorts as if its name ended in a
// slash.
func compareEntries(a, b treeEntry) int {
	n := min(len(a.name), len(b.name))
	if c := strings.Compare(a.name[:n], b.name[:n]); c != 0 {
		return c
	}
	return int(a.byteAt(n)) - int(b.byteAt(n))
}

func (e treeEntry) byteAt(i int) byte {
	switch {
	case i < len(e.name):
		return e.name[i]
	case e.mode == modeDir:
		return '/'
	}
	return 0
}

func surfaceType(mode uint32) surface.Type {
	switch mode {
	case modeFile, modeExec:
		return surface.Regular
	case modeDir:
		return surface.Dir
	case modeSymlink:
		return surface.Symlink
	case modeGitlink:
		return surface.Gitlink
	}
	return surface.Other
}

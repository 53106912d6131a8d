// Package integrity turns the surfaces of a tree into a manifest of hashes,
// says what differs between two, records which differences somebody wants, and
// keeps the copies from which a surface is restored.
//
// [Snapshot] reads any [surface.Tree], so the work tree before and after a
// command, the index, and two commits in CI are judged by the same code;
// [Compare] puts a run's places together. [Store] holds approvals and [Backup]
// the content that a restore writes back; both live in the user's state
// directory, outside every work tree.
//
// Does not stop a write: it tells of one afterwards. Does not see a change that
// was undone before the second snapshot, nor one made through a memory mapping
// after it, so the processes that could write must have ended. Does not know
// what a surface runs: beyond the set only the file that a link names counts,
// not what lies outside the tree nor what is in a directory that a link names.
// Does not judge whether a content is harmful. A manifest proves nothing about the tree it travels with:
// the anchor is the manifest of a base that the author cannot write.
package integrity

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"agentguard/guard/surface"
)

// Kind is what a surface is, as one word of a manifest line. The zero value is
// Absent, so a File that was never filled in describes nothing.
type Kind uint8

// The kinds.
const (
	Absent  Kind = iota // no such name; never a line of a manifest
	Regular             // a file with content
	Link                // a symbolic link; its text is what is hashed
	Dir                 // a directory; its members are lines of their own
	Gitlink             // a submodule's commit; its id is what is hashed
	Other               // a FIFO, socket or device, never opened
)

var kindNames = [...]string{Absent: "absent", Regular: "file", Link: "link", Dir: "dir", Gitlink: "gitlink", Other: "other"}

// String returns the word used in a manifest.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

func kindOf(t surface.Type) Kind {
	switch t {
	case surface.Regular:
		return Regular
	case surface.Dir:
		return Dir
	case surface.Symlink:
		return Link
	case surface.Gitlink:
		return Gitlink
	}
	return Other
}

// Sum is a SHA-256.
type Sum [32]byte

// String returns the sum in hex.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// File is one surface of one tree. The fields up to Part are the line of a
// manifest and what [Diff] compares; the rest is known only right after a
// [Snapshot] and is not written.
type File struct {
	Path  string // relative to the tree's root, raw bytes
	Entry string // id of the entry that decided its protection
	Mode  uint32 // git's mode; 0 for Other and Absent
	Kind  Kind
	Whole Sum // of the content, of a link's text or of a gitlink's id; zero for Dir and Other
	Part  Sum // of the executable part, for a link of the file it names; Whole where that is the whole

	// Protection belongs to the policy that judges and not to the content, so
	// it is no part of a line: what is read from text is Freeze, the strictest.
	Protection surface.Protection
	Trigger    string // what runs it, for people
	Size       int64  // bytes; 0 for what is not Regular
	Perm       uint32 // permission bits on disk; 0 where the tree has none
	Nlink      uint64 // names on disk; more than 1 means a second name can change it
	link       string // text of a Link
}

// same reports whether two lines describe the same thing at the same path. The
// entry's id is left out: a renamed catalogue row is no change of the tree.
func (f File) same(g File) bool {
	return f.Path == g.Path && f.Mode == g.Mode && f.Kind == g.Kind && f.Whole == g.Whole && f.Part == g.Part
}

// Manifest is the surfaces of one tree, sorted by path. The zero value is the
// manifest of a tree without any.
type Manifest struct {
	files []File // sorted by Path, no two equal
	text  bool   // read from text, so Protection is not known
}

// NewManifest makes a manifest of files; of two with one path the later wins,
// and an Absent one is no line.
func NewManifest(files []File) *Manifest {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	m := &Manifest{}
	for i, f := range files {
		if f.Kind == Absent || i+1 < len(files) && files[i+1].Path == f.Path {
			continue
		}
		m.files = append(m.files, f)
	}
	return m
}

// Files returns the lines, sorted by path. The caller must not change them.
func (m *Manifest) Files() []File {
	if m == nil {
		return nil
	}
	return m.files
}

// Get returns the line of path; its Kind is Absent when there is none.
func (m *Manifest) Get(path string) File {
	if m != nil {
		if i, ok := slices.BinarySearchFunc(m.files, path, func(f File, p string) int { return strings.Compare(f.Path, p) }); ok {
			return m.files[i]
		}
	}
	return File{Path: path}
}

// Digest returns the sum of the manifest's text, so that one value names all
// of it.
func (m *Manifest) Digest() Sum {
	h := sha256.New()
	_, _ = m.WriteTo(h) // a hash takes everything
	var s Sum
	h.Sum(s[:0])
	return s
}

// Select returns the manifest of the lines that keep accepts: the part of a
// work tree that a commit can hold, for one.
func (m *Manifest) Select(keep func(File) bool) *Manifest {
	out := &Manifest{}
	if m == nil {
		return out
	}
	out.text = m.text
	for _, f := range m.files {
		if keep(f) {
			out.files = append(out.files, f)
		}
	}
	return out
}

// Tracked reports whether git could hold the line in a tree: not what is in
// a git directory, no bare directory, no device. It is the keep of [Manifest.Select] for a
// manifest that is itself tracked.
func Tracked(f File) bool {
	if f.Kind == Dir || f.Kind == Other || f.Kind == Absent {
		return false
	}
	for c := range strings.SplitSeq(f.Path, "/") {
		if strings.EqualFold(c, ".git") {
			return false
		}
	}
	return true
}

package surface

import (
	"errors"
	"io"
)

// Type is what kind of thing a name in a tree is.
type Type uint8

// The types. The zero value is Other: a socket, FIFO or device, which no tree
// of git's can hold and which is never opened.
const (
	Other   Type = iota // socket, FIFO, device or unknown
	Regular             // a file with content
	Dir                 // a directory
	Symlink             // a symbolic link; its text is in WalkEntry.Link
	Gitlink             // a submodule's commit (mode 160000), only in git's trees
)

// WalkEntry is one name of a tree.
type WalkEntry struct {
	Path  string // relative to the tree's root, slash-separated raw bytes, never empty, not cleaned of anything
	Type  Type
	Mode  uint32 // git's mode: 0o100644, 0o100755, 0o120000, 0o160000, 0o040000; 0 for Other
	Perm  uint32 // permission and set-id bits on disk; 0 where the tree has none
	Link  string // text of a symbolic link
	Size  int64  // bytes; -1 where the tree does not know without opening
	Nlink uint64 // hard links on disk; 0 where the tree has none
	Dev   uint64 // with Ino, the file's identity on disk; 0 where the tree has none
	Ino   uint64
	Hash  string // the git object's id in hex, where the tree is git's
}

// SkipDir is what a walk function returns for a directory to leave out what is
// below it.
var SkipDir = errors.New("skip this directory")

// ErrNotExist says that a tree has no entry of that name.
var ErrNotExist = errors.New("no such entry in the tree")

// Tree is the seam that lets a work tree on disk, a commit and the index be
// judged by the same code. Implementations: [WorkTree] here, commits and the
// index in package git, [MapTree] for tests.
type Tree interface {
	// Walk calls fn for every entry, parents before children, never from two
	// goroutines at once. Symbolic links are told, never followed. Only Path
	// and Type are sure to be set: a work tree does not stat every name, so
	// whoever needs the rest asks Lstat. An error from fn other than SkipDir
	// ends the walk and is returned. A directory that cannot be read is an
	// error, not silence; one that vanished meanwhile is left out.
	Walk(fn func(WalkEntry) error) error

	// Lstat returns the entry with all its fields, without following a
	// symbolic link in any component. It gives ErrNotExist (wrapped) when
	// absent.
	Lstat(path string) (WalkEntry, error)

	// Open returns the content of one regular file (or the text of a link)
	// without following a symbolic link in any component, with the entry as
	// it was when opened. It gives ErrNotExist (wrapped) when absent.
	Open(path string) (io.ReadCloser, WalkEntry, error)
}

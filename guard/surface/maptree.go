package surface

import "io"

// MapTree is a tree in memory, for tests: the content of each file by its
// path. Parents are implied.
type MapTree map[string]MapFile

// MapFile is one file of a [MapTree]. The zero value is an empty file.
type MapFile struct {
	Data string // content, or the text of a link
	Type Type   // Other counts as Regular, so that the zero value is a file
	Perm uint32 // 0 counts as 0o644 for files and 0o755 for directories
}

// Walk implements [Tree], in the order of the paths.
func (t MapTree) Walk(fn func(WalkEntry) error) error { return nil }

// Lstat implements [Tree].
func (t MapTree) Lstat(path string) (WalkEntry, error) { return WalkEntry{}, ErrNotExist }

// Open implements [Tree].
func (t MapTree) Open(path string) (io.ReadCloser, WalkEntry, error) {
	return nil, WalkEntry{}, ErrNotExist
}

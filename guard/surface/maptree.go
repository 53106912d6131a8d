package surface

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// MapTree is a tree in memory, for tests: each file by its path. Parents are
// implied.
type MapTree map[string]MapFile

// MapFile is one file of a [MapTree]. The zero value is an empty regular
// file.
type MapFile struct {
	Data string // content, or the text of a link
	Type Type   // Other counts as Regular
	Perm uint32 // 0 counts as 0o644, 0o755 for a directory, 0o777 for a link
	Hash string
}

var _ Tree = MapTree(nil)

// Walk implements [Tree], in the order of the paths.
func (t MapTree) Walk(fn func(WalkEntry) error) error {
	all := map[string]WalkEntry{}
	for path, f := range t {
		all[path] = f.entry(path)
		for i, c := range path {
			if c == '/' {
				if _, ok := t[path[:i]]; !ok {
					all[path[:i]] = MapFile{Type: Dir}.entry(path[:i])
				}
			}
		}
	}
	skip := "/" // no path begins with it
	// "a/b" comes before "a.b" so that a skipped directory is one run.
	paths := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
	})
	for _, path := range paths {
		if strings.HasPrefix(path, skip) {
			continue
		}
		switch err := fn(all[path]); {
		case err == SkipDir && all[path].Type == Dir:
			skip = path + "/"
		case err == SkipDir:
		case err != nil:
			return err
		}
	}
	return nil
}

// Lstat implements [Tree].
func (t MapTree) Lstat(path string) (WalkEntry, error) {
	if f, ok := t[path]; ok {
		return f.entry(path), nil
	}
	for other := range t {
		if strings.HasPrefix(other, path+"/") {
			return MapFile{Type: Dir}.entry(path), nil
		}
	}
	return WalkEntry{}, fmt.Errorf("%q: %w", path, ErrNotExist)
}

// Open implements [Tree].
func (t MapTree) Open(path string) (io.ReadCloser, WalkEntry, error) {
	e, err := t.Lstat(path)
	if err != nil {
		return nil, WalkEntry{}, err
	}
	if e.Type != Regular && e.Type != Symlink {
		return nil, WalkEntry{}, fmt.Errorf("%q: %w", path, ErrNotRegular)
	}
	return io.NopCloser(strings.NewReader(t[path].Data)), e, nil
}

func (f MapFile) entry(path string) WalkEntry {
	e := WalkEntry{Path: path, Type: f.Type, Perm: f.Perm, Size: int64(len(f.Data)), Nlink: 1, Hash: f.Hash}
	if e.Type == Other {
		e.Type = Regular
	}
	if e.Perm == 0 {
		e.Perm = map[Type]uint32{Regular: 0o644, Dir: 0o755, Symlink: 0o777}[e.Type]
	}
	if e.Type == Symlink {
		e.Link = f.Data
	}
	e.Mode = gitMode(e.Type, e.Perm)
	return e
}

// gitMode is the mode git would record.
func gitMode(t Type, perm uint32) uint32 {
	switch t {
	case Regular:
		if perm&0o100 != 0 {
			return 0o100755
		}
		return 0o100644
	case Symlink:
		return 0o120000
	case Gitlink:
		return 0o160000
	case Dir:
		return 0o040000
	}
	return 0
}

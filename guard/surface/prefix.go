package surface

import (
	"fmt"
	"io"
	"strings"
)

// Prefix returns t with every path p told as prefix/p, so that a git
// directory outside the work tree is judged as ".git/…". The prefix itself
// is no entry of the tree.
func Prefix(t Tree, prefix string) Tree {
	return prefixed{t, strings.TrimSuffix(prefix, "/") + "/"}
}

type prefixed struct {
	t      Tree
	prefix string // ends in a slash
}

func (p prefixed) Walk(fn func(WalkEntry) error) error {
	return p.t.Walk(func(e WalkEntry) error {
		e.Path = p.prefix + e.Path
		return fn(e)
	})
}

func (p prefixed) Lstat(path string) (WalkEntry, error) {
	rest, err := p.inner(path)
	if err != nil {
		return WalkEntry{}, err
	}
	e, err := p.t.Lstat(rest)
	e.Path = path
	return e, err
}

func (p prefixed) Open(path string) (io.ReadCloser, WalkEntry, error) {
	rest, err := p.inner(path)
	if err != nil {
		return nil, WalkEntry{}, err
	}
	r, e, err := p.t.Open(rest)
	e.Path = path
	return r, e, err
}

func (p prefixed) inner(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, p.prefix)
	if !ok || rest == "" {
		return "", fmt.Errorf("%q: %w", path, ErrNotExist)
	}
	return rest, nil
}

package git

import (
	"path/filepath"
	"slices"
	"strings"
)

// HooksPath is the directory git takes hooks from.
type HooksPath struct {
	Dir    string // absolute, links not resolved; it need not exist
	Set    bool   // core.hooksPath decides; else it is the common directory's hooks
	Scope  Scope  // of the deciding value
	Origin string // its file
	Value  string // as written
}

// HooksPath returns the effective hooks directory: the last core.hooksPath of
// all scopes wins, relative to the work tree's top (bare: the git directory).
// home and xdg are as for [Repo.Config].
func (r *Repo) HooksPath(home, xdg string) (HooksPath, error) {
	c := &configReader{repo: r, home: home}
	values, err := c.readTwice(xdg)
	if err != nil {
		return HooksPath{}, err
	}
	h := HooksPath{Dir: filepath.Join(r.CommonDir, "hooks")}
	for _, v := range values {
		if v.Key != "core.hookspath" {
			continue
		}
		dir, err := c.hooksDir(v)
		if err != nil {
			return HooksPath{}, err
		}
		h = HooksPath{Dir: dir, Set: true, Scope: v.Scope, Origin: v.Origin, Value: v.Value}
	}
	return h, nil
}

// AllHooksDirs returns every directory that any scope, any include (whether
// its condition holds or not) or the default makes a hooks directory of this
// work tree, sorted, each once. They need not exist.
func (r *Repo) AllHooksDirs(home, xdg string) ([]string, error) {
	c := &configReader{repo: r, home: home, every: true}
	values, err := c.readTwice(xdg)
	if err != nil {
		return nil, err
	}
	dirs := []string{filepath.Join(r.CommonDir, "hooks"), filepath.Join(r.GitDir, "hooks")}
	for _, v := range values {
		if v.Key != "core.hookspath" {
			continue
		}
		spaced := v
		spaced.Value = strings.Map(tabToSpace, v.Value) // what git before 2.45 reads
		for _, v := range []ConfigValue{v, spaced} {
			dir, err := c.hooksDir(v)
			if err != nil {
				return nil, err
			}
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

func tabToSpace(c rune) rune {
	if c == '\t' || c == '\r' {
		return ' '
	}
	return c
}

func (c *configReader) hooksDir(v ConfigValue) (string, error) {
	dir, err := c.expand(v)
	if err != nil {
		return "", err
	}
	switch {
	case dir == "":
		return "/", nil // git looks for "/pre-commit"
	case filepath.IsAbs(dir):
		return filepath.Clean(dir), nil
	case c.repo.Bare:
		return filepath.Join(c.repo.GitDir, dir), nil
	}
	return filepath.Join(c.repo.Root, dir), nil
}

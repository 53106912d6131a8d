package guard

import (
	"fmt"
	"path/filepath"
	"strings"

	"agentguard/guard/policy"
	"agentguard/guard/surface"
	"agentguard/guard/watch"
	"agentguard/integrity"
)

// area is one directory tree that a run may write and whose surfaces are
// guarded: the work tree, a git directory that lies elsewhere, a granted
// directory.
type area struct {
	dir     string // on the host
	prefix  string // under which its paths are judged, as ".git" for a git directory elsewhere
	matcher *surface.Matcher
	tree    surface.Tree
	dirs    []string // the walk's directories, so that the watcher need not walk
	sockets []string // of the host's programs, by their paths on the host
	set     *surface.Set
	files   *integrity.Manifest
}

// path turns a judged path into the one on the host.
func (a *area) path(judged string) string {
	if a.prefix != "" {
		judged = strings.TrimPrefix(strings.TrimPrefix(judged, a.prefix), "/")
	}
	return filepath.Join(a.dir, judged)
}

// resolve finds the surfaces of an area.
func (a *area) resolve() error {
	t, err := surface.WorkTree(a.dir)
	if err != nil {
		return fmt.Errorf("reading %q: %w", a.dir, err)
	}
	if a.prefix != "" {
		t = surface.Prefix(t, a.prefix)
	}
	a.sockets = nil
	walk := &watch.Recorder{Tree: &socketFinder{t, a}}
	if a.set, err = surface.Resolve(walk, a.matcher); err != nil {
		return fmt.Errorf("looking for surfaces in %q: %w", a.dir, err)
	}
	a.tree, a.dirs = t, walk.Dirs
	return nil
}

// snapshot hashes the surfaces found.
func (a *area) snapshot() error {
	var err error
	if a.files, err = integrity.Snapshot(a.tree, a.set); err != nil {
		return fmt.Errorf("hashing the surfaces of %q: %w", a.dir, err)
	}
	return nil
}

// look is resolve and snapshot, for the second time.
func (a *area) look() error {
	if err := a.resolve(); err != nil {
		return err
	}
	return a.snapshot()
}

// areas lists what a run in w under p may write, the work tree first.
func (w *Workspace) areas(p *policy.Policy, m *surface.Matcher) ([]*area, error) {
	areas := []*area{{dir: w.Root, matcher: m}}
	if w.Repo != nil {
		for _, dir := range []string{w.Repo.CommonDir, w.Repo.GitDir} {
			if !covered(areas, dir) {
				areas = append(areas, &area{dir: dir, prefix: ".git", matcher: m})
			}
		}
	}
	if len(p.Sandbox.Write) == 0 {
		return areas, nil
	}
	granted, err := grantMatchers()
	if err != nil {
		return nil, err
	}
	for _, grant := range p.Sandbox.Write {
		if grant.Missing || covered(areas, grant.Real) || !isDirectory(grant.Real) {
			continue
		}
		areas = append(areas, &area{dir: grant.Real, matcher: granted.of(grant.Real)})
	}
	return areas, nil
}

// resolved returns the areas of a run in w under p with their surfaces, and
// the hooks directories outside the workspace that git takes its hooks from.
func (g *Guard) resolved(w *Workspace, p *policy.Policy) (r resolution, err error) {
	hooksDirs, outside, err := g.hooksDirs(w)
	if err != nil {
		return r, err
	}
	r = resolution{outside: outside, rules: w.rules(p, hooksDirs)}
	m, err := compile(r.rules)
	if err != nil {
		return r, err
	}
	if r.areas, err = w.areas(p, m); err != nil {
		return r, err
	}
	for _, a := range r.areas {
		if err := a.resolve(); err != nil {
			return r, err
		}
	}
	return r, nil
}

// resolution is what a run may write, with the surfaces in it.
type resolution struct {
	areas   []*area
	outside []string // hooks directories elsewhere that git runs from
	rules   surface.Rules
}

func covered(areas []*area, dir string) bool {
	for _, a := range areas {
		if within(dir, a.dir) {
			return true
		}
	}
	return false
}

// matchersOfGrants judge granted directories: a repository like the workspace,
// anything else only by what git would execute in it.
type matchersOfGrants struct{ repository, plain *surface.Matcher }

func grantMatchers() (matchersOfGrants, error) {
	var m matchersOfGrants
	var err error
	if m.repository, err = surface.NewMatcher(surface.Catalogue(), surface.Rules{}); err != nil {
		return m, err
	}
	var gits []surface.Entry
	for _, e := range surface.Catalogue() {
		if e.Ecosystem == "git" {
			gits = append(gits, e)
		}
	}
	m.plain, err = surface.NewMatcher(gits, surface.Rules{})
	return m, err
}

func (m matchersOfGrants) of(dir string) *surface.Matcher {
	if exists(filepath.Join(dir, ".git")) {
		return m.repository
	}
	return m.plain
}

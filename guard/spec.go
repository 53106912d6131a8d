package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"agentguard/guard/policy"
	"agentguard/guard/surface"
	"agentguard/sandbox"
)

// plan is all that decides what a sandbox looks like; specFor turns it into
// one without touching anything, so that goldens can hold it.
type plan struct {
	host    sandbox.HostFS
	base    sandbox.BaseOptions
	policy  *policy.Policy
	root    string   // of the workspace
	links   []link   // by which the caller named its directory and its tools
	gitDirs []string // outside the workspace, its own
	areas   []frozenArea
	tools   []string        // read-only grants for programs on PATH
	hooks   []string        // hooks directories outside the workspace that git runs from
	copies  []sandbox.Mount // those that the command's user could not open on the host
	weak    []string        // what is weaker than designed, one sentence each
	cache   []cacheDir
	config  []sandbox.Mount // files in the private home
	masks   []string        // what is shown empty: keys inside broad grants, sockets of the host
}

// frozenArea is a writable tree and its surfaces.
type frozenArea struct {
	dir     string
	members []frozen
}

// frozen is one existing surface on the host that a run must not change.
type frozen struct {
	path string // absolute
	name bool   // a directory that is frozen as a name only: its content is judged by itself
}

// link is a symbolic link that leads into the workspace.
type link struct{ path, text string }

// cacheDir is one tool's cache, the run's own.
type cacheDir struct{ host, inside string }

// mounts returns the sandbox's plan, in the order in which it is applied.
func (p *plan) mounts() []sandbox.Mount {
	out := sandbox.Base(p.host, p.base)
	for _, dir := range p.tools {
		out = append(out, readOnly(dir, dir))
	}
	for _, c := range p.caches() {
		out = append(out, sandbox.Mount{Kind: sandbox.Writable, Source: c.host, Target: c.inside})
	}
	out = append(out, p.config...)
	for _, g := range p.policy.Sandbox.Read {
		if !g.Missing {
			out = append(out, readOnly(g.Real, g.Path))
		}
	}
	kind := sandbox.ReadOnly
	if p.policy.Sandbox.Workspace == policy.WorkspaceWrite {
		kind = sandbox.Writable
	}
	for _, dir := range p.gitDirs {
		out = append(out, sandbox.Mount{Kind: kind, Source: dir, Target: dir})
	}
	out = append(out, sandbox.Mount{Kind: kind, Source: p.root, Target: p.root})
	for _, g := range p.policy.Sandbox.Write {
		if !g.Missing {
			out = append(out, sandbox.Mount{Kind: sandbox.Writable, Source: g.Real, Target: g.Path})
		}
	}
	for _, l := range p.links {
		if !p.shown(l.path) {
			out = append(out, sandbox.Mount{Kind: sandbox.Link, Source: l.text, Target: l.path})
		}
	}
	for _, dir := range p.hooks {
		out = append(out, readOnly(dir, dir))
	}
	out = append(out, p.copies...)
	if kind == sandbox.Writable || len(p.policy.Sandbox.Write) > 0 {
		out = append(out, p.frozen()...)
	}
	for _, path := range p.masks {
		out = append(out, sandbox.Mount{Kind: sandbox.Mask, Target: path})
	}
	return out
}

func readOnly(source, target string) sandbox.Mount {
	return sandbox.Mount{Kind: sandbox.ReadOnly, Source: source, Target: target, Optional: true}
}

// granted says whether the policy opens path or something around or in it.
func (p *plan) granted(path string) bool {
	for _, g := range slices.Concat(p.policy.Sandbox.Read, p.policy.Sandbox.Write) {
		if within(path, g.Path) || within(g.Path, path) {
			return true
		}
	}
	return within(p.root, path)
}

// caches are the run's own caches: one directory for all of them, or one for
// each tool where the policy opens something beside or below.
func (p *plan) caches() []cacheDir {
	if len(p.cache) == 0 {
		return nil
	}
	all := cacheDir{filepath.Dir(p.cache[0].host), filepath.Dir(p.cache[0].inside)}
	if !p.granted(all.inside) {
		return []cacheDir{all}
	}
	return slices.DeleteFunc(slices.Clone(p.cache), func(c cacheDir) bool { return p.granted(c.inside) })
}

// shown says that path lies in something of the host that is shown as it is,
// links included.
func (p *plan) shown(path string) bool {
	for _, dir := range slices.Concat([]string{p.root}, p.gitDirs, p.tools) {
		if within(path, dir) {
			return true
		}
	}
	for _, g := range slices.Concat(p.policy.Sandbox.Read, p.policy.Sandbox.Write) {
		if !g.Missing && within(path, g.Path) {
			return true
		}
	}
	return false
}

// writable lists the roots below which the second layer lets the command write.
func (p *plan) writable() []string {
	roots := sandbox.BaseWrite(p.base.Home)
	if p.policy.Sandbox.Workspace == policy.WorkspaceWrite {
		roots = append(roots, p.root)
		roots = append(roots, p.gitDirs...)
	}
	for _, g := range p.policy.Sandbox.Write {
		if !g.Missing {
			roots = append(roots, g.Path)
		}
	}
	for _, c := range p.caches() {
		roots = append(roots, c.inside)
	}
	return roots
}

// frozen binds every frozen path over itself read-only and pins each directory
// above it, up to the writable root: what is only mounted can be carried away
// by renaming a parent, which leaves the old name free.
func (p *plan) frozen() []sandbox.Mount {
	kinds := map[string]sandbox.Mount{}
	for _, a := range p.areas {
		for _, f := range a.members {
			p.pinAbove(kinds, a.dir, f.path)
			kind := sandbox.Freeze
			if f.name {
				kind = sandbox.Pin
			}
			if old, ok := kinds[f.path]; !ok || old.Kind == sandbox.Pin {
				kinds[f.path] = sandbox.Mount{Kind: kind, Target: f.path, Optional: true}
			}
		}
	}
	var out []sandbox.Mount
	for path, m := range kinds {
		if !belowFrozen(kinds, path) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b sandbox.Mount) int {
		if d := strings.Count(a.Target, "/") - strings.Count(b.Target, "/"); d != 0 {
			return d
		}
		return strings.Compare(a.Target, b.Target)
	})
	return out
}

func (p *plan) pinAbove(kinds map[string]sandbox.Mount, root, path string) {
	for dir := filepath.Dir(path); dir != root && within(dir, root); dir = filepath.Dir(dir) {
		if _, ok := kinds[dir]; ok {
			return // and so is everything above it
		}
		kinds[dir] = sandbox.Mount{Kind: sandbox.Pin, Target: dir, Optional: true}
	}
}

// belowFrozen says that a frozen directory further up covers path already.
func belowFrozen(kinds map[string]sandbox.Mount, path string) bool {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if m, ok := kinds[dir]; ok && m.Kind == sandbox.Freeze {
			return true
		}
	}
	return false
}

// frozenMembers are the surfaces of an area that a plan has to freeze, folded
// into whole directories where everything below is frozen.
func frozenMembers(a *area) frozenArea {
	out := frozenArea{dir: a.dir}
	whole := "\x00"
	for _, m := range a.set.Members {
		keep := m.Hit.Entry.Keep && m.Hit.Protection == surface.Review
		if m.Hit.Protection != surface.Freeze && !keep || strings.HasPrefix(m.Path, whole+"/") {
			continue
		}
		switch m.Type {
		case surface.Dir:
			if m.WholeDir {
				whole = m.Path
			}
			out.members = append(out.members, frozen{a.path(m.Path), !m.WholeDir})
		case surface.Symlink:
			out.members = append(out.members, frozen{a.path(m.Path), false})
			if real, err := filepath.EvalSymlinks(a.path(m.Path)); err == nil && within(real, a.dir) && real != a.dir {
				out.members = append(out.members, frozen{real, false})
			}
		default:
			out.members = append(out.members, frozen{a.path(m.Path), false})
		}
	}
	return out
}

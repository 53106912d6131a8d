package stage

import (
	"slices"
	"strings"
	"sync"

	"agentguard/guard/surface"
)

// names judges canonical paths of a run: whether a name is frozen, there or
// not. It is what the broker asks.
type names struct {
	// matcher is compiled when the first name is judged: a command that writes
	// nothing does not wait for it.
	matcher func() (*surface.Matcher, error)
	areas   []Area // longest directory first
	dirs    []map[string]bool
	inodes  map[[2]uint64]string
	there   map[string]bool // frozen at the start
	others  []string
	// hasGit says whether a directory holds a .git now.
	hasGit func(dir string) bool
}

// frozenVerdict is the answer: the rule that freezes a path, or none.
type frozenVerdict struct {
	frozen bool
	rule   string
}

func newNames(b *Broker, hasGit func(string) bool) *names {
	rules := surface.Rules{Profile: surface.Strict, Protect: b.Protect, Unprotect: b.Unprotect}
	if b.Balanced {
		rules.Profile = surface.Balanced
	}
	compile := sync.OnceValues(func() (*surface.Matcher, error) { return surface.NewMatcher(surface.Catalogue(), rules) })
	n := &names{matcher: compile, areas: slices.Clone(b.Areas), inodes: map[[2]uint64]string{}, there: map[string]bool{}, hasGit: hasGit}
	slices.SortFunc(n.areas, func(a, b Area) int { return len(b.Dir) - len(a.Dir) })
	for _, a := range n.areas {
		set := make(map[string]bool, len(a.Dirs))
		for _, d := range a.Dirs {
			set[d] = true
		}
		n.dirs = append(n.dirs, set)
	}
	n.others = b.Others
	for _, path := range b.There {
		n.there[path] = true
	}
	for _, i := range b.Inodes {
		n.inodes[[2]uint64{i.Dev, i.Ino}] = i.Path
	}
	return n
}

// judge says whether path, which is canonical, names something frozen. An
// unknown type is judged as a file and as a directory.
func (n *names) judge(path string, typ surface.Type) frozenVerdict {
	i := slices.IndexFunc(n.areas, func(a Area) bool { return path == a.Dir || strings.HasPrefix(path, a.Dir+"/") })
	if i < 0 {
		return frozenVerdict{} // mounts and Landlock hold everything else
	}
	a := n.areas[i]
	rel := strings.TrimPrefix(path[len(a.Dir):], "/")
	if rel == "" {
		return frozenVerdict{}
	}
	judged := rel
	if a.Prefix != "" {
		judged = a.Prefix + "/" + rel
	}
	if liveHook(judged) {
		return frozenVerdict{true, "a live hook: .git/hooks/*"}
	}
	rule, frozen := n.match(judged, typ, a.Git)
	if !frozen || a.Prefix == "" && n.madeByRun(i, rel) {
		return frozenVerdict{}
	}
	return frozenVerdict{true, rule}
}

// removable says that a frozen name came into being during the run and may go
// again: what git clone brought, rm -r takes away.
func (n *names) removable(path string) bool {
	for dir := path; len(dir) > 1; dir = dir[:max(strings.LastIndexByte(dir, '/'), 1)] {
		if n.there[dir] {
			return false
		}
	}
	return true
}

// ofOthers says that path is the state of another work tree of the repository:
// its index and HEAD decide what that one's user restores and commits.
func (n *names) ofOthers(path string) bool {
	for _, o := range n.others {
		if path == o || path == o+".lock" || strings.HasPrefix(path, o+"/") {
			return true
		}
	}
	return false
}

func (n *names) match(judged string, typ surface.Type, gitOnly bool) (rule string, frozen bool) {
	m, err := n.matcher()
	if err != nil {
		return "the rules cannot be read: " + err.Error(), true
	}
	types := []surface.Type{typ}
	if typ == surface.Other {
		types = []surface.Type{surface.Regular, surface.Dir}
	}
	for _, t := range types {
		hit, ok := m.Match(judged, t)
		if ok && hit.Protection == surface.Freeze && (!gitOnly || hit.Entry.Ecosystem == "git") {
			return hit.Entry.ID + ": " + hit.Rule, true
		}
	}
	return "", false
}

// plainTop says that no component of a path is a directory that tools look
// for by itself (.github, .cargo): a repository made there frees nothing.
func plainTop(top string) bool {
	return !strings.HasPrefix(top, ".") && !strings.Contains(top, "/.")
}

// madeByRun says whether a name belongs to a repository that the run itself
// made below the workspace (git init, git clone, git worktree add): one whose
// top was not there at the start. Its names are free, and told at the end; a
// live hook in it is not.
func (n *names) madeByRun(area int, rel string) bool {
	for i := 0; i < len(rel); i++ {
		if rel[i] != '/' {
			continue
		}
		top := rel[:i]
		if n.dirs[area][top] {
			continue
		}
		if !plainTop(top) {
			return false
		}
		rest := rel[i+1:]
		if isGitName(rest) {
			return freshGit(rest)
		}
		return n.hasGit(n.areas[area].Dir + "/" + top)
	}
	// A new .git at the very top, in a workspace that is no repository.
	return isGitName(rel) && !n.dirs[area][".git"] && n.dirs[area] != nil && freshGit(rel)
}

// liveHook says that a path would be a hook that git runs, in whatever
// repository: git init and git clone bring samples only.
func liveHook(judged string) bool {
	i := strings.LastIndex(judged, ".git/hooks/")
	if i < 0 || i > 0 && judged[i-1] != '/' {
		return false
	}
	return !strings.HasSuffix(judged, ".sample")
}

func isGitName(rel string) bool { return rel == ".git" || strings.HasPrefix(rel, ".git/") }

// freshGit says what git itself puts into a new git directory.
func freshGit(rel string) bool {
	switch rel {
	case ".git", ".git/config", ".git/description", ".git/hooks", ".git/info", ".git/info/exclude":
		return true
	}
	return strings.HasPrefix(rel, ".git/hooks/") && strings.HasSuffix(rel, ".sample")
}

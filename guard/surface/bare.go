package surface

import "strings"

// bareRepoID is the entry under which a bare repository is told that has no
// name of the customary form.
const bareRepoID = "git-bare-repo-subfolder"

// bareFinder notices directories that git would take for a repository: with
// HEAD, and objects and refs or a pointer to them, whatever they are called.
// No single name shows one, so it takes a whole walk.
type bareFinder struct {
	seen map[string]uint8 // which marks each directory has
}

const (
	markHead uint8 = 1 << iota
	markObjects
	markRefs
	markCommon
)

func (b *bareFinder) see(path string) {
	dir, base := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, base = path[:i], path[i+1:]
	}
	var mark uint8
	switch n := len(base); {
	case n == 4 && strings.EqualFold(base, "HEAD"):
		mark = markHead
	case n == 7 && strings.EqualFold(base, "objects"):
		mark = markObjects
	case n == 4 && strings.EqualFold(base, "refs"):
		mark = markRefs
	case n == 9 && strings.EqualFold(base, "commondir"):
		mark = markCommon
	default:
		return
	}
	if b.seen == nil {
		b.seen = map[string]uint8{}
	}
	b.seen[dir] |= mark
}

// repos returns the directories found, without those inside a .git, which
// entries of their own cover.
func (b *bareFinder) repos() map[string]bool {
	repos := map[string]bool{}
	for dir, marks := range b.seen {
		if marks&markHead == 0 || marks&markCommon == 0 && marks&(markObjects|markRefs) != markObjects|markRefs {
			continue
		}
		if p, ok := splitName(dir, nil, nil); ok && firstGit(p) == p.len() {
			repos[dir] = true
		}
	}
	return repos
}

// addBare adds what git would execute or believe of the repositories, which
// is what it would of the same names below .git.
func (s *Set) addBare(t Tree, m *Matcher, repos map[string]bool) error {
	if len(repos) == 0 || m.bare == nil {
		return nil
	}
	return t.Walk(func(e WalkEntry) error {
		dir, rest, ok := enclosing(repos, e.Path)
		if !ok {
			return nil
		}
		alias := ".git/" + rest
		if e.Type == Dir && m.Prune(alias) {
			return SkipDir
		}
		hit, ok := m.Match(alias, e.Type)
		if !ok && !strings.EqualFold(rest, "HEAD") || ok && hit.Entry.Ecosystem != gitEcosystem {
			return nil
		}
		hit = Hit{Entry: m.bare, Protection: m.bareProtection, Rule: "a repository in " + orWorkspace(dir)}
		if p, ok := splitName(dir, nil, nil); ok && m.trees.first(p, Dir) < p.len() {
			hit.Protection = Note
		}
		s.Members = append(s.Members, Member{WalkEntry: e, Hit: hit})
		return nil
	})
}

// enclosing returns the outermost repository that path is in.
func enclosing(repos map[string]bool, path string) (dir, rest string, ok bool) {
	if repos[""] {
		return "", path, true
	}
	for i := range len(path) {
		if path[i] == '/' && repos[path[:i]] {
			return path[:i], path[i+1:], true
		}
	}
	return "", "", false
}

func orWorkspace(dir string) string {
	if dir == "" {
		return "the workspace itself"
	}
	return dir
}

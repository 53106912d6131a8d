package guard

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"agentguard/guard/event"
	"agentguard/guard/policy"
	"agentguard/guard/surface"
	"agentguard/sandbox"
)

// nameGuard is what the broker needs to know to refuse frozen names, there or
// not, while the command runs.
func (s *session) nameGuard() sandbox.Broker {
	b := sandbox.Broker{Protect: s.rules.Protect, Unprotect: s.rules.Unprotect, Balanced: s.rules.Profile == surface.Balanced}
	switch s.policy.Sandbox.Broker {
	case policy.BrokerOff:
		return b
	case policy.BrokerAuto:
		b.Mode = sandbox.BrokerAuto
	default:
		b.Mode = sandbox.BrokerRequire
	}
	if s.policy.Sandbox.Workspace != policy.WorkspaceWrite && len(s.policy.Sandbox.Write) == 0 {
		return sandbox.Broker{} // nothing can be written, so there is no name to guard
	}
	for i, a := range s.start.areas {
		b.Areas = append(b.Areas, sandbox.Area{
			Dir: s.inside(a.dir), Prefix: a.prefix, Dirs: relativeDirs(a.dirs),
			Git: i > 0 && a.prefix == "" && !exists(filepath.Join(a.dir, ".git")),
		})
		for _, m := range a.set.Members {
			if m.Nlink > 1 && m.Type == surface.Regular && m.Hit.Protection == surface.Freeze {
				b.Inodes = append(b.Inodes, sandbox.Inode{Dev: m.Dev, Ino: m.Ino, Path: s.w.shown(a.path(m.Path))})
			}
		}
	}
	for _, a := range s.plan.areas {
		for _, f := range a.members {
			b.There = append(b.There, s.insidePath(f.path))
		}
	}
	b.Others = s.otherWorkTrees()
	return b
}

// otherWorkTrees are the parts of the common git directory that belong to the
// main work tree and to other linked ones.
func (s *session) otherWorkTrees() []string {
	r := s.w.Repo
	if r == nil {
		return nil
	}
	var out []string
	if r.Linked {
		out = append(out, filepath.Join(r.CommonDir, "index"), filepath.Join(r.CommonDir, "HEAD"))
	}
	list, err := r.Worktrees()
	if err != nil {
		return out // GitDirs told it already
	}
	for _, w := range list {
		if w.AdminDir != r.GitDir {
			out = append(out, filepath.Join(w.AdminDir, "index"), filepath.Join(w.AdminDir, "HEAD"))
		}
	}
	return out
}

// insidePath is where a path of a writable tree appears inside.
func (s *session) insidePath(path string) string {
	for _, g := range s.policy.Sandbox.Write {
		if within(path, g.Real) {
			return g.Path + strings.TrimPrefix(path, g.Real)
		}
	}
	return path
}

// inside is where a writable tree of the host appears inside.
func (s *session) inside(dir string) string {
	for _, g := range s.policy.Sandbox.Write {
		if g.Real == dir {
			return g.Path
		}
	}
	return dir
}

func relativeDirs(dirs []string) []string {
	return slices.DeleteFunc(slices.Clone(dirs), func(d string) bool { return d == "" || d == "." })
}

// refusedNames sums up what the broker refused, bounded however often a
// command tries.
type refusedNames struct {
	mu    sync.Mutex // guards what follows
	order []Refusal
	index map[string]int
}

// maxRefusedNames is how many different names are kept; the first ones tell
// what a command was after.
const maxRefusedNames = 1000

func (r *refusedNames) add(path, reason string) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.index == nil {
		r.index = map[string]int{}
	}
	if i, ok := r.index[path]; ok {
		r.order[i].Times++
		return false
	}
	if len(r.order) >= maxRefusedNames {
		return false
	}
	r.index[path] = len(r.order)
	r.order = append(r.order, Refusal{Subject: path, Reason: reason, Times: 1})
	return true
}

func (r *refusedNames) list() []Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.order)
}

// nameRefused tells a refused name once, however often it was tried.
func (s *session) nameRefused(n sandbox.NameRefusal) {
	path := s.w.shown(n.Path)
	if !s.names.add(path, n.Rule) {
		return
	}
	s.sink.Report(event.Event{
		Time: s.g.Now(), Kind: event.NameRefused, Subject: path, Rule: n.Rule,
		Reason: "refused " + n.Call + " of a frozen name",
		Hint:   "sandbox.unprotect: [" + strings.TrimSpace(path) + "]",
		Detail: map[string]string{"program": n.Comm},
	})
}

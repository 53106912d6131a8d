package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentguard/guard/git"
	"agentguard/guard/policy"
	"agentguard/guard/surface"
	"agentguard/integrity"
)

// RestoredPath is what restore did about one surface, or what is left to do.
type RestoredPath struct {
	Path    string `json:"path"`
	Done    string `json:"done,omitempty"`     // one sentence
	MovedTo string `json:"moved_to,omitempty"` // where what was there is now
	Problem string `json:"problem,omitempty"`  // why it is not as before
	Command string `json:"command,omitempty"`  // that does what agentguard leaves to the user
}

// Restore puts surfaces back as they were before the last run that left
// something undecided: the paths named, with what is below them, or all. What
// is in the way is moved to quarantine. The index and refs are git's and the
// user's: there it names the command.
func (g *Guard) Restore(args []string, all bool) ([]RestoredPath, error) {
	w, err := g.Open()
	if err != nil {
		return nil, err
	}
	if err := g.settle(w); err != nil {
		return nil, err
	}
	p, m, err := g.judgeBy(w)
	if err != nil {
		return nil, err
	}
	s, list, err := w.sinceLast(p, m)
	if err != nil {
		return nil, err
	}
	if s == nil && all {
		return nil, nil
	}
	if s == nil {
		return nil, &PathError{w.Root, "no run left anything undecided here, so there is no copy to restore from"}
	}
	if !all {
		if list, err = g.pick(w, list, args); err != nil {
			return nil, err
		}
	}
	var out []RestoredPath
	for _, f := range list {
		out = append(out, w.restoreFinding(s, f)...)
	}
	return out, w.dropLast(p, m)
}

// judgeBy is the policy in force and what it makes of the catalogue.
func (g *Guard) judgeBy(w *Workspace) (*policy.Policy, *surface.Matcher, error) {
	p, err := g.loadPolicy(w, policy.Flags{})
	if err != nil {
		return nil, nil, err
	}
	hooksDirs, _, err := g.hooksDirs(w)
	if err != nil {
		return nil, nil, err
	}
	m, err := w.matcher(p, hooksDirs)
	return p, m, err
}

// pick returns the findings that args name; an argument that names none is a
// mistake.
func (g *Guard) pick(w *Workspace, list []finding, args []string) ([]finding, error) {
	names := make([]string, len(args))
	for i, a := range args {
		names[i] = g.named(w, a)
		if !slices.ContainsFunc(list, func(f finding) bool { return within(f.Shown, names[i]) }) {
			return nil, &PathError{a, "the last run left nothing undecided there"}
		}
	}
	return slices.DeleteFunc(list, func(f finding) bool { return !selected(f.Shown, names) }), nil
}

// restoreFinding mends one finding in each place that holds it.
func (w *Workspace) restoreFinding(s *start, f finding) []RestoredPath {
	var out []RestoredPath
	for _, place := range f.Places {
		switch place {
		case integrity.PlaceWorkTree:
			out = append(out, w.restoreFile(f))
		case integrity.PlaceIndex:
			out = append(out, RestoredPath{Path: f.Shown, Problem: "the index still holds it", Command: "git restore --staged -- " + quote(f.Shown)})
		default:
			out = append(out, RestoredPath{Path: f.Shown, Problem: place + " still holds it", Command: undoRef(s, place)})
		}
	}
	return out
}

// undoRef is the command that takes a ref back to what it was.
func undoRef(s *start, ref string) string {
	old, had := s.refs[ref]
	branch, isBranch := strings.CutPrefix(ref, "refs/heads/")
	switch {
	case strings.HasPrefix(ref, "refs/stash"):
		return "git stash drop"
	case ref == "HEAD" && had:
		return "git reset --soft " + old.String()
	case isBranch && !had:
		return "git branch -D " + quote(branch)
	case !had || old.IsZero():
		return "git update-ref -d " + quote(ref)
	}
	return "git update-ref " + quote(ref) + " " + old.String()
}

func (w *Workspace) restoreFile(f finding) RestoredPath {
	out := RestoredPath{Path: f.Shown}
	old := f.Old
	if !w.backup().Holds(old) {
		w.keepFromHead(old)
	}
	if f.area.prefix != "" {
		old.Path = strings.TrimPrefix(strings.TrimPrefix(old.Path, f.area.prefix), "/")
	}
	done, err := integrity.Restorer{Root: f.area.dir, Backup: w.backup(), Quarantine: w.quarantine()}.Restore(old)
	switch {
	case errors.Is(err, integrity.ErrNotKept):
		out.Problem = "no copy of it was kept, so it stays as it is"
		out.Command = "git restore --source=REVISION -- " + quote(f.Shown)
	case err != nil:
		out.Problem = err.Error()
	case old.Kind == integrity.Absent:
		out.Done = "taken away: it was not there before the run"
	default:
		out.Done = "as before the run"
	}
	out.MovedTo = done.MovedTo
	return out
}

// keepFromHead takes the copy of a tracked surface from the object store,
// where that holds exactly the content asked for.
func (w *Workspace) keepFromHead(f integrity.File) {
	if w.Repo == nil {
		return
	}
	h, err := headOf(w.Repo)
	if err != nil || h == (git.Hash{}) {
		return
	}
	if t, err := w.Repo.TreeOf(h); err == nil {
		_, _ = w.backup().Keep(t, integrity.NewManifest([]integrity.File{f})) // Restore says when there is none
	}
}

// String is the sentence that tells it.
func (r RestoredPath) String() string {
	s := quote(r.Path) + ": " + r.Done + r.Problem
	if r.MovedTo != "" {
		s += "; what was there is now " + quote(r.MovedTo)
	}
	if r.Command != "" {
		s += fmt.Sprintf("; %s", r.Command)
	}
	return s
}

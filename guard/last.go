package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"agentguard/guard/policy"
	"agentguard/guard/surface"
	"agentguard/integrity"
)

// The state before the last run that left something undecided: what restore
// goes back to, and what approve compares with. It is removed when everything
// is decided, so that no later edit of the user's is taken for a run's.
const (
	lastName  = "last.json"
	lastIndex = "last.index"
)

func (w *Workspace) lastFile() string { return filepath.Join(w.stateDir(), lastName) }

// loadLast returns that state, nil when there is none.
func (w *Workspace) loadLast(p *policy.Policy, m *surface.Matcher) (*start, error) {
	data, err := os.ReadFile(w.lastFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state before the last run: %w", err)
	}
	index, err := os.ReadFile(filepath.Join(w.stateDir(), lastIndex))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the state before the last run: %w", err)
	}
	s, _, err := decodeStart(data, index, m)
	if err != nil {
		return nil, fmt.Errorf("reading the state before the last run: %w", err)
	}
	areas, err := w.areas(p, m)
	if err != nil {
		return nil, err
	}
	for _, a := range s.areas {
		if i := slices.IndexFunc(areas, func(b *area) bool { return b.dir == a.dir }); i >= 0 {
			a.matcher = areas[i].matcher
		}
		a.files = rejudge(a.files, a.matcher)
	}
	return s, nil
}

// rejudge gives the lines of a manifest's text the protections that they have
// today; what no pattern names keeps the strictest.
func rejudge(files *integrity.Manifest, m *surface.Matcher) *integrity.Manifest {
	list := slices.Clone(files.Files())
	for i, f := range list {
		if hit, ok := m.Match(f.Path, typeOf(f.Mode)); ok {
			list[i].Protection, list[i].Trigger = hit.Protection, hit.Entry.Trigger
		}
	}
	return integrity.NewManifest(list)
}

// undecidedOf leaves of what a run left those findings that somebody has to
// decide about.
func (w *Workspace) undecidedOf(after *afterwards) ([]finding, error) {
	var out []finding
	for _, f := range after.findings {
		if f.What == integrity.DataChanged || f.Protection == surface.Note {
			continue
		}
		ok, err := w.approvals().Approved(repoName(w.ID), approvable(f))
		if err != nil {
			return nil, fmt.Errorf("reading the approvals: %w", err)
		}
		if !ok {
			out = append(out, f)
		}
	}
	return out, nil
}

// sinceLast is the undecided findings since the state before the last run.
func (w *Workspace) sinceLast(p *policy.Policy, m *surface.Matcher) (*start, []finding, error) {
	s, err := w.loadLast(p, m)
	if s == nil || err != nil {
		return nil, nil, err
	}
	after, err := w.compare(s)
	if err != nil {
		return nil, nil, err
	}
	list, err := w.undecidedOf(after)
	return s, list, err
}

// dropLast forgets the state when everything since is decided.
func (w *Workspace) dropLast(p *policy.Policy, m *surface.Matcher) error {
	s, list, err := w.sinceLast(p, m)
	if s == nil || err != nil || len(list) > 0 {
		return err
	}
	err = os.Remove(w.lastFile())
	if e := os.Remove(filepath.Join(w.stateDir(), lastIndex)); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}

// withUndecided returns s with those files as they were before an earlier run
// that nobody has decided about since, so that a second run does not make what
// the first one left the state to go back to. What an earlier run left in the
// index and in refs is not carried on: check and verify judge those.
func (w *Workspace) withUndecided(s *start) (*start, error) {
	data, err := os.ReadFile(w.lastFile())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state before the last run: %w", err)
	}
	earlier, _, err := decodeStart(data, nil, nil)
	if err != nil {
		return s, nil // nothing can be restored from it any more
	}
	out := &start{index: s.index, refs: s.refs}
	for _, a := range s.areas {
		b := *a
		if i := slices.IndexFunc(earlier.areas, func(e *area) bool { return e.dir == a.dir }); i >= 0 {
			if b.files, err = w.carried(earlier.areas[i].files, a); err != nil {
				return nil, err
			}
		}
		out.areas = append(out.areas, &b)
	}
	return out, nil
}

// carried is the manifest of a with the earlier lines of what is undecided.
func (w *Workspace) carried(earlier *integrity.Manifest, a *area) (*integrity.Manifest, error) {
	lines := slices.Clone(a.files.Files())
	for _, c := range integrity.Diff(rejudge(earlier, a.matcher), a.files) {
		f := finding{Finding: integrity.Finding{Change: c}, Shown: w.shown(a.path(c.Path)), area: a}
		left, err := w.undecidedOf(&afterwards{findings: []finding{f}})
		if err != nil {
			return nil, err
		}
		if len(left) > 0 {
			lines = append(lines, c.Old)
		}
	}
	return integrity.NewManifest(lines), nil
}

// named turns a path as a person types it in g.Dir into one as it is told.
func (g *Guard) named(w *Workspace, arg string) string {
	if !filepath.IsAbs(arg) {
		arg = filepath.Join(g.Dir, arg)
	}
	return w.shown(filepath.Clean(arg))
}

// selected says whether a told path is one that was asked for, or lies below.
func selected(path string, args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return within(path, a) })
}

// PathError says that a path that was named is none to do this with.
type PathError struct {
	Path string
	Why  string
}

func (e *PathError) Error() string { return quote(e.Path) + ": " + e.Why }

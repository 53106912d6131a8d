package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"agentguard/guard/git"
	"agentguard/guard/surface"
	"agentguard/integrity"
)

// CheckResult is what is staged and not approved.
type CheckResult struct {
	Findings []Unapproved `json:"findings"`
	First    bool         `json:"first_commit,omitempty"` // there is no commit to compare with
}

// Check judges what a commit would record: the index against HEAD. A surface
// that executes something else than HEAD's is a finding until it is approved.
// The work tree is not looked at.
//
// Before the first commit everything is new, so every surface is a finding
// that has to be approved once; nothing is waved through for being first.
func (g *Guard) Check() (CheckResult, error) {
	w, m, err := g.openJudge()
	if err != nil {
		return CheckResult{}, err
	}
	s, err := g.staged(w, m)
	if err != nil {
		return CheckResult{}, err
	}
	out := CheckResult{First: s.first}
	for _, c := range s.comparisons {
		changes, err := w.undecided(c)
		if err != nil {
			return out, err
		}
		for _, d := range changes {
			f, err := c.finding(d)
			if err != nil {
				return out, err
			}
			if !slices.ContainsFunc(out.Findings, func(o Unapproved) bool { return o.Path == f.Path && slices.Equal(o.Executes, f.Executes) }) {
				out.Findings = append(out.Findings, f)
			}
		}
	}
	return out, nil
}

// openJudge is the beginning of every command that judges a repository: owed
// checks first, then the policy and what it makes of the catalogue.
func (g *Guard) openJudge() (*Workspace, *surface.Matcher, error) {
	w, err := g.Open()
	if err != nil {
		return nil, nil, err
	}
	if err := w.needRepo(); err != nil {
		return nil, nil, err
	}
	if err := g.settle(w); err != nil {
		return nil, nil, err
	}
	_, m, err := g.judgeBy(w)
	return w, m, err
}

// stagedChanges is what commits would record, compared with HEAD. It is more
// than one comparison only when a commit is made from an index elsewhere.
type stagedChanges struct {
	comparisons []*comparison
	first       bool
}

func (g *Guard) staged(w *Workspace, m *surface.Matcher) (*stagedChanges, error) {
	head, err := headOf(w.Repo)
	if err != nil {
		return nil, err
	}
	old, err := w.Repo.TreeOf(head)
	if err != nil {
		return nil, fmt.Errorf("reading HEAD: %w", err)
	}
	indexes, err := g.indexes(w.Repo)
	if err != nil {
		return nil, err
	}
	out := &stagedChanges{first: head.IsZero()}
	for _, x := range indexes {
		c := &comparison{old: old, now: x.Tree(w.Repo), matcher: m, paths: map[string]bool{}}
		err := w.Repo.DiffIndex(head, x, func(d git.TreeChange) error { c.add(d); return nil })
		if err != nil {
			return nil, fmt.Errorf("comparing the index with HEAD: %w", err)
		}
		for i := range x.Entries {
			if e := &x.Entries[i]; e.Mode == 0o120000 { // what it names may have changed
				c.add(git.TreeChange{Path: e.Path, NewMode: e.Mode})
			}
		}
		out.comparisons = append(out.comparisons, c)
	}
	return out, nil
}

// indexes returns what a commit may be made from. Git hands the one of `commit
// -a` and `commit PATH` to its hooks by GIT_INDEX_FILE; one that does not lie
// in the git directory is judged besides the repository's own, not instead.
func (g *Guard) indexes(r *git.Repo) ([]*git.Index, error) {
	var out []*git.Index
	name := g.Env["GIT_INDEX_FILE"]
	own := name == ""
	if !own {
		if !filepath.IsAbs(name) {
			name = filepath.Join(g.Dir, name)
		}
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			data, err = nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the index %q: %w", name, err)
		}
		x, err := parseIndex(data, r)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
		dir, err := filepath.EvalSymlinks(filepath.Dir(name))
		own = err != nil || dir != r.GitDir
	}
	if own {
		x, err := r.Index()
		if err != nil {
			return nil, fmt.Errorf("reading the index: %w", err)
		}
		out = append(out, x)
	}
	return out, nil
}

// headOf returns the commit of HEAD, the zero hash before the first one.
func headOf(r *git.Repo) (git.Hash, error) {
	h, err := r.Resolve("HEAD")
	if err == nil {
		return h, nil
	}
	refs, refsErr := r.Refs()
	if refsErr != nil {
		return git.Hash{}, errors.Join(err, refsErr)
	}
	for _, ref := range refs {
		if ref.Name == "HEAD" && ref.Problem == "" && ref.Hash.IsZero() {
			return git.Hash{}, nil // unborn
		}
	}
	return git.Hash{}, err
}

// undecided returns the changes of c that were not approved.
func (w *Workspace) undecided(c *comparison) ([]integrity.Change, error) {
	changes, err := c.changes()
	if err != nil {
		return nil, err
	}
	var out []integrity.Change
	for _, d := range changes {
		f := d.New
		f.Protection = surface.Review // the executable part decides, as in a run's report
		ok, err := w.approvals().Approved(repoName(w.ID), f)
		if err != nil {
			return nil, fmt.Errorf("reading the approvals: %w", err)
		}
		if !ok || d.Entry == unsafeEntry("").ID {
			out = append(out, d)
		}
	}
	return out, nil
}

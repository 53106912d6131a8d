package guard

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"agentguard/guard/surface"
	"agentguard/integrity"
)

// Proposal is one state of one surface that an approval would accept.
type Proposal struct {
	Unapproved
	Places []string `json:"places"`

	file integrity.File
}

// Proposals is what approve would record, before the user said yes.
type Proposals struct {
	List []Proposal
	w    *Workspace
}

// Propose finds every state of the paths named, or of all, that is undecided:
// what is staged, what the last run left on disk, in the index and in refs,
// and, for a surface that is named, what the work tree holds and HEAD does not.
//
// An approval is of a state (kind, mode, hashes) under a path, so one covers
// it in whatever place it is.
func (g *Guard) Propose(args []string, all bool) (*Proposals, error) {
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
	out := &Proposals{w: w}
	_, list, err := w.sinceLast(p, m)
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		if err := out.addFinding(f); err != nil {
			return nil, err
		}
	}
	if w.Repo != nil {
		if err := g.proposeStaged(out, m); err != nil {
			return nil, err
		}
	}
	if !all {
		if err := g.proposeNamed(out, m, args); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out.List, func(a, b Proposal) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// add takes a state once, with all the places it is in.
func (p *Proposals) add(n Proposal) {
	for i := range p.List {
		o := &p.List[i]
		f, g := o.file, n.file
		if f.Path == g.Path && f.Kind == g.Kind && f.Mode == g.Mode && f.Whole == g.Whole && f.Part == g.Part {
			for _, place := range n.Places {
				if !slices.Contains(o.Places, place) {
					o.Places = append(o.Places, place)
				}
			}
			return
		}
	}
	p.List = append(p.List, n)
}

// addFinding takes in what a run left.
func (p *Proposals) addFinding(f finding) error {
	t, err := p.w.treeOf(f.area, f.Places[0])
	if err != nil {
		return err
	}
	now, err := versionIn(t, f.New)
	if err != nil {
		return err
	}
	p.add(Proposal{
		Unapproved: Unapproved{Path: f.Shown, What: string(f.What), Entry: f.Entry, Trigger: f.Trigger,
			Protection: f.Protection.String(), Executes: effect(p.w.kept(f.Old), now)},
		Places: f.Places, file: approvable(f),
	})
	return nil
}

// treeOf returns the tree of a place.
func (w *Workspace) treeOf(a *area, place string) (surface.Tree, error) {
	switch place {
	case integrity.PlaceWorkTree:
		t, err := surface.WorkTree(a.dir)
		if err == nil && a.prefix != "" {
			t = surface.Prefix(t, a.prefix)
		}
		return t, err
	case integrity.PlaceIndex:
		x, err := w.Repo.Index()
		if err != nil {
			return nil, err
		}
		return x.Tree(w.Repo), nil
	}
	refs, err := w.Repo.Refs()
	if err != nil {
		return nil, fmt.Errorf("reading the refs: %w", err)
	}
	for _, r := range refs {
		if r.Name == place {
			return w.Repo.TreeOf(r.Hash)
		}
	}
	return nil, fmt.Errorf("%s is gone", place)
}

// proposeStaged takes in what check would tell.
func (g *Guard) proposeStaged(out *Proposals, m *surface.Matcher) error {
	s, err := g.staged(out.w, m)
	if err != nil {
		return err
	}
	for _, c := range s.comparisons {
		changes, err := out.w.undecided(c)
		if err != nil {
			return err
		}
		if err := out.addChanges(c, changes, integrity.PlaceIndex); err != nil {
			return err
		}
	}
	return nil
}

func (p *Proposals) addChanges(c *comparison, changes []integrity.Change, place string) error {
	for _, d := range changes {
		if d.Entry == unsafeEntry("").ID {
			continue // no yes makes that path one
		}
		u, err := c.finding(d)
		if err != nil {
			return err
		}
		f := d.New
		f.Protection = d.Protection
		p.add(Proposal{Unapproved: u, Places: []string{place}, file: f})
	}
	return nil
}

// proposeNamed narrows the list to args, and adds what the work tree holds
// under them where nothing else is undecided. An argument that is neither is a
// mistake.
func (g *Guard) proposeNamed(out *Proposals, m *surface.Matcher, args []string) error {
	names := make([]string, len(args))
	for i, a := range args {
		names[i] = g.named(out.w, a)
		if slices.ContainsFunc(out.List, func(p Proposal) bool { return within(p.Path, names[i]) }) {
			continue
		}
		known, err := g.proposeWorkTree(out, m, names[i])
		if err != nil {
			return err
		}
		if !known {
			return &PathError{a, "there is no surface there, and nothing undecided"}
		}
	}
	out.List = slices.DeleteFunc(out.List, func(p Proposal) bool { return !selected(p.Path, names) })
	return nil
}

// proposeWorkTree compares the surfaces on disk at a path, or below it, with
// HEAD's. It says whether there are any on either side.
func (g *Guard) proposeWorkTree(out *Proposals, m *surface.Matcher, path string) (known bool, err error) {
	if filepath.IsAbs(path) || within(path, ".git") || out.w.Repo == nil {
		return false, nil
	}
	head, err := headOf(out.w.Repo)
	if err != nil {
		return false, err
	}
	c := &comparison{matcher: m, paths: map[string]bool{}}
	if c.old, err = out.w.Repo.TreeOf(head); err != nil {
		return false, err
	}
	if c.now, err = surface.WorkTree(out.w.Root); err != nil {
		return false, err
	}
	for _, t := range []surface.Tree{c.old, c.now} {
		set, err := surface.Resolve(t, m)
		if err != nil {
			return false, err
		}
		for _, mem := range set.Members {
			if within(mem.Path, path) && !within(mem.Path, ".git") {
				c.paths[mem.Path] = true
			}
		}
	}
	changes, err := out.w.undecided(c)
	if err != nil {
		return false, err
	}
	return len(c.paths) > 0, out.addChanges(c, changes, integrity.PlaceWorkTree)
}

// Approve records the proposals, in the user's state and, where the repository
// keeps a manifest, in that. It returns what it did besides, one sentence each.
func (g *Guard) Approve(p *Proposals) ([]string, error) {
	w := p.w
	if err := w.stateDirs(); err != nil {
		return nil, err
	}
	for _, prop := range p.List {
		if err := w.approvals().Approve(repoName(w.ID), prop.file, g.Now()); err != nil {
			return nil, err
		}
	}
	var did []string
	if w.Repo != nil {
		updated, err := g.approveInManifest(w, p.List)
		if err != nil {
			return nil, err
		}
		if updated {
			did = append(did, "updated "+integrity.FileName+": commit it with the change")
		}
	}
	pol, m, err := g.judgeBy(w)
	if err != nil {
		return did, err
	}
	return did, w.dropLast(pol, m)
}

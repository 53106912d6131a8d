package guard

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentguard/guard/git"
	"agentguard/guard/policy"
	"agentguard/guard/surface"
	"agentguard/integrity"
)

// maxCommits bounds how many commits of a range are judged one by one.
const maxCommits = 2000

// VerifyOptions names what is verified, and against what.
type VerifyOptions struct {
	Base string // the anchor: as the forge reports it, not what a branch says of itself
	Head string // "" is HEAD
}

// VerifyResult is what a merge of head would bring that base does not accept.
type VerifyResult struct {
	Base     string       `json:"base"`
	Head     string       `json:"head"`
	Findings []Unapproved `json:"findings"`
	Commits  int          `json:"commits"`              // judged one by one
	Notes    []string     `json:"not_judged,omitempty"` // what was left out, one sentence each
}

// RangeError says that what should be compared is not there.
type RangeError struct {
	Rev string
	Err error
}

func (e *RangeError) Error() string { return fmt.Sprintf("%s: %v", e.Rev, e.Err) }

// Unwrap returns the cause.
func (e *RangeError) Unwrap() error { return e.Err }

// Verify judges two trees from the object store. Nothing is checked out, no
// git runs, and of what decides only base's counts: a surface of head is fine
// when it executes what base's does, or what a line of base's manifest says.
func (g *Guard) Verify(o VerifyOptions) (*VerifyResult, error) {
	r, err := openObjects(g.Dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v := &verifier{repo: r, out: &VerifyResult{Findings: []Unapproved{}}, found: map[state]int{}}
	if v.base, err = commitOf(r, o.Base); err != nil {
		return nil, err
	}
	if v.head, err = commitOf(r, cmp.Or(o.Head, "HEAD")); err != nil {
		return nil, err
	}
	v.out.Base, v.out.Head = v.base.String(), v.head.String()
	if err := v.anchor(); err != nil {
		return nil, err
	}
	if err := v.judgeHead(); err != nil {
		return nil, err
	}
	if err := v.judgeCommits(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(v.out.Findings, func(a, b Unapproved) int { return cmp.Compare(a.Path, b.Path) })
	return v.out, nil
}

// openObjects opens the repository of a work tree, or a bare one.
func openObjects(dir string) (*git.Repo, error) {
	r, err := git.Open(dir)
	if bare, ok := errors.AsType[*git.BareError](err); ok {
		return git.OpenBare(bare.Dir)
	}
	return r, err
}

func commitOf(r *git.Repo, rev string) (git.Hash, error) {
	h, err := r.Resolve(rev + "^{commit}")
	if e, ok := errors.AsType[*git.RevisionError](err); ok {
		err = errors.New(e.Why)
	}
	if err != nil {
		return h, &RangeError{Rev: rev, Err: err}
	}
	return h, nil
}

// verifier is one comparison.
type verifier struct {
	repo       *git.Repo
	base, head git.Hash
	from       git.Hash // where head left base
	matcher    *surface.Matcher
	baseTree   surface.Tree
	manifest   *integrity.Manifest // base's, nil without one
	out        *VerifyResult
	found      map[state]int // findings told, by what they would bring
}

// state is what is at a path, whoever brought it there.
type state struct {
	path  string
	kind  integrity.Kind
	mode  uint32
	whole integrity.Sum
}

func stateOf(f integrity.File) state { return state{f.Path, f.Kind, f.Mode, f.Whole} }

// anchor reads what base says: its policy file and its manifest.
func (v *verifier) anchor() error {
	var err error
	if v.baseTree, err = v.repo.TreeOf(v.base); err != nil {
		return fmt.Errorf("reading the base: %w", err)
	}
	policyFile, err := readFrom(v.baseTree, policy.FileName)
	if err != nil {
		return fmt.Errorf("the base's policy: %w", err)
	}
	if v.matcher, err = anchorMatcher(policyFile); err != nil {
		return err
	}
	sum, err := readFrom(v.baseTree, integrity.FileName)
	if err != nil {
		return fmt.Errorf("the base's manifest: %w", err)
	}
	if sum != nil {
		if v.manifest, err = integrity.Read(bytes.NewReader(sum)); err != nil {
			return &RangeError{Rev: "the base's " + integrity.FileName, Err: err}
		}
	}
	v.from, err = v.repo.MergeBase(v.base, v.head)
	if _, missing := errors.AsType[*git.MissingError](err); missing || err == nil && v.from.IsZero() {
		v.from = git.Hash{}
		v.out.Notes = append(v.out.Notes, "the history in between is not here: the two trees were compared with each other, and no commit by itself (fetch with more depth for that)")
		return nil
	}
	return err
}

// judgeHead compares head's tree with what it left, or with base's itself
// where history does not say what that was.
func (v *verifier) judgeHead() error {
	old := v.from
	if old.IsZero() {
		old = v.base
	}
	c, err := v.compare(old, v.head)
	if err != nil {
		return err
	}
	for _, f := range v.manifest.Files() { // a link there may name another file now
		if f.Kind == integrity.Link {
			c.paths[f.Path] = true
		}
	}
	return v.judge(c, "")
}

// compare finds the surfaces in which two trees may differ.
func (v *verifier) compare(old, now git.Hash) (*comparison, error) {
	c := &comparison{matcher: v.matcher, paths: map[string]bool{}}
	if err := v.repo.DiffTrees(old, now, func(d git.TreeChange) error { c.add(d); return nil }); err != nil {
		return nil, fmt.Errorf("comparing %s with %s: %w", short(old), short(now), err)
	}
	if len(c.paths) == 0 && v.manifest == nil {
		return c, nil
	}
	var err error
	if c.old, err = v.repo.TreeOf(old); err == nil {
		c.now, err = v.repo.TreeOf(now)
	}
	return c, err
}

// judge tells those changes that base does not accept; commit is the one that
// holds them, "" for head.
func (v *verifier) judge(c *comparison, commit string) error {
	changes, err := c.changes()
	if err != nil {
		return err
	}
	for _, d := range changes {
		if i, told := v.found[stateOf(d.New)]; told {
			if u := &v.out.Findings[i]; commit != "" && len(u.Commits) > 0 {
				u.Commits = append(u.Commits, commit)
			}
			continue
		}
		fine, err := v.accepts(d)
		if fine || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		u, err := c.finding(d)
		if err != nil {
			return err
		}
		if commit != "" {
			u.Commits = []string{commit}
		}
		v.found[stateOf(d.New)] = len(v.out.Findings)
		v.out.Findings = append(v.out.Findings, u)
	}
	return nil
}

// accepts says whether base holds the new state, or a line for it.
func (v *verifier) accepts(d integrity.Change) (bool, error) {
	if d.Entry == unsafeEntry("").ID {
		return false, nil
	}
	same, err := judged(v.baseTree, v.matcher, map[string]bool{d.Path: true})
	if err != nil {
		return false, err
	}
	at := same.Get(d.Path)
	if d.New.Kind == integrity.Absent {
		return at.Kind == integrity.Absent, nil
	}
	return executesAs(at, d.New) || executesAs(v.manifest.Get(d.Path), d.New), nil
}

// executesAs says whether two states of one path execute the same.
func executesAs(a, b integrity.File) bool {
	return a.Kind != integrity.Absent && a.Kind == b.Kind && a.Mode == b.Mode && a.Part == b.Part
}

// judgeCommits judges what each commit of the range brings, so that what is
// added and taken back is told: it runs in a bisect, and stays in history.
func (v *verifier) judgeCommits() error {
	if v.from.IsZero() {
		return nil
	}
	list, err := v.repo.Commits(v.base, v.head, maxCommits)
	if _, ok := errors.AsType[*git.UnsupportedError](err); ok {
		v.out.Notes = append(v.out.Notes, fmt.Sprintf("only the head was judged, and no commit by itself: %v", err))
		return nil
	}
	if err != nil {
		return err
	}
	for _, h := range list {
		if err := v.judgeCommit(h); err != nil {
			return err
		}
	}
	v.out.Commits = len(list)
	return nil
}

// judgeCommit judges what is in a commit and in none of its parents.
func (v *verifier) judgeCommit(h git.Hash) error {
	if h == v.head && v.base == v.from && v.onlyCommit(h) {
		return nil // judged already, as head
	}
	parents, err := v.parents(h)
	if err != nil {
		return err
	}
	if len(parents) == 0 {
		parents = []git.Hash{{}}
	}
	c, err := v.compare(parents[0], h)
	if err != nil {
		return v.cutOff(h, err)
	}
	for _, p := range parents[1:] {
		other, err := v.compare(p, h)
		if err != nil {
			return v.cutOff(h, err)
		}
		for path := range c.paths {
			if !other.paths[path] {
				delete(c.paths, path)
			}
		}
	}
	return v.judge(c, short(h))
}

// onlyCommit says whether the range is one commit, which judging head judged.
func (v *verifier) onlyCommit(h git.Hash) bool {
	p, err := v.parents(h)
	return err == nil && len(p) == 1 && p[0] == v.base
}

// cutOff takes a commit whose parent a shallow clone lacks for one that could
// not be judged, and says so.
func (v *verifier) cutOff(h git.Hash, err error) error {
	if _, missing := errors.AsType[*git.MissingError](err); !missing {
		return err
	}
	v.out.Notes = append(v.out.Notes, fmt.Sprintf("commit %s was not judged by itself: %v", short(h), err))
	return nil
}

// parents reads the commits that h names as its parents.
func (v *verifier) parents(h git.Hash) ([]git.Hash, error) {
	t, data, err := v.repo.ReadVerified(h)
	if err != nil {
		return nil, err
	}
	if t != git.Commit {
		return nil, fmt.Errorf("%s is no commit", short(h))
	}
	var out []git.Hash
	header, _, _ := strings.Cut(string(data), "\n\n")
	for line := range strings.SplitSeq(header, "\n") {
		if hex, ok := strings.CutPrefix(line, "parent "); ok {
			p, err := git.ParseHash(hex)
			if err != nil {
				return nil, fmt.Errorf("commit %s: %w", short(h), err)
			}
			out = append(out, p)
		}
	}
	return out, nil
}

func short(h git.Hash) string {
	s := h.String()
	return s[:min(len(s), 12)]
}

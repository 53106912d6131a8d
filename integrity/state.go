package integrity

import (
	"cmp"
	"slices"

	"agentguard/guard/surface"
)

// The names of the two places that are no ref.
const (
	PlaceWorkTree = "work tree"
	PlaceIndex    = "index"
)

// State is the surfaces of a repository in every place from which they can
// come to run: on disk, from the index by a restore, and from a ref by a
// checkout. A nil manifest is a place that was not looked at.
type State struct {
	WorkTree *Manifest
	Index    *Manifest

	// Trees holds the manifest of a ref's commit by the ref's full name; HEAD,
	// another work tree's "worktrees/NAME/HEAD" and refs/stash are refs too.
	// Before a run it may hold only those that turn out to have moved; a ref
	// that is missing there is new, and is judged against HEAD.
	Trees map[string]*Manifest
}

// Finding is one change, told once with all the places that hold it.
type Finding struct {
	Change
	Places []string // PlaceWorkTree, PlaceIndex, then names of refs, sorted
}

// Compare returns what somebody has to decide about: each change of a surface
// that is not [Change.Harmless], in whatever place it appears, sorted by path.
// A change that no file on disk shows counts like one on disk: the user's next
// restore or checkout would write it.
//
// What is only noted (protection note) is in it; the caller tells and goes on.
func Compare(before, after State) []Finding {
	var out []Finding
	at := map[key]int{}
	add := func(place string, old, new *Manifest) {
		for _, c := range Diff(old, new) {
			if c.Harmless() {
				continue
			}
			k := keyOf(c)
			i, ok := at[k]
			if !ok {
				i = len(out)
				at[k] = i
				out = append(out, Finding{Change: c})
			}
			out[i].Places = append(out[i].Places, place)
			out[i].Protection = min(out[i].Protection, c.Protection)
		}
	}
	if after.WorkTree != nil {
		add(PlaceWorkTree, before.WorkTree, after.WorkTree)
	}
	if after.Index != nil {
		add(PlaceIndex, before.Index, after.Index)
	}
	for _, ref := range sortedRefs(after.Trees) {
		add(ref, before.base(ref), after.Trees[ref])
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// base returns what a ref's tree is judged against. A new branch without
// anything to compare to is compared to nothing, so that everything in it is
// told: silence would be the wrong guess.
func (s State) base(ref string) *Manifest {
	for _, m := range []*Manifest{s.Trees[ref], s.Trees["HEAD"], s.Index} {
		if m != nil {
			return m
		}
	}
	return s.WorkTree
}

func sortedRefs(trees map[string]*Manifest) []string {
	refs := make([]string, 0, len(trees))
	for ref := range trees {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	return refs
}

// key is what makes changes of several places one finding. What the place held
// before is left out: the same new content is the same decision.
type key struct {
	path  string
	what  What
	kind  Kind
	mode  uint32
	whole Sum
}

func keyOf(c Change) key { return key{c.Path, c.What, c.New.Kind, c.New.Mode, c.New.Whole} }

// Stale is a frozen file that git wanted to replace, create or remove and could
// not: the index moved and the work tree did not.
type Stale struct {
	Path            string
	Entry           string
	WorkTree, Index File // Kind is Absent where there is none
}

// StaleFiles returns the frozen surfaces whose work-tree file is as before but
// no longer what the index says, because the index moved during the run.
func StaleFiles(before, after State) []Stale {
	var out []Stale
	for _, c := range Diff(before.Index, after.Index) {
		if c.Protection != surface.Freeze || before.WorkTree == nil || after.WorkTree == nil {
			continue
		}
		was, is := before.WorkTree.Get(c.Path), after.WorkTree.Get(c.Path)
		if was.same(is) && !is.same(c.New) {
			out = append(out, Stale{Path: c.Path, Entry: c.Entry, WorkTree: is, Index: c.New})
		}
	}
	return out
}

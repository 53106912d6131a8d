package surface

// Match returns the strictest hit of path, which is relative to the
// workspace and slash-separated. Of equally strict ones it is the first in
// the order of the entries. A path under a name that a longer path would be
// matched under is a hit too when it is a link, a submodule or of unknown
// type, because it could bring the longer name into being; a directory is
// one when everything below it is.
//
// Below the trees of [GeneratedTrees] a hit of an entry that applies at any
// depth is only noted; one that is tied to the root, or that Rules.Protect
// makes, keeps its protection.
func (m *Matcher) Match(path string, typ Type) (Hit, bool) {
	if !m.ready {
		return unready(), true
	}
	var bytes [nameBytes]byte
	var ends [nameParts]uint16
	p, ok := splitName(path, bytes[:0], ends[:0])
	if !ok {
		return tooLong(), true
	}
	return m.hit(p, typ)
}

func unready() Hit {
	return Hit{Entry: &Entry{ID: "none", Title: "no catalogue is loaded", Fixed: true}, Rule: "a matcher that was never made freezes everything"}
}

func tooLong() Hit {
	return Hit{Entry: &Entry{ID: "none", Title: "a path too long to be judged", Fixed: true}, Rule: "longer than any path"}
}

// best is the strictest rule seen so far.
type best struct {
	rule *rule
	prot Protection
}

func (m *Matcher) hit(p name, typ Type) (Hit, bool) {
	n := p.len()
	if n == 0 {
		return Hit{}, false
	}
	if typ > Gitlink {
		typ = Other
	}
	s := search{m: m, p: p, typ: typ}
	s.look(m.base.lists(p.part(n-1)), n-1)
	for i := range n {
		s.look(m.path.lists(p.part(i)), i)
	}
	if m.all != nil {
		s.offer(m.all, 0)
	}
	if s.rule == nil {
		return Hit{}, false
	}
	h := Hit{Entry: s.rule.entry, Protection: s.prot, Rule: s.rule.text}
	return h, true
}

// search is one look for the strictest rule.
type search struct {
	m       *Matcher
	p       name
	typ     Type
	placed  bool // whether tree and git are known
	tree    int  // the component that is a generated tree, or the length
	git     int  // the component that is .git, or the length
	checked bool // whether lowered is known
	lowered bool
	best
}

func (s *search) look(lists [4]*rule, at int) {
	for _, r := range &lists {
		for ; r != nil; r = r.next {
			start := at - int(r.anchor)
			if start < 0 || r.rooted && start > 0 || r.types&(1<<s.typ) == 0 {
				continue
			}
			if matchParts(r.parts, s.p, start) {
				s.offer(r, start)
			}
		}
	}
}

// firstGit returns the first component of p that is .git, or the length.
func firstGit(p name) int {
	for i := range p.len() {
		if b := p.part(i); len(b) == 4 && string(b) == ".git" {
			return i
		}
	}
	return p.len()
}

// offer takes the rule, matched from component start on, if it is stricter.
func (s *search) offer(r *rule, start int) {
	if !s.placed {
		s.placed, s.tree, s.git = true, s.m.trees.first(s.p, s.typ), firstGit(s.p)
	}
	if !r.inGit && s.git < start {
		return
	}
	prot := r.protection
	if !r.rooted && !r.policy && s.tree <= start {
		prot = Note
	}
	if prot == Freeze && !r.policy && !r.entry.Fixed && s.unprotected() {
		prot = Review
	}
	if s.rule == nil || prot < s.prot || prot == s.prot && r.order < s.rule.order {
		s.rule, s.prot = r, prot
	}
}

func (s *search) unprotected() bool {
	if !s.checked {
		s.checked = true
		for i := range s.m.unprotect {
			if s.m.unprotect[i].fits(s.p, s.typ) {
				s.lowered = true
				break
			}
		}
	}
	return s.lowered
}

// fits matches a rule that is in no index.
func (r *rule) fits(p name, typ Type) bool {
	if r.types&(1<<typ) == 0 {
		return false
	}
	if r.rooted {
		return matchParts(r.parts, p, 0)
	}
	for i := range p.len() {
		if matchParts(r.parts, p, i) {
			return true
		}
	}
	return false
}

// WholeDir tells whether everything that is or could come below dir is
// frozen, so that the directory can be protected instead of each file. It
// would rather say no: with an unprotect glob that might reach below, it
// does.
func (m *Matcher) WholeDir(dir string) (Hit, bool) {
	if !m.ready {
		return unready(), true
	}
	var bytes [nameBytes]byte
	var ends [nameParts]uint16
	p, ok := splitName(dir, bytes[:0], ends[:0])
	if !ok || p.len() == 0 {
		return Hit{}, false
	}
	if m.all != nil {
		return Hit{m.all.entry, Freeze, m.all.text}, true
	}
	for n := 1; n <= p.len(); n++ {
		if r := m.wholeRule(p.head(n), p); r != nil {
			return Hit{r.entry, Freeze, r.text}, true
		}
	}
	return Hit{}, false
}

// wholeRule returns a rule that freezes all below top, and so below dir.
func (m *Matcher) wholeRule(top, dir name) *rule {
	tree := m.trees.first(top, Dir)
	for i := range top.len() {
		lists := m.path.lists(top.part(i))
		if i == top.len()-1 {
			if r := m.pickWhole(m.base.lists(top.part(i)), top, dir, i, tree); r != nil {
				return r
			}
		}
		if r := m.pickWhole(lists, top, dir, i, tree); r != nil {
			return r
		}
	}
	return nil
}

func (m *Matcher) pickWhole(lists [4]*rule, top, dir name, at, tree int) *rule {
	for _, r := range &lists {
		for ; r != nil; r = r.next {
			start := at - int(r.anchor)
			if !r.whole || r.protection != Freeze || start < 0 || r.rooted && start > 0 {
				continue
			}
			if !r.rooted && !r.policy && tree <= start || !matchParts(r.parts, top, start) {
				continue
			}
			if r.policy || r.entry.Fixed || !m.mayUnprotectBelow(dir) {
				return r
			}
		}
	}
	return nil
}

func (m *Matcher) mayUnprotectBelow(dir name) bool {
	for i := range m.unprotect {
		r := &m.unprotect[i]
		if !r.rooted || canReach(r.parts, dir, 0) {
			return true
		}
	}
	return false
}

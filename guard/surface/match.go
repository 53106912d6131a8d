package surface

import (
	"fmt"
	"strconv"
	"strings"
)

// Rules is what a policy changes about the catalogue.
type Rules struct {
	Profile   Profile
	Protect   []string // globs frozen in addition; they cover what is below a directory they match
	Unprotect []string // globs whose frozen paths are lowered to review; never Fixed entries, never a path that Protect names
}

// Hit says why a path is a surface.
type Hit struct {
	Entry      *Entry // never nil in a hit, and not to be changed; for a policy's glob one with the id "protect"
	Protection Protection
	Rule       string // the pattern that decided, e.g. ".husky/**", or "protect: data/**"
}

// GlobError says which glob cannot be used, and why.
type GlobError struct {
	Glob string
	Why  string
}

func (e *GlobError) Error() string { return "glob " + strconv.Quote(e.Glob) + " " + e.Why }

// ProtectID is the id of the entry that a hit of [Rules.Protect] carries.
const ProtectID = "protect"

// Matcher tells surfaces from other paths. It is immutable and safe for use
// by several goroutines. The zero Matcher freezes everything.
type Matcher struct {
	ready          bool
	base           index // rules of one component, by the last component of a path
	path           index // rules of several, by one of their components
	all            *rule // a protect glob that matches every path
	keepGit        bool  // a protect glob names .git, so nothing is pruned
	trees          treeSet
	bare           *Entry // for bare repositories under any name; nil without that entry
	bareProtection Protection
	unprotect      []rule
}

// rule is a compiled pattern. There are thousands; it is laid out to be small.
type rule struct {
	entry      *Entry
	next       *rule // in the same list of an index
	text       string
	parts      []segment
	order      int32 // of two equally strict hits the lower one is told
	anchor     int16 // the component of parts it is indexed by
	protection Protection
	types      typeSet
	rooted     bool
	whole      bool // parts fit a directory below which everything is a hit
	policy     bool // from Rules.Protect: nothing lowers it
	inGit      bool // applies below a .git too
}

// typeSet is the types a rule applies to, a bit each.
type typeSet uint8

const (
	anyType typeSet = 1<<Other | 1<<Regular | 1<<Dir | 1<<Symlink | 1<<Gitlink
	// carriers bring along what is below them under the name they have: a
	// link .vscode gives its target the name that .vscode/tasks.json guards.
	carriers typeSet = 1<<Other | 1<<Symlink | 1<<Gitlink
)

// NewMatcher compiles entries under rules. The error is a [*GlobError] for a
// glob of the rules.
func NewMatcher(entries []Entry, rules Rules) (*Matcher, error) {
	own := make([]Entry, len(entries), len(entries)+1)
	copy(own, entries)
	c := newCompiler(own, rules.Profile)
	for i := range own {
		if err := c.addEntry(&own[i]); err != nil {
			return nil, err
		}
	}
	m := &Matcher{ready: true, trees: newTreeSet()}
	for i := range own {
		if own[i].ID == bareRepoID {
			m.bare, m.bareProtection = &own[i], own[i].Protection(rules.Profile)
		}
	}
	if len(rules.Protect) > 0 {
		e := protectEntry()
		for _, text := range rules.Protect {
			g, err := parseUserGlob(text)
			if err != nil {
				return nil, fmt.Errorf("protect: %w", err)
			}
			c.addProtect(&e, text, g)
			m.keepGit = m.keepGit || g.namesGit()
		}
	}
	for _, text := range rules.Unprotect {
		low, err := unprotectRules(text)
		if err != nil {
			return nil, err
		}
		m.unprotect = append(m.unprotect, low...)
	}
	m.base, m.path = newIndex(len(own)*4), newIndex(len(own))
	for i := range c.rules {
		m.add(&c.rules[i])
	}
	return m, nil
}

func protectEntry() Entry {
	return Entry{
		ID:      ProtectID,
		Title:   "a path the policy protects",
		Trigger: "as the policy's author knows",
		Why:     "sandbox.protect names it",
		Source:  "the policy",
	}
}

func (m *Matcher) add(r *rule) {
	switch {
	case len(r.parts) == 0 || len(r.parts) == 1 && r.parts[0].double:
		m.all = r
	case len(r.parts) == 1:
		m.base.add(r)
	default:
		m.path.add(r)
	}
}

// gitEcosystem marks the entries that apply inside a git directory. The others
// do not: a branch may be called Makefile.
const gitEcosystem = "git"

// compiler collects rules from entries and globs.
type compiler struct {
	profile Profile
	rules   []rule
	ids     map[string]bool
	parser  globParser
}

// newCompiler makes room at once for what the entries need.
func newCompiler(entries []Entry, p Profile) compiler {
	parts, tokens := 0, 0
	for i := range entries {
		for _, p := range entries[i].Patterns {
			parts += 1 + strings.Count(p.Glob, "/")
			if strings.IndexByte(p.Glob, '*') >= 0 {
				tokens += len(p.Glob)
			}
		}
	}
	return compiler{
		profile: p,
		ids:     make(map[string]bool, len(entries)),
		rules:   make([]rule, 0, parts),
		parser:  globParser{segments: make([]segment, 0, parts), tokens: make([]token, 0, tokens)},
	}
}

func (c *compiler) addEntry(e *Entry) error {
	if e.ID == "" || c.ids[e.ID] {
		return fmt.Errorf("entry %q: no id of its own", e.ID)
	}
	c.ids[e.ID] = true
	for _, p := range e.Patterns {
		g, why := c.parser.parse(p.Glob)
		if why != "" {
			return fmt.Errorf("entry %s: %w", e.ID, &GlobError{p.Glob, why})
		}
		r := rule{entry: e, text: p.Glob, protection: e.Protection(c.profile)}
		r.rooted = !p.Anywhere
		r.inGit = e.Ecosystem == gitEcosystem
		switch last := g.parts[len(g.parts)-1]; {
		case e.LinksOnly:
			r.types = 1<<Symlink | 1<<Other
		case g.dirOnly:
			r.types = carriers | 1<<Dir
		case last.double:
			r.types = anyType
		default:
			// A directory of that name runs nothing, and names like build,
			// missing and targets are a matter of course for one.
			r.types = anyType &^ (1 << Dir)
		}
		c.addGlob(r, g)
	}
	return nil
}

func (c *compiler) addProtect(e *Entry, text string, g glob) {
	r := rule{entry: e, text: "protect: " + text, rooted: g.rooted, types: anyType, policy: true, inGit: true}
	if g.dirOnly {
		r.types = carriers | 1<<Dir
	}
	c.addGlob(r, g)
	if last := len(g.parts) - 1; !g.parts[last].double {
		g.parts = append(g.parts[:last+1:last+1], segment{double: true})
		r.types = anyType
		c.addGlob(r, g)
	}
}

// namesGit tells whether the glob may be meant for git's own files.
func (g glob) namesGit() bool {
	for i := range g.parts {
		s := &g.parts[i]
		if !s.double && len(g.parts) > 1 && s.match([]byte(".git")) || s.literal == ".git" {
			return true
		}
	}
	return false
}

// derived is added to the order of rules that follow from others, so that the
// entry that names a path outright is the one told.
const derived = 1 << 20

// addGlob adds the rule and those that follow from it: the directory that a
// glob ending in ** covers, and the links that could carry its names.
func (c *compiler) addGlob(r rule, g glob) {
	r.order = int32(len(c.rules))
	c.rules = append(c.rules, r.with(g.parts))
	for n := 1; n < len(g.parts) && !g.parts[n-1].double; n++ {
		up := r
		up.order += derived
		up.types = carriers
		if n == len(g.parts)-1 && g.parts[n].double && !r.entry.LinksOnly {
			up.types, up.whole = carriers|1<<Dir, true
		}
		c.rules = append(c.rules, up.with(g.parts[:n]))
	}
}

// with returns r for parts, anchored at the last literal before a **: the
// more special a component, the fewer paths have it.
func (r rule) with(parts []segment) rule {
	r.parts, r.anchor = parts, -1
	for i := range parts {
		if parts[i].double {
			break
		}
		if r.anchor < 0 || parts[i].tokens == nil {
			r.anchor = int16(i)
		}
	}
	return r
}

func unprotectRules(text string) ([]rule, error) {
	g, err := parseUserGlob(text)
	if err != nil {
		return nil, fmt.Errorf("unprotect: %w", err)
	}
	r := rule{parts: g.parts, rooted: g.rooted, types: anyType}
	if g.dirOnly {
		r.types = 1 << Dir
	}
	below := r
	below.types = anyType
	below.parts = append(g.parts[:len(g.parts):len(g.parts)], segment{double: true})
	return []rule{r, below}, nil
}

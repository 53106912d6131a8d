package surface

// Rules is what a policy changes about the catalogue.
type Rules struct {
	Profile   Profile
	Protect   []string // globs frozen in addition; they cover what is below a directory they match
	Unprotect []string // globs whose frozen paths are lowered to review; never Fixed entries, never git's internals, never a protected path
}

// Hit says why a path is a surface.
type Hit struct {
	Entry      *Entry // never nil; for a policy's glob an entry with the id "protect"
	Protection Protection
	Rule       string // the pattern that decided, e.g. "husky-hooks: .husky/**" or "protect: data/**"
}

// GlobError says which glob of a policy cannot be used, and why.
type GlobError struct {
	Glob string
	Why  string
}

func (e *GlobError) Error() string { return "glob " + quote(e.Glob) + ": " + e.Why }

// Matcher tells surfaces from other paths. It is immutable and safe for use
// by several goroutines.
type Matcher struct{}

// NewMatcher compiles entries under rules.
func NewMatcher(entries []Entry, rules Rules) (*Matcher, error) { return &Matcher{}, nil }

// Match returns the strictest hit of path, which is relative to the
// workspace and slash-separated.
func (m *Matcher) Match(path string, typ Type) (Hit, bool) { return Hit{}, true }

// WholeDir tells whether everything that is or could come below dir is
// frozen, so that the directory can be protected instead of each file.
func (m *Matcher) WholeDir(dir string) (Hit, bool) { return Hit{}, false }

// Prune tells whether no surface can be below dir, so that a walk may leave
// it out.
func (m *Matcher) Prune(dir string) bool { return false }

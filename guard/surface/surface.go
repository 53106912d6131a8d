// Package surface holds the catalogue of files through which a repository
// makes somebody else's tool run code, the matcher that tells whether a path
// is one of them, and the seam ([Tree]) through which a work tree, a commit
// and the index are judged by the same code.
//
// A surface is named by its path: [Matcher.Match] compares names the way the
// laxest file system would (case folded, normalised, without the code points
// HFS+ ignores, without the endings NTFS drops), so that no spelling of a name
// reaches a file the catalogue protects under another spelling.
// [ExecutablePart] narrows a structured file to what of it executes.
//
// Does not find what is run from a file the catalogue does not name: a script
// that an untouched hook calls, a module that a test imports, an absolute path
// in a tool's user configuration. Does not list source and test files, which
// every build and test run executes, nor know a tool nobody put into the
// catalogue. Does not resolve NTFS short names other than git's own, because
// the file system makes them up. Does not judge hard links: two names of one
// file are two entries, and whoever protects one must look at
// [WalkEntry.Nlink]. Does not read git's index or objects.
package surface

import "fmt"

// Protection says what an agent may do to a surface.
type Protection uint8

// The protections, strictest first.
const (
	Freeze Protection = iota // read-only to the agent; absent ones may not be created
	Review                   // writable; a change of the executable part must be approved
	Note                     // reported only
)

// String returns the word that policies and reports use.
func (p Protection) String() string {
	switch p {
	case Freeze:
		return "freeze"
	case Review:
		return "review"
	case Note:
		return "note"
	}
	return fmt.Sprintf("protection(%d)", uint8(p))
}

// Profile selects one of the two protections of every entry.
type Profile uint8

// The profiles. Any other value counts as Strict.
const (
	Strict   Profile = iota // whatever runs by an ordinary action is frozen
	Balanced                // frozen is what an agent never needs to edit
)

// String returns the word that policies use.
func (p Profile) String() string {
	if p == Balanced {
		return "balanced"
	}
	return "strict"
}

// Pattern is a glob of the catalogue, in the language of [ParseGlob] except
// that Anywhere alone decides about the depth. It names files and links; a
// directory is matched by a glob that ends in a slash, and by one that ends in
// /** when it is the directory so covered or lies below it.
type Pattern struct {
	Glob     string
	Anywhere bool // matches at every depth, not only from the root of the workspace
}

// Part names how the executable part of a file is found.
type Part uint8

// The parts. The zero value is the whole file.
const (
	Whole       Part = iota
	PackageJSON      // the values of [Entry.Keys] in a package.json
	GitInternal      // the executing keys of a git config; nothing of a hook sample; else the whole file
)

// Entry is one row of the catalogue.
type Entry struct {
	ID        string // stable, used in policies, reports and manifests
	Title     string
	Ecosystem string
	Patterns  []Pattern
	Trigger   string // the ordinary action that runs it
	Why       string // why it is protected the way it is
	Source    string // where the behaviour is documented
	Strict    Protection
	Balanced  Protection
	Keys      []string // executing keys, where Part needs them
	Part      Part
	Keep      bool // what is there when a run begins is frozen, whatever the columns say of new ones
	LinksOnly bool // only a symbolic link under this name is a surface
	Fixed     bool // no policy lowers it
}

// Protection returns the column of profile p.
func (e *Entry) Protection(p Profile) Protection {
	if p == Balanced {
		return e.Balanced
	}
	return e.Strict
}

// Catalogue returns every built-in entry, in a stable order. The slice is the
// caller's own.
func Catalogue() []Entry {
	all := make([]Entry, 0, 320)
	for _, rows := range [][]Entry{
		ownEntries(),
		gitEntries(), vcsEntries(), hookManagerEntries(),
		nodeEntries(), javascriptEntries(), jsAppEntries(),
		pythonEntries(), pythonToolEntries(),
		goEntries(), rustEntries(), jvmEntries(), rubyEntries(), phpEntries(),
		dotnetEntries(), nativeEntries(), languageEntries(),
		shellEntries(), editorEntries(), agentEntries(),
		ciEntries(), containerEntries(),
	} {
		all = append(all, rows...)
	}
	return all
}

// Lookup returns the built-in entry of that id.
func Lookup(id string) (Entry, bool) {
	for _, e := range Catalogue() {
		if e.ID == id {
			return e, true
		}
	}
	return Entry{}, false
}

func rooted(globs ...string) []Pattern   { return patterns(globs, false) }
func anywhere(globs ...string) []Pattern { return patterns(globs, true) }

func patterns(globs []string, anywhere bool) []Pattern {
	list := make([]Pattern, len(globs))
	for i, g := range globs {
		list[i] = Pattern{Glob: g, Anywhere: anywhere}
	}
	return list
}

package git

import (
	"os"
	"time"

	"agentguard/guard/surface"
)

// MaxObject is the content size above which an object is not read into memory.
const MaxObject = 64 << 20

// ObjectType is what an object is. The zero value is none.
type ObjectType uint8

// The types of objects.
const (
	Commit ObjectType = iota + 1
	Tree
	Blob
	Tag
)

// String returns git's word for t.
func (t ObjectType) String() string { return [...]string{"none", "commit", "tree", "blob", "tag"}[t] }

func unbuilt() error { return &UnsupportedError{What: "something that is not built yet"} }

// Open finds the work tree that dir lies in and validates every pointer
// between it and its git directories. Failures: [*NotRepoError], [*BareError],
// [*PointerError], [*UnsupportedError], [*ConfigError].
func Open(dir string) (*Repo, error) { return nil, unbuilt() }

// OpenBare opens dir as a git directory without a work tree.
func OpenBare(dir string) (*Repo, error) { return nil, unbuilt() }

// Close releases what r holds open. r is of no use afterwards.
func (r *Repo) Close() error { return nil }

// Scope is where a configuration value comes from.
type Scope uint8

// The scopes, in the order in which git reads them: later ones win. The zero
// value is no scope.
const (
	ScopeSystem Scope = iota + 1
	ScopeGlobal
	ScopeLocal
	ScopeWorktree
)

// ConfigValue is one assignment in a configuration file.
type ConfigValue struct {
	Key     string // section and name in lower case, subsection as written: remote.Origin.url
	Value   string // unquoted
	NoValue bool   // "key" alone, which git reads as true
	Scope   Scope
	Origin  string // file
	Line    int
}

// ParseConfig reads one configuration file's text as git does; includes are
// values like others. file is for errors and Origin.
func ParseConfig(file string, data []byte) ([]ConfigValue, error) { return nil, unbuilt() }

// Config returns every value git would read, in its order, includes followed.
// home and xdg are the user's HOME and XDG_CONFIG_HOME; empty leaves those
// files out (xdg empty: home/.config).
func (r *Repo) Config(home, xdg string) ([]ConfigValue, error) { return nil, unbuilt() }

// HooksPath is the directory git takes hooks from.
type HooksPath struct {
	Dir    string // absolute, cleaned, links not resolved
	Set    bool   // core.hooksPath decides; else it is the common directory's hooks
	Scope  Scope  // of the deciding value
	Origin string // its file
	Value  string // as written
}

// HooksPath returns the effective hooks directory: the last core.hooksPath
// wins, relative to the work tree's top.
func (r *Repo) HooksPath(home, xdg string) (HooksPath, error) { return HooksPath{}, unbuilt() }

// AllHooksDirs returns every directory that any scope, include (whether or not
// its condition holds) or default makes a hooks directory of this work tree,
// without duplicates.
func (r *Repo) AllHooksDirs(home, xdg string) ([]string, error) { return nil, unbuilt() }

// Worktree is one linked worktree.
type Worktree struct {
	Name     string // of the admin directory
	AdminDir string // CommonDir/worktrees/Name
	Path     string // the work tree; empty when its gitdir file cannot be read
}

// Worktrees returns the linked worktrees of the repository, also those whose
// directory is gone.
func (r *Repo) Worktrees() ([]Worktree, error) { return nil, unbuilt() }

// Submodule is one submodule that .gitmodules names or modules holds.
type Submodule struct {
	Name   string
	Path   string // in the work tree as .gitmodules says, empty when it does not
	GitDir string // absolute, empty when not initialised
}

// Submodules returns what .gitmodules of the work tree names together with
// every git directory below modules.
func (r *Repo) Submodules() ([]Submodule, error) { return nil, unbuilt() }

// GitDirs returns every git directory concerned: GitDir, CommonDir, the admin
// directories of all linked worktrees and, recursively, all submodules'.
func (r *Repo) GitDirs() ([]string, error) { return nil, unbuilt() }

// Symlink is a symbolic link inside a git directory, where git makes none.
type Symlink struct {
	Path   string // absolute
	Target string // its text
}

// Symlinks returns the symbolic links in all of [Repo.GitDirs].
func (r *Repo) Symlinks() ([]Symlink, error) { return nil, unbuilt() }

// Alternates returns the object directories that objects/info/alternates
// names, recursively, each of them validated.
func (r *Repo) Alternates() ([]string, error) { return nil, unbuilt() }

// Ref is one name for an object.
type Ref struct {
	Name     string // refs/heads/main, HEAD, worktrees/NAME/HEAD, refs/stash@{1}
	Hash     Hash   // zero when unborn or when Problem is set
	Symbolic string // the ref it names, for a symbolic one
	Problem  string // why it has no hash, one sentence; empty for an unborn branch
}

// Refs returns HEAD of every worktree, all loose and packed refs and the
// reflog entries of refs/stash. A ref that cannot be read is in the list with
// its Problem.
func (r *Repo) Refs() ([]Ref, error) { return nil, unbuilt() }

// Resolve returns the object that rev names: a ref in full or short, HEAD, a
// hash in full or an unambiguous beginning of one, followed by any of ~N, ^N,
// ^{commit}, ^{tree}, ^{}. Failure: [*RevisionError].
func (r *Repo) Resolve(rev string) (Hash, error) { return Hash{}, unbuilt() }

// Read returns an object without hashing it again.
func (r *Repo) Read(h Hash) (ObjectType, []byte, error) { return 0, nil, unbuilt() }

// ReadVerified returns an object after hashing it again: its content is what
// its name says.
func (r *Repo) ReadVerified(h Hash) (ObjectType, []byte, error) { return 0, nil, unbuilt() }

// Tree returns the tree of a revision.
func (r *Repo) Tree(rev string) (surface.Tree, error) { return nil, unbuilt() }

// TreeOf returns the tree of a commit, tag or tree object, the empty tree for
// the zero Hash. All it gives is verified.
func (r *Repo) TreeOf(h Hash) (surface.Tree, error) { return nil, unbuilt() }

// TreeChange is one difference between two trees. A side that has no such
// path has mode 0 and the zero Hash.
type TreeChange struct {
	Path             string
	OldMode, NewMode uint32
	OldHash, NewHash Hash
}

// DiffTrees calls fn for every path that is not a directory and differs
// between a and b (commits, tags or trees; zero is the empty tree), in git's
// order. Identical subtrees are not opened; renames are an addition and a
// removal.
func (r *Repo) DiffTrees(a, b Hash, fn func(TreeChange) error) error { return unbuilt() }

// MergeBase returns a best common ancestor of two commits, the zero Hash when
// they have none.
func (r *Repo) MergeBase(a, b Hash) (Hash, error) { return Hash{}, unbuilt() }

// Commits returns the commits reachable from head and not from base (zero:
// none), newest first, and fails when there are more than limit.
func (r *Repo) Commits(base, head Hash, limit int) ([]Hash, error) { return nil, unbuilt() }

// IndexEntry is one path of the index. Path is not checked: see [UnsafePath].
type IndexEntry struct {
	Path         string
	Mode         uint32 // 0o100644, 0o100755, 0o120000, 0o160000; 0o040000 for a sparse directory
	Hash         Hash
	Stage        uint8 // 0, or 1 to 3 for a conflict
	Size         uint32
	Mtime        time.Time
	SkipWorktree bool
	AssumeValid  bool
	IntentToAdd  bool
}

// Index is the staging area.
type Index struct {
	Version int // 0 when there is no index file
	Entries []IndexEntry
}

// Index reads this work tree's index; an absent one has no entries.
func (r *Repo) Index() (*Index, error) { return nil, unbuilt() }

// ParseIndex reads an index file's bytes.
func ParseIndex(data []byte, f ObjectFormat) (*Index, error) { return nil, unbuilt() }

// Tree returns what the index would commit as a tree: sparse directories are
// opened, entries in conflict appear once with the lowest stage from 2 on.
func (x *Index) Tree(r *Repo) surface.Tree { return nil }

// UnsafePath tells why git must not write an entry of this name into a work
// tree (.git in any spelling, "..", absolute, empty component), empty when
// nothing is wrong.
func UnsafePath(path string) (why string) { return "not built yet" }

// SetConfig sets key to value in file, a git configuration file, replacing all
// values it has there. It runs git with only this file as data.
func SetConfig(key, value, file string) error { return unbuilt() }

// UnsetConfig removes every value of key from file; that there is none is no
// error.
func UnsetConfig(key, file string) error { return unbuilt() }

func openRegular(file string) (*os.File, error) { return nil, unbuilt() }

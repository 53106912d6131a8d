package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"agentguard/guard/git"
	"agentguard/guard/surface"
	"agentguard/integrity"
)

// start is what is known of a workspace before a run: enough to tell
// afterwards what the run changed, on disk, in the index and in what refs
// name, without reading a single blob beforehand.
type start struct {
	areas []*area
	index []byte // the index file's bytes, nil without one
	refs  map[string]git.Hash

	broken map[string]bool // refs that could not be read already
}

// indexFile is read as it is, so that the state before survives a run that
// rewrites it in place.
func indexFile(r *git.Repo) string { return filepath.Join(r.GitDir, "index") }

// takeStart records the state before a run. The areas are resolved already.
func (w *Workspace) takeStart(areas []*area) (*start, error) {
	s := &start{areas: areas, refs: map[string]git.Hash{}, broken: map[string]bool{}}
	for _, a := range areas {
		if err := a.snapshot(); err != nil {
			return nil, err
		}
	}
	if w.Repo == nil {
		return s, nil
	}
	var err error
	if s.index, err = readIndex(w.Repo); err != nil {
		return nil, err
	}
	refs, err := w.Repo.Refs()
	if err != nil {
		return nil, fmt.Errorf("reading the refs: %w", err)
	}
	for _, r := range refs {
		s.refs[r.Name] = r.Hash
		if r.Problem != "" {
			s.broken[r.Name] = true
		}
	}
	return s, nil
}

// maxIndex bounds an index file; one of a million paths has some 100 MB.
const maxIndex = 512 << 20

// readIndex never waits: a run may have put anything in the index's place.
func readIndex(r *git.Repo) ([]byte, error) {
	f, err := os.OpenFile(indexFile(r), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the index: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the index: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxIndex {
		return nil, fmt.Errorf("reading the index: it is no regular file of a sane size")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxIndex))
	if err != nil {
		return nil, fmt.Errorf("reading the index: %w", err)
	}
	return b, nil
}

// afterwards is what a run left, compared with its start.
type afterwards struct {
	findings []finding
	stale    []integrity.Stale
	now      []*area  // the second look
	problems []string // what git's own reading would stumble over, one sentence each
}

// finding is one change with the path that a person would type.
type finding struct {
	integrity.Finding
	Shown string // relative to the workspace, or absolute outside it
	area  *area
}

// compare looks at everything again. It takes the areas' second look itself,
// so it may be called once per start.
func (w *Workspace) compare(s *start) (*afterwards, error) {
	out := &afterwards{}
	for i, a := range s.areas {
		now := &area{dir: a.dir, prefix: a.prefix, matcher: a.matcher}
		if err := now.look(); err != nil {
			return nil, err
		}
		out.now = append(out.now, now)
		before, after := integrity.State{WorkTree: a.files}, integrity.State{WorkTree: now.files}
		if i == 0 && w.Repo != nil {
			w.gitPlaces(s, a.matcher, &before, &after, out)
			out.stale = integrity.StaleFiles(before, after)
		}
		for _, f := range integrity.Compare(before, after) {
			out.findings = append(out.findings, finding{f, w.shown(now.path(f.Path)), a})
		}
	}
	return out, nil
}

// shown is a path as a person would type it in the workspace.
func (w *Workspace) shown(path string) string {
	if rel, ok := strings.CutPrefix(path, w.Root+"/"); ok {
		return rel
	}
	return path
}

// gitPlaces adds what reached git without touching a file: the index, and the
// trees of what refs name now and did not name before. Only paths that differ
// are read. What cannot be read is a finding by itself and hides nothing else:
// a run that breaks one file of git's must not silence the rest.
func (w *Workspace) gitPlaces(s *start, m *surface.Matcher, before, after *integrity.State, out *afterwards) {
	if err := w.sameRepo(); err != nil {
		out.problem("the repository is not what it was (%v): git would take another one, or none", err)
		return
	}
	bytesNow, err := readIndex(w.Repo)
	if err == nil && !slices.Equal(bytesNow, s.index) {
		before.Index, after.Index, err = w.indexes(s.index, bytesNow, m, out)
	}
	if err != nil {
		before.Index, after.Index = nil, nil
		out.problem("the index cannot be judged (%v): look at git diff --cached before git restore, checkout or commit", err)
	}
	before.Trees, after.Trees = map[string]*integrity.Manifest{}, map[string]*integrity.Manifest{}
	refs, err := w.Repo.Refs()
	if err != nil {
		out.problem("the refs cannot be judged (%v): look at them before git checkout or merge", err)
		return
	}
	known := map[git.Hash]bool{}
	for _, h := range s.refs {
		known[h] = true
	}
	for _, ref := range refs {
		if ref.Problem != "" {
			if !s.broken[ref.Name] {
				out.problem("%s: %s", ref.Name, ref.Problem)
			}
			continue
		}
		if ref.Hash.IsZero() || s.refs[ref.Name] == ref.Hash || skippedRef(ref) {
			continue
		}
		if known[ref.Hash] && ref.Name != "HEAD" && !strings.HasSuffix(ref.Name, "/HEAD") {
			continue // a new name for what the user had already
		}
		known[ref.Hash] = true
		if err := w.movedRef(s, ref, m, before, after); err != nil {
			out.problem("%s cannot be judged (%v): look at it before git checkout or merge", ref.Name, err)
		}
	}
	w.forged(s, bytesNow, out)
}

func (a *afterwards) problem(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// sameRepo opens the repository again as the user's next git would.
func (w *Workspace) sameRepo() error {
	r, err := git.Open(w.Root)
	if err != nil {
		return err
	}
	defer r.Close()
	if r.GitDir != w.Repo.GitDir || r.CommonDir != w.Repo.CommonDir || r.Dev != w.Repo.Dev || r.Ino != w.Repo.Ino {
		return fmt.Errorf("its git directory is %q now", r.GitDir)
	}
	return nil
}

// forged looks whether the objects that a restore would write out for the
// surfaces still have the content that their names say: git itself does not
// hash a loose object that it reads.
func (w *Workspace) forged(s *start, index []byte, out *afterwards) {
	x, err := parseIndex(index, w.Repo)
	if err != nil {
		return // told already
	}
	files := s.areas[0].files
	for _, e := range x.Entries {
		if e.Mode&0o170000 != 0o100000 || files.Get(e.Path).Kind == integrity.Absent {
			continue
		}
		if _, _, err := w.Repo.ReadVerified(e.Hash); err != nil {
			if _, missing := errors.AsType[*git.MissingError](err); !missing {
				out.problem("the object that git would restore %q from is not what its name says (%v)", e.Path, err)
			}
		}
	}
}

// skippedRef names refs whose trees nobody checks out, and those that only
// repeat another.
func skippedRef(r git.Ref) bool {
	return strings.HasPrefix(r.Name, "refs/notes/") || r.Symbolic != ""
}

// indexes gives the surfaces in which two states of the index differ.
func (w *Workspace) indexes(old, now []byte, m *surface.Matcher, out *afterwards) (a, b *integrity.Manifest, err error) {
	x, err := parseIndex(old, w.Repo)
	if err != nil {
		return nil, nil, err
	}
	y, err := parseIndex(now, w.Repo)
	if err != nil {
		return nil, nil, err
	}
	type entry struct {
		mode uint32
		hash git.Hash
	}
	was := map[string]entry{}
	for _, e := range x.Entries {
		was[e.Path] = entry{e.Mode, e.Hash}
	}
	differs := map[string]bool{}
	for _, e := range y.Entries {
		if why := git.UnsafePath(e.Path); why != "" {
			out.problems = append(out.problems, fmt.Sprintf("the index holds %q (%s): a later git restore or checkout would write there", e.Path, why))
		}
		if was[e.Path] != (entry{e.Mode, e.Hash}) {
			differs[e.Path] = true
		}
		delete(was, e.Path)
	}
	for path := range was {
		differs[path] = true
	}
	if a, err = manifestOf(x.Tree(w.Repo), m, differs); err != nil {
		return nil, nil, fmt.Errorf("the index before: %w", err)
	}
	if b, err = manifestOf(y.Tree(w.Repo), m, differs); err != nil {
		return nil, nil, fmt.Errorf("the index: %w", err)
	}
	return a, b, nil
}

func parseIndex(b []byte, r *git.Repo) (*git.Index, error) {
	if b == nil {
		return &git.Index{}, nil
	}
	x, err := git.ParseIndex(b, r.ObjectFormat)
	if err != nil {
		return nil, fmt.Errorf("reading the index: %w", err)
	}
	return x, nil
}

// movedRef adds the surfaces in which a ref's tree differs from what it named
// before, or, for a new one, from HEAD's before.
func (w *Workspace) movedRef(s *start, ref git.Ref, m *surface.Matcher, before, after *integrity.State) error {
	base, had := s.refs[ref.Name]
	if !had || base.IsZero() {
		base = s.refs["HEAD"]
	}
	differs := map[string]bool{}
	err := w.Repo.DiffTrees(base, ref.Hash, func(c git.TreeChange) error {
		// A new name's tree that lacks a file disables nothing here.
		if had || c.NewMode != 0 {
			differs[c.Path] = true
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("comparing %s: %w", ref.Name, err)
	}
	if before.Trees[ref.Name], err = w.treeManifest(base, m, differs); err != nil {
		return fmt.Errorf("%s before: %w", ref.Name, err)
	}
	after.Trees[ref.Name], err = w.treeManifest(ref.Hash, m, differs)
	if err != nil {
		return fmt.Errorf("%s: %w", ref.Name, err)
	}
	return nil
}

func (w *Workspace) treeManifest(h git.Hash, m *surface.Matcher, only map[string]bool) (*integrity.Manifest, error) {
	t, err := w.Repo.TreeOf(h)
	if err != nil {
		return nil, err
	}
	return manifestOf(t, m, only)
}

// manifestOf hashes those surfaces of t that are in only.
func manifestOf(t surface.Tree, m *surface.Matcher, only map[string]bool) (*integrity.Manifest, error) {
	set := &surface.Set{}
	for path := range only {
		e, err := t.Lstat(path)
		if errors.Is(err, surface.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if hit, ok := m.Match(path, e.Type); ok {
			set.Members = append(set.Members, surface.Member{WalkEntry: e, Hit: hit})
		}
	}
	slices.SortFunc(set.Members, func(a, b surface.Member) int { return strings.Compare(a.Path, b.Path) })
	return integrity.Snapshot(t, set)
}

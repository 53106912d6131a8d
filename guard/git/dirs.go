package git

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxGitDirs bounds the walk through modules, which whoever writes the git
// directory makes as large as they like.
const maxGitDirs = 10_000

// Worktree is one linked worktree.
type Worktree struct {
	Name     string // of the admin directory
	AdminDir string // CommonDir/worktrees/Name
	Path     string // the work tree it names, which need not exist or name it back; empty when gitdir cannot be read
}

// Worktrees returns the linked worktrees of the repository, also those whose
// work tree is gone.
func (r *Repo) Worktrees() ([]Worktree, error) {
	names, err := subdirs(r.common, "worktrees")
	if err != nil {
		return nil, err
	}
	var out []Worktree
	for _, name := range names {
		w := Worktree{Name: name, AdminDir: filepath.Join(r.CommonDir, "worktrees", name)}
		if named, err := readPointer(filepath.Join(w.AdminDir, "gitdir")); err == nil {
			if !filepath.IsAbs(named) {
				named = filepath.Join(w.AdminDir, named)
			}
			w.Path = filepath.Dir(named)
		}
		out = append(out, w)
	}
	return out, nil
}

// Submodule is one submodule that .gitmodules names or modules holds.
type Submodule struct {
	Name   string
	Path   string // in the work tree as .gitmodules says, raw; empty when it does not
	GitDir string // absolute; empty when there is none below modules
}

// Submodules returns what .gitmodules of the work tree names together with
// every git directory below modules, nested ones as NAME/modules/NAME.
func (r *Repo) Submodules() ([]Submodule, error) {
	byName := map[string]*Submodule{}
	dirs, err := moduleDirs(filepath.Join(r.GitDir, "modules"))
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		name, _ := filepath.Rel(filepath.Join(r.GitDir, "modules"), d) // d is below
		byName[name] = &Submodule{Name: name, GitDir: d}
	}
	values, err := r.gitmodules()
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		rest, ok := strings.CutPrefix(v.Key, "submodule.")
		name, isPath := strings.CutSuffix(rest, ".path")
		if !ok || !isPath {
			continue
		}
		if byName[name] == nil {
			byName[name] = &Submodule{Name: name}
		}
		byName[name].Path = v.Value
	}
	var out []Submodule
	for _, s := range byName {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Submodule) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (r *Repo) gitmodules() ([]ConfigValue, error) {
	if r.Bare {
		return nil, nil
	}
	values, err := readConfigFile(filepath.Join(r.Root, ".gitmodules"), false)
	if isNotExist(err) {
		return nil, nil
	}
	return values, err
}

// GitDirs returns every git directory concerned, sorted: GitDir, CommonDir,
// the admin directories of all linked worktrees and, of each, all submodules'
// at any depth.
func (r *Repo) GitDirs() ([]string, error) {
	dirs := []string{r.CommonDir, r.GitDir}
	worktrees, err := r.Worktrees()
	if err != nil {
		return nil, err
	}
	for _, w := range worktrees {
		dirs = append(dirs, w.AdminDir)
	}
	for _, d := range slices.Clone(dirs) {
		below, err := moduleDirs(filepath.Join(d, "modules"))
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, below...)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// moduleDirs returns the git directories below a modules directory. A
// submodule's name may hold slashes, so directories that are none are walked
// further, and inside one its own modules and worktrees are.
func moduleDirs(modules string) ([]string, error) {
	var out []string
	todo := []string{modules}
	for seen := 0; len(todo) > 0; seen++ {
		if seen > maxGitDirs {
			return nil, &UnsupportedError{What: fmt.Sprintf("more than %d directories below %q", maxGitDirs, modules)}
		}
		d := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if d != modules && looksLikeGitDir(d) {
			out = append(out, d)
			for _, sub := range []string{"modules", "worktrees"} {
				if fi, err := os.Lstat(filepath.Join(d, sub)); err == nil && fi.IsDir() {
					todo = append(todo, filepath.Join(d, sub))
				}
			}
			continue
		}
		entries, err := os.ReadDir(d)
		if err != nil && !isNotExist(err) {
			return nil, fmt.Errorf("looking for submodules in %q: %w", d, underlying(err))
		}
		for _, e := range entries {
			if e.IsDir() {
				todo = append(todo, filepath.Join(d, e.Name()))
			}
		}
	}
	return out, nil
}

// subdirs returns the names of the real directories in dir, none when dir is
// absent.
func subdirs(root *os.Root, dir string) ([]string, error) {
	entries, err := readDirIn(root, dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// readDirIn lists a directory below root, sorted; an absent one is empty.
func readDirIn(root *os.Root, dir string) ([]fs.DirEntry, error) {
	f, err := root.Open(dir)
	if isNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %q in %q: %w", dir, root.Name(), underlying(err))
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("listing %q in %q: %w", dir, root.Name(), underlying(err))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

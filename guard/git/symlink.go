package git

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxSymlinkWalk bounds how many names of git directories are looked at.
const maxSymlinkWalk = 1_000_000

// Symlink is a symbolic link inside a git directory, where git makes none.
type Symlink struct {
	Path   string // absolute
	Target string // its text
}

// Symlinks returns the symbolic links in all of [Repo.GitDirs], in hooks, logs
// and refs as well as in objects: git reads and writes through each of them.
func (r *Repo) Symlinks() ([]Symlink, error) {
	dirs, err := r.GitDirs()
	if err != nil {
		return nil, err
	}
	var out []Symlink
	left := maxSymlinkWalk
	done := map[string]bool{}
	for _, d := range dirs {
		if out, err = walkLinks(out, d, done, &left); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// walkLinks adds the links at and below dir. Directories in done were walked
// already, as parts of another git directory.
func walkLinks(out []Symlink, dir string, done map[string]bool, left *int) ([]Symlink, error) {
	if done[dir] {
		return out, nil
	}
	done[dir] = true
	entries, err := os.ReadDir(dir)
	if isNotExist(err) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for symbolic links in %q: %w", dir, underlying(err))
	}
	for _, e := range entries {
		if *left--; *left < 0 {
			return nil, &UnsupportedError{What: fmt.Sprintf("more than %d files in its git directories", maxSymlinkWalk)}
		}
		p := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if out, err = walkLinks(out, p, done, left); err != nil {
				return nil, err
			}
		case e.Type()&os.ModeSymlink != 0:
			target, _ := os.Readlink(p) // only told
			out = append(out, Symlink{Path: p, Target: target})
		}
	}
	return out, nil
}

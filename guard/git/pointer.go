package git

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// followGitfile reads the ".git" file of r.Root and believes it only when the
// directory it names says that this is its work tree.
func (r *Repo) followGitfile(file string) error {
	data, err := readFile(file, maxPointer, false)
	if err != nil {
		return &PointerError{File: file, Why: err.Error()}
	}
	rest, ok := bytes.CutPrefix(data, []byte("gitdir: "))
	target := string(bytes.TrimRight(rest, "\r\n"))
	if !ok || target == "" || strings.ContainsRune(target, 0) {
		return &PointerError{File: file, Why: `it does not read "gitdir: PATH"`}
	}
	if err := r.setGitDir(file, target); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(r.GitDir, "commondir")); err == nil {
		return r.checkLinked(file)
	}
	r.CommonDir = r.GitDir
	return r.checkNamedBack(file)
}

// followLink accepts a symbolic link at ".git" under the rule of a gitfile:
// the directory must name this work tree in core.worktree. Without that, a
// link to any repository would open it.
func (r *Repo) followLink(file string) error {
	target, err := os.Readlink(file)
	if err != nil {
		return &PointerError{File: file, Why: err.Error()}
	}
	if err := r.setGitDir(file, target); err != nil {
		return err
	}
	r.CommonDir = r.GitDir
	if err := r.checkSelfCommon(); err != nil {
		return err
	}
	return r.checkNamedBack(file)
}

// setGitDir resolves target, as file names it, to a git directory outside the
// work tree.
func (r *Repo) setGitDir(file, target string) error {
	d, err := resolveFrom(filepath.Dir(file), target)
	if err != nil {
		return &PointerError{File: file, Target: target, Why: reason(err)}
	}
	if !looksLikeGitDir(d) {
		return &PointerError{File: file, Target: d, Why: "that is no git directory"}
	}
	if below(d, r.Root) {
		return &PointerError{File: file, Target: d, Why: "that lies inside the work tree, where whoever writes the tree writes the repository"}
	}
	r.GitDir = d
	return nil
}

// checkLinked validates the admin directory of a linked worktree: it lies in
// the worktrees directory of its common directory and its gitdir names file.
func (r *Repo) checkLinked(file string) error {
	commondir := filepath.Join(r.GitDir, "commondir")
	target, err := readPointer(commondir)
	if err != nil {
		return err
	}
	common, err := resolveFrom(r.GitDir, target)
	if err != nil {
		return &PointerError{File: commondir, Target: target, Why: reason(err)}
	}
	if filepath.Dir(r.GitDir) != filepath.Join(common, "worktrees") {
		return &PointerError{File: commondir, Target: common, Why: "the linked worktree's directory does not lie in its worktrees directory"}
	}
	if !looksLikeGitDir(common) || below(common, r.Root) {
		return &PointerError{File: commondir, Target: common, Why: "that is no git directory outside the work tree"}
	}
	back := filepath.Join(r.GitDir, "gitdir")
	named, err := readPointer(back)
	if err != nil {
		return err
	}
	if where, err := gitfileNamed(r.GitDir, named); err != nil || where != file {
		return &PointerError{File: file, Target: r.GitDir, Why: "its gitdir file does not name this work tree back"}
	}
	r.CommonDir, r.Linked = common, true
	return checkNoChain(common)
}

// checkSelfCommon refuses a commondir file in a git directory that is its own
// common directory: git would take hooks and configuration from elsewhere.
func (r *Repo) checkSelfCommon() error { return checkNoChain(r.GitDir) }

func checkNoChain(gitDir string) error {
	file := filepath.Join(gitDir, "commondir")
	if _, err := os.Lstat(file); isNotExist(err) {
		return nil
	}
	target, err := readPointer(file)
	if err != nil {
		return err
	}
	if d, err := resolveFrom(gitDir, target); err != nil || d != gitDir {
		return &PointerError{File: file, Target: target, Why: "a git directory of its own takes nothing from another one"}
	}
	return nil
}

// checkNamedBack requires core.worktree of r.GitDir to name r.Root, as that of
// a submodule does.
func (r *Repo) checkNamedBack(file string) error {
	values, err := r.formatValues()
	if err != nil {
		return err
	}
	named, ok := lastValue(values, "core.worktree")
	if !ok {
		return &PointerError{File: file, Target: r.GitDir, Why: "its configuration names no work tree back (core.worktree is not set)"}
	}
	if d, err := resolveFrom(r.GitDir, named); err != nil || d != r.Root {
		return &PointerError{File: file, Target: r.GitDir, Why: "its core.worktree names another work tree"}
	}
	r.Submodule = belowModules(r.GitDir)
	return nil
}

// belowModules tells whether d lies in the modules directory of a git
// directory.
func belowModules(d string) bool {
	for p := d; p != filepath.Dir(p); p = filepath.Dir(p) {
		if filepath.Base(p) == "modules" && p != d && looksLikeGitDir(filepath.Dir(p)) {
			return true
		}
	}
	return false
}

// readPointer reads a file that holds one path and a line end.
func readPointer(file string) (string, error) {
	data, err := readFile(file, maxPointer, false)
	if err != nil {
		return "", &PointerError{File: file, Why: reason(err)}
	}
	target := string(bytes.TrimRight(data, "\r\n"))
	if target == "" || strings.ContainsAny(target, "\x00\n") {
		return "", &PointerError{File: file, Why: "it does not hold one path"}
	}
	return target, nil
}

// gitfileNamed resolves the path of a ".git" file that an admin directory
// names: its directory in full, the last component as it is.
func gitfileNamed(adminDir, named string) (string, error) {
	if !filepath.IsAbs(named) {
		named = filepath.Join(adminDir, named)
	}
	d, err := filepath.EvalSymlinks(filepath.Dir(named))
	if err != nil {
		return "", err
	}
	return filepath.Join(d, filepath.Base(named)), nil
}

func resolveFrom(dir, target string) (string, error) {
	if !filepath.IsAbs(target) {
		// Not Join: it would drop "x/.." before x, which may be a link, is resolved.
		target = dir + "/" + target
	}
	return canonical(target)
}

// below tells whether p is dir or lies below it; both are canonical.
func below(p, dir string) bool {
	if p == dir || dir == "/" {
		return true
	}
	return strings.HasPrefix(p, dir+"/")
}

func reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "it may not be read"
	}
	return underlying(err).Error()
}

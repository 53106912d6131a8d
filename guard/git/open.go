package git

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Open finds the work tree that dir lies in, as git does: upward to the root
// of the file system, whatever the environment says. Unlike git it never
// passes over a ".git" that is not right, because the next one further up
// would be a larger workspace than the user meant.
//
// A ".git" that is a file or a symbolic link is believed when the directory it
// names lies outside the work tree and names the work tree back: by the gitdir
// file of a linked worktree that lies in its repository's worktrees directory,
// or by core.worktree, as git writes it for a submodule. A directory made by
// "git init --separate-git-dir" names nothing back and is refused until
// core.worktree is set in it. Failures: [*NotRepoError],
// [*BareError], [*PointerError], [*UnsupportedError], [*ConfigError].
func Open(dir string) (*Repo, error) {
	start, err := canonical(dir)
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", dir, err)
	}
	for d := start; ; d = filepath.Dir(d) {
		fi, err := os.Lstat(filepath.Join(d, ".git"))
		switch {
		case err == nil:
			return openAt(d, fi)
		case !isNotExist(err):
			return nil, fmt.Errorf("looking for a repository in %q: %w", d, underlying(err))
		case looksLikeGitDir(d):
			return nil, &BareError{Dir: d}
		case d == filepath.Dir(d):
			return nil, &NotRepoError{Dir: start}
		}
	}
}

// OpenBare opens dir as a git directory without a work tree, for whoever only
// reads objects and refs.
func OpenBare(dir string) (*Repo, error) {
	d, err := canonical(dir)
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", dir, err)
	}
	if !looksLikeGitDir(d) {
		return nil, &NotRepoError{Dir: d}
	}
	r := &Repo{GitDir: d, CommonDir: d, Bare: true}
	return r.finish(r.checkSelfCommon())
}

// Close releases what r holds open. r is of no use afterwards.
func (r *Repo) Close() error {
	if r.store != nil {
		r.store.close()
	}
	for _, d := range []*os.Root{r.git, r.common} {
		if d != nil {
			_ = d.Close() // only read
		}
	}
	return nil
}

func canonical(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		wd, err := os.Getwd()
		if err != nil {
			return "", err
		}
		dir = wd + "/" + dir // not cleaned: "x/.." means something else where x is a link
	}
	d, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	fi, err := os.Stat(d)
	if err == nil && !fi.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	return d, err
}

// openAt opens the work tree root, whose .git is git.
func openAt(root string, git fs.FileInfo) (*Repo, error) {
	r := &Repo{Root: root}
	var err error
	switch file := filepath.Join(root, ".git"); {
	case git.IsDir():
		r.GitDir, r.CommonDir = file, file
		if !looksLikeGitDir(file) {
			return nil, &PointerError{File: file, Why: "it is a directory, but no git directory"}
		}
		err = r.checkSelfCommon()
	case git.Mode()&fs.ModeSymlink != 0:
		err = r.followLink(file)
	case git.Mode().IsRegular():
		err = r.followGitfile(file)
	default:
		err = &PointerError{File: file, Why: "it is neither a directory nor a file"}
	}
	return r.finish(err)
}

// finish opens the directories, reads the format and checks what only the
// configuration says. err is what was found before. Of a repository that is
// refused nothing is returned.
func (r *Repo) finish(err error) (*Repo, error) {
	for _, step := range []func() error{r.openRoots, r.checkLinks, r.readFormat} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		_ = r.Close() // only read
		return nil, err
	}
	return r, nil
}

func (r *Repo) openRoots() (err error) {
	if r.git, err = os.OpenRoot(r.GitDir); err != nil {
		return fmt.Errorf("opening the git directory: %w", err)
	}
	if r.common, err = os.OpenRoot(r.CommonDir); err != nil {
		return fmt.Errorf("opening the common git directory: %w", err)
	}
	fi, err := r.common.Stat(".")
	if err != nil {
		return fmt.Errorf("opening the common git directory: %w", err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return &UnsupportedError{What: "a file system without file identities"}
	}
	r.Dev, r.Ino = uint64(st.Dev), st.Ino
	return nil
}

// looksLikeGitDir tells whether git would take d for a git directory. It says
// yes a little more often than git: then nothing is opened.
func looksLikeGitDir(d string) bool {
	if !validHead(filepath.Join(d, "HEAD")) {
		return false
	}
	if _, err := os.Lstat(filepath.Join(d, "commondir")); err == nil {
		return true
	}
	return isDir(filepath.Join(d, "objects")) && isDir(filepath.Join(d, "refs"))
}

func validHead(file string) bool {
	fi, err := os.Lstat(file)
	if err != nil {
		return false
	}
	if fi.Mode()&fs.ModeSymlink != 0 {
		return true
	}
	data, err := readFile(file, maxPointer, false)
	if err != nil {
		return false
	}
	_, _, err = parseRef(data)
	return err == nil
}

func isDir(p string) bool {
	fi, err := os.Stat(p)
	return err == nil && fi.IsDir()
}

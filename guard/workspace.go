package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"agentguard/guard/git"
	"agentguard/guard/policy"
)

// Workspace is the directory tree that a command works in, with what git
// makes of it.
type Workspace struct {
	Root string    // physical
	Repo *git.Repo // nil where there is no repository
	ID   policy.RepoID
	UID  uint32 // owner of Root
	GID  uint32

	dirs dirs
}

// WorkspaceError says why a directory cannot be guarded as a workspace.
type WorkspaceError struct {
	Dir string
	Why string
}

func (e *WorkspaceError) Error() string { return fmt.Sprintf("%q: %s", e.Dir, e.Why) }

// Open finds the workspace that the caller stands in. A directory outside any
// repository is one too; commands that need a repository ask needRepo.
func (g *Guard) Open() (*Workspace, error) {
	d, err := g.dirs()
	if err != nil {
		return nil, err
	}
	w := &Workspace{dirs: d}
	w.Repo, err = git.Open(g.Dir)
	switch {
	case err == nil:
		w.Root = w.Repo.Root
		w.ID, err = policy.Identify(w.Repo.CommonDir)
	case isNotRepo(err):
		w.Repo, w.Root = nil, g.Dir
		w.ID, err = policy.Identify(w.Root)
	}
	if err != nil {
		return nil, err
	}
	if err := g.refuseRoot(w.Root); err != nil {
		return nil, err
	}
	for _, dir := range w.dirs.own() {
		if within(dir, w.Root) {
			return nil, &WorkspaceError{w.Root, "agentguard's own directory " + dir + " lies in the workspace, where a run could change it"}
		}
	}
	info, err := os.Stat(w.Root)
	if err != nil {
		return nil, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		w.UID, w.GID = st.Uid, st.Gid
	}
	if as := g.identity(w); as != nil && !reachable(filepath.Dir(w.dirs.cache), as) {
		w.dirs.cache = ownersCache
	}
	return w, nil
}

func isNotRepo(err error) bool {
	_, ok := errors.AsType[*git.NotRepoError](err)
	return ok
}

// refuseRoot keeps a workspace from being the whole machine or the whole of
// the user: what is in it is given away.
func (g *Guard) refuseRoot(root string) error {
	for _, dir := range []string{"/", "/usr", "/etc", "/home", "/root", "/var", "/tmp", "/proc", "/sys", "/dev", "/opt", "/run"} {
		if root == dir {
			return &WorkspaceError{root, "a system directory cannot be a workspace"}
		}
	}
	home := g.home()
	if home == "" {
		return nil
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	if within(home, root) {
		return &WorkspaceError{root, "the workspace holds your home directory " + home + ", and all keys in it"}
	}
	return nil
}

// needRepo is for what only makes sense in a git repository.
func (w *Workspace) needRepo() error {
	if w.Repo == nil {
		return &git.NotRepoError{Dir: w.Root}
	}
	return nil
}

// stateDir is where agentguard keeps what it knows of this workspace.
func (w *Workspace) stateDir() string { return w.dirs.repoDir(w.ID) }

// within says whether path is dir or below it; both are clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

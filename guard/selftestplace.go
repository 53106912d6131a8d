package guard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"agentguard/sandbox"
	"agentguard/sandbox/probe"
)

// place is the throw-away directory of one self-test.
type place struct {
	top   string
	exe   string            // a copy of agentguard, which whoever the run is for can execute
	plant string            // where the trees are planted
	as    *sandbox.Identity // nil: the caller
}

// The run's own directories, in place of the caller's.
func (p *place) config() string { return filepath.Join(p.top, "config") }
func (p *place) state() string  { return filepath.Join(p.top, "state") }
func (p *place) cache() string  { return filepath.Join(p.top, "cache") }

// longestPlace keeps the paths of the sockets in it within 108 bytes.
const longestPlace = 60

// selftestPlace makes the directory where one may be executed from: a
// machine's /tmp may be mounted so that nothing in it can be.
func (g *Guard) selftestPlace() (*place, error) {
	var as *sandbox.Identity
	if w, err := g.Open(); err == nil {
		as = g.identity(w)
	}
	var errs []error
	for _, parent := range []string{g.Env["TMPDIR"], "/tmp", "/var/tmp", g.home()} {
		if !filepath.IsAbs(parent) || len(parent) > longestPlace {
			continue
		}
		p, err := g.placeIn(parent, as)
		if err == nil {
			return p, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("finding a place for the self-test: %w", errors.Join(errs...))
}

func (g *Guard) placeIn(parent string, as *sandbox.Identity) (*place, error) {
	real, err := filepath.EvalSymlinks(parent)
	if err != nil {
		return nil, err
	}
	top, err := os.MkdirTemp(real, ".agentguard-selftest-")
	if err != nil {
		return nil, err
	}
	p := &place{top: top, exe: filepath.Join(top, "agentguard"), plant: filepath.Join(top, "plant"), as: as}
	for _, dir := range []string{p.plant, p.config(), p.state(), p.cache()} {
		err = errors.Join(err, os.Mkdir(dir, 0o700))
	}
	if err == nil {
		err = copyFile(g.Exe, p.exe)
	}
	if err == nil {
		err = exec.Command(p.exe, probeStepCommand, probeWord, "nothing").Run()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%q: %w", parent, err), p.remove())
	}
	return p, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// foreignGit holds that the git which makes the plant, on the host, is none
// that the workspace put on PATH.
func (g *Guard) foreignGit() error {
	root := g.Dir
	if w, err := g.Open(); err == nil {
		root = w.Root
	}
	for _, dir := range filepath.SplitList(g.Env["PATH"]) {
		path := filepath.Join(dir, "git")
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !filepath.IsAbs(dir) {
			continue // not there, or relative, which Go does not start
		}
		if root != "/" && (within(path, root) || within(real, root)) {
			return &WorkspaceError{path, "the first git on PATH lies in the workspace, and the self-test starts nothing of a workspace's"}
		}
		return nil
	}
	return errors.New("git is not on PATH, and the self-test needs it")
}

// give hands what the run is to work in to whom it works as, so that what is
// refused inside is not refused for want of the owner's rights.
func (p *place) give(planted *probe.Planted) error {
	if p.as == nil {
		return nil
	}
	// Through the directory itself only; the outside tree stays the caller's.
	for _, dir := range []string{p.top, p.plant, p.cache()} {
		if err := os.Chmod(dir, 0o711); err != nil {
			return err
		}
	}
	own := func(path string) error { return os.Lchown(path, int(p.as.UID), int(p.as.GID)) }
	inside := filepath.Dir(planted.Inside.Home)
	err := filepath.WalkDir(inside, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return own(path)
	})
	return errors.Join(err, own(planted.Inside.TempFile), own(planted.Inside.Socket))
}

// remove leaves nothing of the self-test.
func (p *place) remove() error { return os.RemoveAll(p.top) }

// who says for whom the run was tried.
func (p *place) who() string {
	switch {
	case p.as != nil:
		return "root for user " + strconv.Itoa(int(p.as.UID))
	case os.Geteuid() == 0:
		return "root"
	}
	return "user " + strconv.Itoa(os.Geteuid())
}

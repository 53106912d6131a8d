package hooks

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentguard/guard/git"
)

// canary is a hook that leaves a line in a file, so that a test sees which
// hooks ran.
func canary(file, line string) string {
	return "#!/bin/sh\necho '" + line + "' >>'" + file + "'\n"
}

// world is one user with one repository.
type world struct {
	t          *testing.T
	home, repo string
	state      string
	canary     string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	needGit(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	w := &world{t: t, home: filepath.Join(dir, "home"), repo: filepath.Join(dir, "repo"), canary: filepath.Join(dir, "canary")}
	w.state = filepath.Join(w.home, ".local/state/agentguard")
	must(t, os.MkdirAll(w.home, 0o755))
	must(t, os.Mkdir(w.repo, 0o755))
	w.git("init", "-q", "-b", "main")
	w.git("commit", "-q", "--allow-empty", "-m", "first")
	// The state's directories cannot be written to, which t.TempDir's own
	// clean-up does not mind as root only.
	t.Cleanup(func() { _ = removeTree(w.state) }) // a failure shows in TempDir's
	return w
}

func (w *world) try(dir string, args ...string) (string, error) {
	w.t.Helper()
	return tryGit(w.t, w.home, dir, args...)
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	return w.gitAt(w.repo, args...)
}

func (w *world) gitAt(dir string, args ...string) string {
	w.t.Helper()
	out, err := w.try(dir, args...)
	if err != nil {
		w.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return out
}

// refused runs git and wants it to fail with a hint at what to type.
func (w *world) refused(args ...string) {
	w.t.Helper()
	out, err := w.try(w.repo, args...)
	if err == nil || !strings.Contains(out, "agentguard hooks approve") {
		w.t.Errorf("git %q: %v, %q; want it refused with a hint", args, err, out)
	}
}

// commitSource writes hooks into the source and commits them.
func (w *world) commitSource(files map[string]string) {
	w.t.Helper()
	put(w.t, filepath.Join(w.repo, DefaultSource), files)
	w.git("add", "-A")
	w.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "hooks")
}

func (w *world) options(dir string) Options {
	w.t.Helper()
	repo, err := git.Open(dir)
	must(w.t, err)
	w.t.Cleanup(func() { must(w.t, repo.Close()) })
	return Options{Repo: repo, StateDir: w.state, Home: w.home}
}

func (w *world) install() State {
	w.t.Helper()
	s, err := Install(w.options(w.repo))
	must(w.t, err)
	return s
}

func (w *world) status() State {
	w.t.Helper()
	s, err := Status(w.options(w.repo))
	must(w.t, err)
	return s
}

func (w *world) approve() State {
	w.t.Helper()
	p, err := Propose(w.options(w.repo))
	must(w.t, err)
	s, err := p.Approve()
	must(w.t, err)
	return s
}

// ran returns what the canary hooks wrote since the last call.
func (w *world) ran() string {
	w.t.Helper()
	data, err := os.ReadFile(w.canary)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	must(w.t, err)
	must(w.t, os.Remove(w.canary))
	return strings.TrimSpace(strings.ReplaceAll(string(data), "\n", " "))
}

func (w *world) wantRan(want string) {
	w.t.Helper()
	if got := w.ran(); got != want {
		w.t.Errorf("the hooks that ran: %q, want %q", got, want)
	}
}

func (w *world) commit() {
	w.t.Helper()
	w.git("commit", "-q", "--allow-empty", "-m", "x")
}

// hooksPath is what git itself says the setting is.
func (w *world) hooksPath() string {
	w.t.Helper()
	out, _ := w.try(w.repo, "config", "core.hooksPath") // a failure means that it is not set
	return strings.TrimSpace(out)
}

func kinds(s State) []ConflictKind {
	var list []ConflictKind
	for _, c := range s.Conflicts {
		list = append(list, c.Kind)
	}
	return list
}

// wantUntouched holds that a refused install left nothing behind.
func (w *world) wantUntouched() {
	w.t.Helper()
	if out, err := w.try(w.repo, "config", "--local", "core.hooksPath"); err == nil {
		w.t.Errorf("core.hooksPath is %q", out)
	}
	left, err := filepath.Glob(filepath.Join(w.state, "hooks/*"))
	if err != nil || len(left) != 0 {
		w.t.Errorf("left behind: %q (%v)", left, err)
	}
}

func isMissing(err error) bool {
	var se *SourceError
	return errors.As(err, &se) && se.Missing
}

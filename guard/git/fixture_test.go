package git

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// requireGit skips without git, or fails where AGENTGUARD_REQUIRE asks for it.
func requireGit(tb testing.TB) {
	tb.Helper()
	if _, err := exec.LookPath("git"); err == nil {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("AGENTGUARD_REQUIRE"), ","), "git") {
		tb.Fatal("git is required and not installed")
	}
	tb.Skip("git is not installed")
}

// fixture is a directory with a HOME in which the real git runs.
type fixture struct {
	testing.TB
	dir, home string
}

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	requireGit(tb)
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	f := &fixture{TB: tb, dir: dir, home: filepath.Join(dir, "home")}
	f.mkdir("home")
	f.write("home/.gitconfig", "[user]\n\tname = t\n\temail = t@example.com\n[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n[advice]\n\tdetachedHead = false\n[gc]\n\tauto = 0\n[core]\n\tfsync = none\n")
	return f
}

func (f *fixture) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fixture) mkdir(name string) string {
	f.Helper()
	if err := os.MkdirAll(f.path(name), 0o755); err != nil {
		f.Fatal(err)
	}
	return f.path(name)
}

func (f *fixture) write(name, content string) {
	f.Helper()
	f.mkdir(filepath.Dir(name))
	if err := os.WriteFile(f.path(name), []byte(content), 0o644); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) symlink(target, name string) {
	f.Helper()
	if err := os.Symlink(target, f.path(name)); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) remove(name string) {
	f.Helper()
	if err := os.RemoveAll(f.path(name)); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) rename(from, to string) {
	f.Helper()
	if err := os.Rename(f.path(from), f.path(to)); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) read(name string) string {
	f.Helper()
	data, err := os.ReadFile(f.path(name))
	if err != nil {
		f.Fatal(err)
	}
	return string(data)
}

// command is git in dir with the fixture's HOME and nothing of the caller's
// environment.
func (f *fixture) command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = f.path(dir)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + f.home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
	}
	return cmd
}

// git runs the real git in dir and returns its output without the last line
// end.
func (f *fixture) git(dir string, args ...string) string {
	f.Helper()
	cmd := f.command(dir, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		f.Fatalf("git %q in %s: %v\n%s", args, dir, err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// repo makes a repository with one commit.
func (f *fixture) repo(name string, initArgs ...string) {
	f.Helper()
	f.mkdir(name)
	f.git(name, append([]string{"init", "-q"}, initArgs...)...)
	f.write(name+"/a", "a\n")
	f.git(name, "add", "a")
	f.git(name, "commit", "-qm", "init")
}

func (f *fixture) open(name string) *Repo {
	f.Helper()
	r, err := Open(f.path(name))
	if err != nil {
		f.Fatalf("Open(%s): %v", name, err)
	}
	f.Cleanup(func() { _ = r.Close() })
	return r
}

// hash parses what git printed.
func (f *fixture) hash(s string) Hash {
	f.Helper()
	h, err := ParseHash(s)
	if err != nil {
		f.Fatal(err)
	}
	return h
}

func errType(err error) string {
	for u := err; u != nil; {
		if t := fmt.Sprintf("%T", u); strings.HasPrefix(t, "*git.") {
			return strings.TrimPrefix(t, "*git.")
		}
		w, ok := u.(interface{ Unwrap() error })
		if !ok {
			return fmt.Sprintf("%T", err)
		}
		u = w.Unwrap()
	}
	return ""
}

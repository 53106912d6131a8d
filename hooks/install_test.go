package hooks

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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

func TestInstallRunsApproved(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre"), "commit-msg": canary(w.canary, "msg"), "lib.sh": "x"})
	s := w.install()
	if !s.Installed || !s.Managed || s.Blocked() || len(s.Differs) != 0 || len(s.Conflicts) != 0 {
		t.Errorf("after Install: %+v", s)
	}
	if !slices.Equal(s.Hooks, []string{"commit-msg", "pre-commit"}) {
		t.Errorf("Hooks = %q", s.Hooks)
	}
	if w.hooksPath() != s.Expected || s.Path != s.Expected || !within(w.state, s.Dir) {
		t.Errorf("git has %q, the state says %+v", w.hooksPath(), s)
	}
	w.commit()
	w.wantRan("pre msg")
	must(t, os.MkdirAll(filepath.Join(w.repo, "sub"), 0o755))
	w.gitAt(filepath.Join(w.repo, "sub"), "commit", "-q", "--allow-empty", "-m", "below")
	w.wantRan("pre msg")
}

func TestInstallIsIdempotent(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre")})
	first := w.install()
	listing := func() string {
		out := ""
		entries, err := os.ReadDir(first.Dir)
		must(t, err)
		for _, e := range entries {
			out += e.Name() + " "
		}
		return out
	}
	before, config := listing(), w.git("config", "--local", "--list")
	w.install()
	if listing() != before || w.git("config", "--local", "--list") != config {
		t.Errorf("a second Install changes %q to %q", before, listing())
	}
	w.commit()
	w.wantRan("pre")
}

func TestEditBlocksUntilApproved(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "old")})
	w.install()
	put(t, w.repo, map[string]string{DefaultSource + "/pre-commit": canary(w.canary, "new")})
	w.refused("commit", "-q", "--allow-empty", "-m", "x")
	w.wantRan("")
	s := w.status()
	if !s.Blocked() || !slices.Equal(s.Differs, []Difference{{Path: "pre-commit", Kind: Changed}}) {
		t.Errorf("Differs = %v", s.Differs)
	}
	// A second Install is no approval.
	if s = w.install(); !s.Blocked() {
		t.Errorf("Install approved a change: %+v", s)
	}
	p, err := Propose(w.options(w.repo))
	must(t, err)
	if d := p.Diff(); !strings.Contains(d, "\n-echo 'old'") || !strings.Contains(d, "\n+echo 'new'") {
		t.Errorf("Diff:\n%s", d)
	}
	if s = w.approve(); s.Blocked() || !s.Managed {
		t.Errorf("after Approve: %+v", s)
	}
	w.commit()
	w.wantRan("new")
}

// TestApproveTakesWhatWasShown edits the source between showing and approving.
func TestApproveTakesWhatWasShown(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "old")})
	w.install()
	put(t, w.repo, map[string]string{DefaultSource + "/pre-commit": canary(w.canary, "shown")})
	p, err := Propose(w.options(w.repo))
	must(t, err)
	put(t, w.repo, map[string]string{DefaultSource + "/pre-commit": canary(w.canary, "slipped in")})
	s, err := p.Approve()
	must(t, err)
	if !s.Blocked() {
		t.Error("what was not shown blocks nothing")
	}
	w.refused("commit", "-q", "--allow-empty", "-m", "x")
	w.wantRan("")
	put(t, w.repo, map[string]string{DefaultSource + "/pre-commit": canary(w.canary, "shown")})
	w.commit()
	w.wantRan("shown")

	if _, err := p.Approve(); !errors.As(err, new(*StaleError)) {
		t.Errorf("approving an old proposal: %v, want a StaleError", err)
	}
}

// TestCheckoutSwapsHooks is the attack on a tracked core.hooksPath: a branch
// brings a post-checkout, which runs in the very checkout that wrote it.
func TestCheckoutSwapsHooks(t *testing.T) {
	for _, tc := range []struct {
		name   string
		path   string // core.hooksPath, empty: installed
		before string // what a checkout on the good side runs
		swap   string // what the checkout of their branch runs
	}{
		{"tracked directory, the control", DefaultSource, "good", "evil"},
		{"installed", "", "good", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.commitSource(map[string]string{"post-checkout": canary(w.canary, "good")})
			w.git("checkout", "-q", "-b", "theirs")
			w.commitSource(map[string]string{"post-checkout": canary(w.canary, "evil"), "post-merge": canary(w.canary, "evil merge")})
			w.git("checkout", "-q", "main")
			if tc.path == "" {
				w.install()
			} else {
				w.git("config", "core.hooksPath", tc.path)
			}
			w.git("checkout", "-q", "-b", "mine")
			w.wantRan(tc.before)
			out, _ := w.try(w.repo, "checkout", "-q", "theirs") // a refusing post-checkout is its status
			w.wantRan(tc.swap)
			if tc.path != "" {
				return
			}
			if !strings.Contains(out, "agentguard hooks approve") {
				t.Errorf("checkout of their branch says %q", out)
			}
			if s := w.status(); !s.Blocked() || len(s.Differs) != 2 {
				t.Errorf("Differs = %v", s.Differs)
			}
			w.refused("commit", "-q", "--allow-empty", "-m", "x")
			w.wantRan("")
			w.git("checkout", "-q", "mine")
			w.wantRan("good")
		})
	}
}

// TestPullSwapsHooks is the same through a pull.
func TestPullSwapsHooks(t *testing.T) {
	for _, tc := range []struct {
		name string
		path string
		want string
	}{
		{"tracked directory, the control", DefaultSource, "evil"},
		{"installed", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.commitSource(map[string]string{"commit-msg": canary(w.canary, "good")})
			up := w.repo + "-up"
			w.git("clone", "-q", "--bare", w.repo, up)
			w.git("remote", "add", "origin", up)
			w.git("checkout", "-q", "-b", "theirs")
			w.commitSource(map[string]string{"post-merge": canary(w.canary, "evil")})
			w.git("push", "-q", "origin", "theirs:main")
			w.git("checkout", "-q", "main")
			if tc.path == "" {
				w.install()
			} else {
				w.git("config", "core.hooksPath", tc.path)
			}
			w.git("pull", "-q", "--ff-only", "origin", "main")
			w.wantRan(tc.want)
			if tc.path == "" {
				w.refused("commit", "-q", "--allow-empty", "-m", "x")
				w.wantRan("")
			}
		})
	}
}

func TestOlderBranchRunsApproved(t *testing.T) {
	w := newWorld(t)
	w.git("branch", "old")
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre")})
	w.install()
	w.git("checkout", "-q", "old")
	w.commit()
	w.wantRan("pre")
	if s := w.status(); s.Blocked() || !slices.Equal(s.Differs, []Difference{{Kind: Removed}}) {
		t.Errorf("on a branch without the source: %+v", s)
	}
}

func TestLinkedWorktree(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre")})
	w.git("branch", "theirs")
	w.install()
	linked := w.repo + "-linked"
	w.git("worktree", "add", "-q", linked, "theirs")
	w.gitAt(linked, "commit", "-q", "--allow-empty", "-m", "x")
	w.wantRan("pre")
	put(t, linked, map[string]string{DefaultSource + "/pre-commit": canary(w.canary, "evil")})
	if out, err := w.try(linked, "commit", "-q", "--allow-empty", "-m", "x"); err == nil {
		t.Errorf("a commit in the linked worktree went through: %s", out)
	}
	w.commit() // the other work tree's hooks are as approved
	w.wantRan("pre")
	s, err := Status(w.options(linked))
	must(t, err)
	if !s.Managed || !s.Blocked() {
		t.Errorf("in the linked worktree: %+v", s)
	}
}

func TestUninstallRestores(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before string // core.hooksPath before, empty for none
	}{
		{"unset", ""},
		{"the tracked directory", DefaultSource},
		{"a directory without hooks", "/nonexistent/hooks"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre")})
			if tc.before != "" {
				w.git("config", "core.hooksPath", tc.before)
			}
			s := w.install()
			w.install() // must not take its own value for the earlier one
			after, err := Uninstall(w.options(w.repo))
			must(t, err)
			if after.Installed || after.Managed || w.hooksPath() != tc.before {
				t.Errorf("core.hooksPath is %q, want %q; %+v", w.hooksPath(), tc.before, after)
			}
			if _, err := os.Lstat(s.Dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the state is still there: %v", err)
			}
			if _, err := Uninstall(w.options(w.repo)); err != nil {
				t.Errorf("a second Uninstall: %v", err)
			}
		})
	}
}

func TestUninstallLeavesWhatOthersSet(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre")})
	w.install()
	w.git("config", "core.hooksPath", ".husky/_")
	_, err := Uninstall(w.options(w.repo))
	must(t, err)
	if got := w.hooksPath(); got != ".husky/_" {
		t.Errorf("core.hooksPath is %q", got)
	}
}

func TestRepointedIsNoticed(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre")})
	w.install()
	put(t, w.repo, map[string]string{".husky/_/pre-commit": "#!/bin/sh\n. husky.sh\n"})
	w.git("config", "core.hooksPath", ".husky/_") // what a package manager's "prepare" does
	s := w.status()
	if s.Managed || !slices.Equal(kinds(s), []ConflictKind{Repointed}) || s.Conflicts[0].Manager != "husky" {
		t.Errorf("%+v", s)
	}
	_, err := Install(w.options(w.repo))
	var ce *ConflictError
	if !errors.As(err, &ce) || ce.Conflicts[0].Kind != OtherHooks {
		t.Errorf("Install over husky: %v, want a ConflictError", err)
	}
	o := w.options(w.repo)
	o.Replace = true
	s, err = Install(o)
	must(t, err)
	if !s.Managed {
		t.Errorf("after Install with Replace: %+v", s)
	}
	w.git("config", "--unset", "core.hooksPath")
	if s = w.status(); s.Managed || !slices.Equal(kinds(s), []ConflictKind{Repointed}) {
		t.Errorf("unset: %+v", s)
	}
}

func TestRelativeGlobalIsRefused(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre")})
	w.git("config", "--global", "core.hooksPath", ".githooks")
	_, err := Install(w.options(w.repo))
	var re *RelativeGlobalError
	if !errors.As(err, &re) || re.Value != ".githooks" || re.Origin != filepath.Join(w.home, ".gitconfig") {
		t.Fatalf("Install = %v, want a RelativeGlobalError", err)
	}
	w.wantUntouched()
	w.git("config", "--global", "core.hooksPath", "~/hooks")
	if s := w.install(); !s.Managed {
		t.Errorf("with an absolute global value: %+v", s)
	}
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

func TestWorktreeScopeIsAConflict(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre")})
	w.git("config", "extensions.worktreeConfig", "true")
	w.git("config", "--worktree", "core.hooksPath", "/elsewhere")
	_, err := Install(w.options(w.repo))
	var ce *ConflictError
	if !errors.As(err, &ce) || ce.Conflicts[0].Kind != WorktreeScope {
		t.Fatalf("Install = %v, want a conflict about the worktree's configuration", err)
	}
	w.wantUntouched()
	w.git("config", "--worktree", "--unset", "core.hooksPath")
	w.install()
	w.git("config", "--worktree", "core.hooksPath", "/elsewhere")
	if s := w.status(); s.Managed || !slices.Equal(kinds(s), []ConflictKind{WorktreeScope}) {
		t.Errorf("set afterwards: %+v", s)
	}
}

func TestExistingHooks(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"commit-msg": canary(w.canary, "msg")})
	put(t, w.repo, map[string]string{".git/hooks/pre-commit": canary(w.canary, "existing"), ".git/hooks/helper": "#!/bin/sh\n"})
	s := w.install()
	if !slices.Equal(kinds(s), []ConflictKind{OtherHooks}) || filepath.Base(s.Conflicts[0].Path) != "pre-commit" {
		t.Errorf("existing hooks are not told: %+v", s)
	}
	_, err := Uninstall(w.options(w.repo))
	must(t, err)

	o := w.options(w.repo)
	o.Adopt = true
	s, err = Install(o)
	must(t, err)
	if !slices.Equal(s.Adopted, []string{DefaultSource + "/pre-commit"}) || len(s.Conflicts) != 0 || s.Blocked() {
		t.Errorf("after adopting: %+v", s)
	}
	w.commit()
	w.wantRan("existing msg")
}

func TestAdoptWithoutSource(t *testing.T) {
	w := newWorld(t)
	if _, err := Install(w.options(w.repo)); !isMissing(err) {
		t.Errorf("Install without a source: %v", err)
	}
	o := w.options(w.repo)
	o.Adopt = true
	if _, err := Install(o); !isMissing(err) {
		t.Errorf("Install with nothing to adopt: %v", err)
	}
	w.wantUntouched()
	put(t, w.repo, map[string]string{".git/hooks/pre-commit": canary(w.canary, "existing")})
	s, err := Install(o)
	must(t, err)
	if !s.Managed || len(s.Adopted) != 1 {
		t.Errorf("%+v", s)
	}
	w.commit()
	w.wantRan("existing")
}

func isMissing(err error) bool {
	var se *SourceError
	return errors.As(err, &se) && se.Missing
}

func TestAdoptClash(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "tracked")})
	put(t, w.repo, map[string]string{".git/hooks/pre-commit": canary(w.canary, "existing")})
	o := w.options(w.repo)
	o.Adopt = true
	if _, err := Install(o); !errors.As(err, new(*ConflictError)) {
		t.Errorf("Install = %v, want a ConflictError", err)
	}
	w.wantUntouched()
}

func TestBadSources(t *testing.T) {
	for _, tc := range []struct {
		name   string
		source string
		files  map[string]string
	}{
		{"missing", "", nil},
		{"outside", "../hooks", nil},
		{"absolute", "/etc", nil},
		{"the top itself", ".", nil},
		{"the git directory", ".git/hooks", nil},
		{"the git directory in capitals", ".GIT/hooks", map[string]string{".GIT/hooks/a": "1"}},
		{"a link", "", map[string]string{"d/": "", ".githooks": "-> d"}},
		{"a linked hook", "", map[string]string{"x": "#!/bin/sh\n", ".githooks/pre-commit": "-> ../x"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			put(t, w.repo, tc.files)
			o := w.options(w.repo)
			o.Source = tc.source
			if _, err := Install(o); !errors.As(err, new(*SourceError)) {
				t.Errorf("Install = %v, want a SourceError", err)
			}
			w.wantUntouched()
		})
	}
}

func TestStateInsideWorkTreeIsRefused(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre")})
	must(t, os.Symlink(w.repo, filepath.Join(w.home, "link")))
	linked := w.repo + "-linked"
	w.git("worktree", "add", "-q", "--detach", linked)
	for _, dir := range []string{w.repo, filepath.Join(w.repo, "state"), filepath.Join(w.repo, ".git/state"), filepath.Join(w.home, "link/state"), filepath.Join(linked, "s"), "relative"} {
		o := w.options(w.repo)
		o.StateDir = dir
		if s, err := Install(o); err == nil {
			t.Errorf("StateDir %q is accepted: %+v", dir, s)
		}
	}
	if got := w.hooksPath(); got != "" {
		t.Errorf("core.hooksPath is %q", got)
	}
}

func TestAlteredStateIsTold(t *testing.T) {
	for _, tc := range []struct {
		name  string
		alter func(w *world, s State)
		mends bool // a second Install does
	}{
		{"a shim replaced", func(w *world, s State) {
			put(w.t, s.Expected, map[string]string{"pre-commit": canary(w.canary, "evil")})
		}, true},
		{"a shim added", func(w *world, s State) {
			put(w.t, s.Expected, map[string]string{"post-merge": canary(w.canary, "evil")})
		}, true},
		{"a copy replaced", func(w *world, s State) {
			put(w.t, filepath.Join(s.Dir, currentName, copyName), map[string]string{"pre-commit": canary(w.canary, "evil")})
		}, false},
		{"the copies gone", func(w *world, s State) {
			must(w.t, removeTree(filepath.Join(s.Dir, currentName)+"/"+copyName))
		}, false},
		{"the link gone", func(w *world, s State) { must(w.t, os.Remove(filepath.Join(s.Dir, currentName))) }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre")})
			s := w.install()
			for _, dir := range []string{s.Expected, filepath.Join(s.Dir, currentName, copyName)} {
				must(t, os.Chmod(dir, 0o755))
			}
			tc.alter(w, s)
			if s := w.status(); s.Managed || !slices.Contains(kinds(s), Altered) {
				t.Errorf("Status does not tell: %+v", s)
			}
			_, err := Install(w.options(w.repo))
			if (err == nil) != tc.mends {
				t.Fatalf("a second Install: %v, want it to mend: %v", err, tc.mends)
			}
			if !tc.mends {
				p, err := Propose(w.options(w.repo))
				must(t, err)
				if p.Diff() == "" {
					t.Error("nothing is shown, though what is approved is not known any more")
				}
				_, err = p.Approve()
				must(t, err)
			}
			if s := w.status(); !s.Managed {
				t.Errorf("afterwards: %+v", s)
			}
			w.commit()
			w.wantRan("pre")
		})
	}
}

func TestConfigHooksAndModesAreTold(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre"), "commit-msg": "echo not executable\n"})
	w.git("config", "hook.x.command", "true")
	if got := kinds(w.install()); !slices.Equal(got, []ConflictKind{NotExecutable, ConfigHook}) {
		t.Errorf("conflicts %v", got)
	}
}

// TestLeftoversOfACrash puts what a crash can leave and installs over it.
func TestLeftoversOfACrash(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre")})
	o := w.options(w.repo)
	st := storeOf(w.state, o.Repo.CommonDir)
	put(t, st.dir, map[string]string{"tmp-12/copy/x": "1", "tmp-record.json": "{", "tmp-current": "-> v-1", "v-0/copy/a": "1"})
	s, err := Install(o)
	must(t, err)
	left, err := filepath.Glob(filepath.Join(s.Dir, "*"))
	must(t, err)
	if len(left) != 4 { // the lock, the record, the link and its version
		t.Errorf("in the state: %q", left)
	}
	w.commit()
	w.wantRan("pre")
}

// TestOtherRepositoryAtThePath holds that what was approved for one repository
// is not taken for another's that lies where it lay.
func TestOtherRepositoryAtThePath(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre")})
	w.install()
	must(t, os.Rename(w.repo, w.repo+"-old"))
	must(t, os.Mkdir(w.repo, 0o755))
	w.git("init", "-q", "-b", "main")
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "other")})
	if s := w.status(); s.Installed || s.Managed {
		t.Errorf("installed already: %+v", s)
	}
	p, err := Propose(w.options(w.repo))
	must(t, err)
	if !slices.Equal(p.Differs(), []Difference{{Path: "pre-commit", Kind: Added}}) {
		t.Errorf("Differs = %v", p.Differs())
	}
	if _, err := p.Approve(); !errors.As(err, new(*NotInstalledError)) {
		t.Errorf("Approve = %v, want a NotInstalledError", err)
	}
	w.install()
	w.commit()
	w.wantRan("other")
}

func TestApproveWithoutInstall(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "pre")})
	p, err := Propose(w.options(w.repo))
	must(t, err)
	if _, err := p.Approve(); !errors.As(err, new(*NotInstalledError)) {
		t.Errorf("Approve = %v, want a NotInstalledError", err)
	}
	w.wantUntouched()
}

// TestHookStatusesReachGit checks a hook with input and one whose status git
// acts on.
func TestHookStatusesReachGit(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{
		"commit-msg":            "#!/bin/sh\n! grep -q bad \"$1\"\n",
		"reference-transaction": "#!/bin/sh\nread old new ref && [ \"$1\" = committed ] && echo \"$ref\" >>'" + w.canary + "'\nexit 0\n",
	})
	w.install()
	if out, err := w.try(w.repo, "commit", "-q", "--allow-empty", "-m", "bad"); err == nil {
		t.Errorf("a refusing commit-msg is not heard: %s", out)
	}
	if got := w.ran(); got != "" {
		t.Errorf("refs changed: %q", got)
	}
	w.commit()
	if got := w.ran(); !strings.Contains(got, "refs/heads/main") && !strings.Contains(got, "HEAD") {
		t.Errorf("reference-transaction saw %q", got)
	}
}

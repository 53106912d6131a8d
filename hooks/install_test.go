package hooks

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"agentguard/guard/git"
)

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

func TestBareIsRefused(t *testing.T) {
	w := newWorld(t)
	bare := w.repo + ".git"
	w.git("clone", "-q", "--bare", w.repo, bare)
	repo, err := git.OpenBare(bare)
	must(t, err)
	defer repo.Close()
	if s, err := Install(Options{Repo: repo, StateDir: w.state, Home: w.home}); err == nil {
		t.Errorf("Install in a bare repository: %+v", s)
	}
}

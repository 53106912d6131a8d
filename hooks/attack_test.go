package hooks

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

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

func TestSubmodule(t *testing.T) {
	w := newWorld(t)
	w.commitSource(map[string]string{"pre-commit": canary(w.canary, "sub")})
	outer := w.repo + "-outer"
	must(t, os.Mkdir(outer, 0o755))
	w.gitAt(outer, "init", "-q", "-b", "main")
	w.gitAt(outer, "submodule", "--quiet", "add", w.repo, "sub")
	sub := filepath.Join(outer, "sub")
	s, err := Install(w.options(sub))
	must(t, err)
	if !s.Managed {
		t.Errorf("in a submodule: %+v", s)
	}
	w.gitAt(sub, "commit", "-q", "--allow-empty", "-m", "x")
	w.wantRan("sub")
	w.gitAt(outer, "commit", "-q", "-m", "outer") // has hooks of its own, and none are installed
	w.wantRan("")
}

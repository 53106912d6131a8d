package git

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestWorktreesSubmodulesGitDirs(t *testing.T) {
	f := newFixture(t)
	f.repo("inner")
	f.repo("mid")
	f.git("mid", "submodule", "--quiet", "add", f.path("inner"), "deep")
	f.git("mid", "commit", "-qm", "deep")
	f.repo("ws")
	f.git("ws", "submodule", "--quiet", "add", "--name", "group/mid", f.path("mid"), "libs/mid")
	f.git("ws", "submodule", "--quiet", "update", "--init", "--recursive")
	f.git("ws", "commit", "-qm", "mid")
	f.git("ws", "worktree", "add", "-q", "-b", "one", f.path("w1"))
	f.git("ws", "worktree", "add", "-q", "-b", "two", f.path("w2"))
	f.git("w1", "submodule", "--quiet", "update", "--init")
	f.remove("w2")
	f.write("ws/.git/modules/group/notes", "no git directory")
	f.git("ws", "config", "-f", ".gitmodules", "submodule.absent.path", "libs/absent")
	r := f.open("ws")

	worktrees, err := r.Worktrees()
	if err != nil {
		t.Fatal(err)
	}
	want := []Worktree{
		{Name: "w1", AdminDir: f.path("ws/.git/worktrees/w1"), Path: f.path("w1")},
		{Name: "w2", AdminDir: f.path("ws/.git/worktrees/w2"), Path: f.path("w2")},
	}
	if !slices.Equal(worktrees, want) {
		t.Errorf("Worktrees = %+v, want %+v", worktrees, want)
	}
	submodules, err := r.Submodules()
	if err != nil {
		t.Fatal(err)
	}
	wantSub := []Submodule{
		{Name: "absent", Path: "libs/absent"},
		{Name: "group/mid", Path: "libs/mid", GitDir: f.path("ws/.git/modules/group/mid")},
		{Name: "group/mid/modules/deep", GitDir: f.path("ws/.git/modules/group/mid/modules/deep")},
	}
	if !slices.Equal(submodules, wantSub) {
		t.Errorf("Submodules = %+v, want %+v", submodules, wantSub)
	}
	wantDirs := []string{
		".git", ".git/modules/group/mid", ".git/modules/group/mid/modules/deep", ".git/worktrees/w1",
		".git/worktrees/w1/modules/group/mid", ".git/worktrees/w2",
	}
	for _, dir := range []string{"ws", "w1"} {
		dirs, err := f.open(dir).GitDirs()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range dirs {
			rel, err := filepath.Rel(f.path("ws"), d)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rel)
		}
		if !slices.Equal(got, wantDirs) {
			t.Errorf("GitDirs of %s = %q, want %q", dir, got, wantDirs)
		}
	}
}

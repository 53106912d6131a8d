package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"agentguard/guard/surface"
)

// TestAgreesWithGoGit reads one repository with this package and with go-git,
// which shares no code with it: refs, index, trees and contents must be the
// same. go-git is too slow to start and to compare trees for every command,
// and just right as a second opinion.
func TestAgreesWithGoGit(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	run("init", "-q", "-b", "main")
	for name, text := range map[string]string{"a": "one\n", "d/b": "two\n", "d/e/c": strings.Repeat("line\n", 5000)} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	run("add", "-A")
	run("commit", "-qm", "one")
	run("tag", "-a", "v1", "-m", "v1")
	run("branch", "other")
	run("gc", "-q")
	if err := os.WriteFile(filepath.Join(dir, "d/e/c"), []byte(strings.Repeat("line\n", 4999)+"end\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	run("commit", "-qam", "two")

	ours, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	theirs, err := gogit.PlainOpen(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, rev := range []string{"HEAD", "refs/heads/main", "refs/heads/other", "refs/tags/v1", "HEAD~1"} {
		want, err := theirs.ResolveRevision(plumbing.Revision(rev))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ours.Resolve(rev + "^{commit}")
		if err != nil || got.String() != want.String() {
			t.Errorf("%s is %s (%v), go-git says %s", rev, got, err, want)
		}
		compareTree(t, ours, theirs, rev, *want)
	}
	index, err := theirs.Storer.Index()
	if err != nil {
		t.Fatal(err)
	}
	x, err := ours.Index()
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Entries) != len(index.Entries) {
		t.Fatalf("%d index entries, go-git reads %d", len(x.Entries), len(index.Entries))
	}
	for i, e := range index.Entries {
		if o := x.Entries[i]; o.Path != e.Name || o.Hash.String() != e.Hash.String() || o.Mode != uint32(e.Mode) {
			t.Errorf("index entry %d is %v, go-git reads %s %v %s", i, o, e.Name, e.Mode, e.Hash)
		}
	}
}

func compareTree(t *testing.T, ours *Repo, theirs *gogit.Repository, rev string, h plumbing.Hash) {
	t.Helper()
	commit, err := theirs.CommitObject(h)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	files, err := commit.Files()
	if err != nil {
		t.Fatal(err)
	}
	if err := files.ForEach(func(f *object.File) error { want[f.Name] = f.Hash.String(); return nil }); err != nil {
		t.Fatal(err)
	}
	tree, err := ours.Tree(rev)
	if err != nil {
		t.Fatal(err)
	}
	err = tree.Walk(func(e surface.WalkEntry) error {
		if e.Type == surface.Dir {
			return nil
		}
		if want[e.Path] != e.Hash {
			t.Errorf("%s:%s is %s, go-git reads %s", rev, e.Path, e.Hash, want[e.Path])
		}
		delete(want, e.Path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range want {
		t.Errorf("%s:%s is missing", rev, name)
	}
}

package git

import (
	"fmt"
	"strings"
	"testing"
)

func refMap(t *testing.T, r *Repo) map[string]Ref {
	t.Helper()
	refs, err := r.Refs()
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]Ref{}
	for i, ref := range refs {
		if i > 0 && refs[i-1].Name >= ref.Name {
			t.Errorf("%q is not sorted or there twice", ref.Name)
		}
		m[ref.Name] = ref
	}
	return m
}

func TestRefsAsGit(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			f := newFixture(t)
			f.history("ws", "--object-format="+format)
			f.git("ws", "branch", "packed")
			f.git("ws", "branch", "feature/one")
			f.git("ws", "tag", "light", "HEAD~1")
			f.git("ws", "pack-refs", "--all")
			f.git("ws", "update-ref", "refs/heads/packed", "HEAD~2") // loose over packed
			f.git("ws", "branch", "-D", "-q", "feature/one")
			f.git("ws", "branch", "feature/two")
			f.git("ws", "symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/main")
			f.git("ws", "worktree", "add", "-q", "-b", "side", f.path("w2"), "HEAD~3")
			for i := range 3 {
				f.write("ws/a", fmt.Sprint("stash ", i))
				f.git("ws", "stash", "-q")
			}
			r := f.open("ws")
			refs := refMap(t, r)
			n := 0
			for line := range strings.Lines(f.git("ws", "for-each-ref", "--format=%(objectname) %(refname) %(symref)")) {
				fields := append(strings.Fields(line), "")
				if got := refs[fields[1]]; got.Hash.String() != fields[0] || got.Symbolic != fields[2] || got.Problem != "" {
					t.Errorf("%s is %+v, git says %s", fields[1], got, line)
				}
				n++
			}
			shared := 0
			for name := range refs {
				if strings.HasPrefix(name, "refs/") && !strings.Contains(name, "@{") {
					shared++
				}
			}
			if shared != n || n < 8 {
				t.Errorf("%d refs, git says %d", shared, n)
			}
			for i := range 3 {
				name := fmt.Sprintf("refs/stash@{%d}", i)
				if got, want := refs[name].Hash.String(), f.git("ws", "rev-parse", name); got != want {
					t.Errorf("%s = %s, want %s", name, got, want)
				}
			}
			if got := refs["HEAD"]; got.Symbolic != "refs/heads/main" || got.Hash.String() != f.git("ws", "rev-parse", "HEAD") {
				t.Errorf("HEAD = %+v", got)
			}
			if got := refs["worktrees/w2/HEAD"]; got.Symbolic != "refs/heads/side" || got.Hash.String() != f.git("w2", "rev-parse", "HEAD") {
				t.Errorf("HEAD of the worktree = %+v", got)
			}
			side := refMap(t, f.open("w2"))
			if got := side["HEAD"]; got.Symbolic != "refs/heads/side" {
				t.Errorf("HEAD from the worktree = %+v", got)
			}
			if got := side["main-worktree/HEAD"]; got.Symbolic != "refs/heads/main" || got.Hash.IsZero() {
				t.Errorf("main HEAD from the worktree = %+v", got)
			}
		})
	}
}

func TestRefsProblems(t *testing.T) {
	f := newFixture(t)
	f.repo("ws")
	f.symlink("main", "ws/.git/refs/heads/link")
	f.symlink("../heads", "ws/.git/refs/tags/dir")
	f.write("ws/.git/refs/heads/garbage", "garbage\n")
	f.write("ws/.git/refs/heads/short", "1234\n")
	f.write("ws/.git/refs/heads/long", strings.Repeat("1", 64)+"\n")
	f.write("ws/.git/refs/heads/out", "ref: ../../../etc/passwd\n")
	f.write("ws/.git/refs/heads/out2", "ref: refs/heads/../../config\n")
	f.write("ws/.git/refs/heads/loop1", "ref: refs/heads/loop2\n")
	f.write("ws/.git/refs/heads/loop2", "ref: refs/heads/loop1\n")
	f.write("ws/.git/refs/heads/new\nline", strings.Repeat("1", 40)+"\n")
	f.write("ws/.git/refs/heads/dangling", "ref: refs/heads/unborn\n")
	mkfifo(f, "ws/.git/refs/heads/fifo")
	refs := refMap(t, f.open("ws"))
	for name, want := range map[string]string{
		"refs/heads/link": "symbolic link", "refs/tags/dir": "symbolic link", "refs/heads/garbage": "neither a hash",
		"refs/heads/short": "neither a hash", "refs/heads/long": "object format", "refs/heads/out": "no ref", "refs/heads/out2": "no ref",
		"refs/heads/loop1": "without end", "refs/heads/new\nline": "no ref", "refs/heads/fifo": "no regular file",
	} {
		got := refs[name]
		if !strings.Contains(got.Problem, want) || !got.Hash.IsZero() {
			t.Errorf("%q is %+v, want the problem %q", name, got, want)
		}
	}
	if got := refs["refs/heads/dangling"]; got.Problem != "" || !got.Hash.IsZero() || got.Symbolic != "refs/heads/unborn" {
		t.Errorf("dangling is %+v", got)
	}
	if refs["refs/heads/main"].Hash.IsZero() {
		t.Error("main has no hash")
	}
}

func TestRefsUnborn(t *testing.T) {
	f := newFixture(t)
	f.mkdir("ws")
	f.git("ws", "init", "-q")
	refs := refMap(t, f.open("ws"))
	if got := refs["HEAD"]; len(refs) != 1 || got.Symbolic != "refs/heads/main" || got.Problem != "" {
		t.Errorf("refs of an empty repository: %+v", refs)
	}
}

func TestResolveAsGit(t *testing.T) {
	f := newFixture(t)
	f.history("ws")
	f.git("ws", "checkout", "-qb", "side", "HEAD~2")
	f.write("ws/side", "side\n")
	f.git("ws", "add", "side")
	f.git("ws", "commit", "-qm", "side")
	f.git("ws", "checkout", "-q", "main")
	f.git("ws", "merge", "-q", "--no-edit", "side")
	f.git("ws", "branch", "v1") // a branch and a tag of one name
	f.git("ws", "update-ref", "refs/remotes/origin/x", "HEAD~1")
	f.git("ws", "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/x")
	head := f.git("ws", "rev-parse", "HEAD")
	revs := []string{
		"HEAD", "@", "main", "side", "heads/main", "refs/heads/main", "v1", "tags/v1", "heads/v1", "origin/x", "origin",
		"HEAD~1", "HEAD~", "HEAD^", "HEAD^2", "HEAD^2~1", "HEAD~2^1", "HEAD^0", "HEAD~0", "HEAD^{tree}", "HEAD^{commit}", "v1^{}", "v1^{tree}",
		"v1~1", "v1^{tag}", head, head[:10], head[:11], head[:10] + "^{tree}", strings.ToUpper(head),
	}
	for _, packed := range []bool{false, true} {
		if packed {
			f.git("ws", "gc", "-q")
		}
		r := f.open("ws")
		for _, rev := range revs {
			h, err := r.Resolve(rev)
			if want := f.git("ws", "rev-parse", rev); err != nil || h.String() != want {
				t.Errorf("Resolve(%q) = %v, %v, want %v", rev, h, err, want)
			}
		}
		for _, rev := range []string{
			"", "none", "HEAD^3", "HEAD~99", "HEAD^{blob}", "HEAD^{x}", "HEAD^{", "HEAD~99999999999999999999", strings.Repeat("1", 40), "1", "abc",
			"../config", "refs/heads/../../config", "HEAD:a", "-h", "main@{1}",
		} {
			if h, err := r.Resolve(rev); errType(err) != "RevisionError" {
				t.Errorf("Resolve(%q) = %v, %v", rev, h, err)
			}
		}
	}
}

func TestResolvePrefixAmbiguous(t *testing.T) {
	f := newFixture(t)
	f.repo("ws")
	// Two blobs whose names share their first four digits, found by search.
	seen := map[string]string{}
	var prefix string
	for i := 0; prefix == ""; i++ {
		text := fmt.Sprint(i)
		h := SHA1.HashObject([]byte(text)).String()
		if other, ok := seen[h[:4]]; ok {
			prefix = h[:4]
			f.write("ws/one", text)
			f.write("ws/two", other)
			f.git("ws", "hash-object", "-w", "one", "two")
		}
		seen[h[:4]] = text
	}
	r := f.open("ws")
	if _, err := r.Resolve(prefix); err == nil || !strings.Contains(err.Error(), "more than one") {
		t.Errorf("Resolve(%q): %v", prefix, err)
	}
	long := r.HashObject([]byte(f.read("ws/one")))
	for n := 4; n <= 40; n++ {
		if h, err := r.Resolve(long[:n]); n > 10 && (err != nil || h.String() != long) {
			t.Errorf("Resolve(%q) = %v, %v", long[:n], h, err)
		}
	}
}

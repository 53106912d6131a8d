package git

import (
	"crypto/sha1"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentguard/guard/surface"
)

// lsFiles prints an index as git ls-files --stage -v -z does.
func lsFiles(x *Index) string {
	var b strings.Builder
	for _, e := range x.Entries {
		tag := "H"
		switch {
		case e.Stage > 0:
			tag = "M"
		case e.SkipWorktree:
			tag = "S"
		}
		if e.AssumeValid {
			tag = strings.ToLower(tag)
		}
		fmt.Fprintf(&b, "%s %06o %s %d\t%s\x00", tag, e.Mode, e.Hash, e.Stage, e.Path)
	}
	return b.String()
}

// indexStates are things that can be in an index.
var indexStates = []struct {
	name  string
	setup func(f *fixture)
	tree  bool // what write-tree makes of it can be compared
}{
	{"mixed", func(*fixture) {}, true},
	{"skip-worktree", func(f *fixture) { f.git("ws", "update-index", "--skip-worktree", "a", "dir/x") }, true},
	{"assume-unchanged", func(f *fixture) { f.git("ws", "update-index", "--assume-unchanged", "a", "dir/x") }, true},
	{"intent to add", func(f *fixture) { f.write("ws/later", "x"); f.git("ws", "add", "-N", "later") }, false},
	{"long names", func(f *fixture) {
		blob := f.git("ws", "rev-parse", "HEAD:a")
		for i := range 3 {
			f.git("ws", "update-index", "--add", "--cacheinfo", "100644,"+blob+","+strings.Repeat("long/", 900+i)+"x")
		}
	}, true},
	{"conflict", func(f *fixture) {
		f.git("ws", "checkout", "-qb", "side")
		f.write("ws/a", "side\n")
		f.git("ws", "rm", "-q", "exec")
		f.git("ws", "commit", "-qam", "side")
		f.git("ws", "checkout", "-q", "main")
		f.write("ws/a", "main\n")
		f.write("ws/exec", "main\n")
		f.git("ws", "commit", "-qam", "main")
		_ = f.command("ws", "merge", "-q", "side").Run() // fails: that is the point
	}, false},
	{"untracked cache and monitor", func(f *fixture) {
		f.git("ws", "update-index", "--untracked-cache")
		f.git("ws", "update-index", "--fsmonitor")
	}, true},
	{"no checksum", func(f *fixture) { f.git("ws", "-c", "index.skipHash=true", "update-index", "--force-write-index") }, true},
	{"index of threads", func(f *fixture) { f.git("ws", "-c", "index.threads=2", "update-index", "--force-write-index") }, true},
}

func TestIndexAsGit(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		for _, tc := range indexStates {
			if format == "sha256" && tc.name != "mixed" && tc.name != "conflict" {
				continue
			}
			t.Run(format+"/"+tc.name, func(t *testing.T) {
				f := newFixture(t)
				mixedTree(f, "--object-format="+format)
				tc.setup(f)
				r := f.open("ws")
				for _, version := range []int{2, 3, 4} {
					f.git("ws", "update-index", "--index-version", strconv.Itoa(version))
					x, err := r.Index()
					if err != nil {
						t.Fatal(err)
					}
					if version == 4 && x.Version != 4 {
						t.Errorf("version %d", x.Version)
					}
					if got, want := lsFiles(x), f.git("ws", "ls-files", "--stage", "-v", "-z"); got != want {
						t.Errorf("version %d:\ngot  %q\nwant %q", version, got, want)
					}
					if tc.tree {
						sameAsWritten(t, f, r, x)
					}
				}
			})
		}
	}
}

// sameAsWritten compares the index as a tree with the tree that git writes of
// it.
func sameAsWritten(t *testing.T, f *fixture, r *Repo, x *Index) {
	t.Helper()
	written, err := r.Tree(f.git("ws", "write-tree"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]surface.WalkEntry{}
	if err := written.Walk(func(e surface.WalkEntry) error { want[e.Path] = e; return nil }); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"": true}
	err = x.Tree(r).Walk(func(e surface.WalkEntry) error {
		parent := e.Path[:max(strings.LastIndexByte(e.Path, '/'), 0)]
		if !seen[parent] || seen[e.Path] {
			t.Errorf("%q came before its parent or twice", e.Path)
		}
		seen[e.Path] = true
		w := want[e.Path]
		if e.Type == surface.Dir {
			w.Hash = e.Hash
		}
		if e != w {
			t.Errorf("walked %+v, want %+v", e, w)
		}
		delete(want, e.Path)
		return nil
	})
	if err != nil || len(want) > 0 {
		t.Errorf("Walk: %v, not walked: %v", err, want)
	}
	checkMixed(t, x.Tree(r))
}

func TestIndexBits(t *testing.T) {
	f := newFixture(t)
	mixedTree(f)
	f.write("ws/later", "x")
	f.git("ws", "add", "-N", "later")
	x, err := f.open("ws").Index()
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(f.path("ws/dir0"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range x.Entries {
		if e.IntentToAdd != (e.Path == "later") {
			t.Errorf("IntentToAdd of %q is %v", e.Path, e.IntentToAdd)
		}
		if e.Path == "dir0" && (int64(e.Size) != fi.Size() || !e.Mtime.Equal(fi.ModTime())) {
			t.Errorf("size %d, time %v; on disk %d, %v", e.Size, e.Mtime, fi.Size(), fi.ModTime())
		}
	}
}

func TestIndexConflictAsTree(t *testing.T) {
	f := newFixture(t)
	mixedTree(f)
	indexStates[5].setup(f)
	r := f.open("ws")
	x, err := r.Index()
	if err != nil {
		t.Fatal(err)
	}
	tree := x.Tree(r)
	count := map[string]int{}
	if err := tree.Walk(func(e surface.WalkEntry) error { count[e.Path]++; return nil }); err != nil {
		t.Fatal(err)
	}
	if count["a"] != 1 || count["exec"] != 1 {
		t.Errorf("walked %v", count)
	}
	for path, want := range map[string]string{"a": "main\n", "exec": "main\n"} {
		if got := content(t, tree, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestSparseIndex(t *testing.T) {
	f := newFixture(t)
	mixedTree(f)
	f.git("ws", "sparse-checkout", "init", "--cone", "--sparse-index")
	f.git("ws", "sparse-checkout", "set", "z")
	r := f.open("ws")
	x, err := r.Index()
	if err != nil {
		t.Fatal(err)
	}
	sparse := false
	for _, e := range x.Entries {
		sparse = sparse || e.Path == "dir/" && e.Mode == modeDir && e.SkipWorktree
	}
	if !sparse {
		t.Fatalf("no sparse directory in %q", lsFiles(x))
	}
	tree := x.Tree(r)
	for path, want := range map[string]string{"dir/x": "content of dir/x\n", "dir/sub/deep/y": "content of dir/sub/deep/y\n"} {
		if got := content(t, tree, path); got != want {
			t.Errorf("%s is %q", path, got)
		}
	}
	head, err := r.Tree("HEAD")
	if err != nil {
		t.Fatal(err)
	}
	paths := func(tree surface.Tree) map[string]bool {
		m := map[string]bool{}
		if err := tree.Walk(func(e surface.WalkEntry) error { m[e.Path] = true; return nil }); err != nil {
			t.Fatal(err)
		}
		return m
	}
	got, want := paths(tree), paths(head)
	for p := range want {
		if !got[p] {
			t.Errorf("%q is not walked", p)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d paths, want %d", len(got), len(want))
	}
	if e, err := tree.Lstat("dir"); err != nil || e.Type != surface.Dir {
		t.Errorf("Lstat(dir) = %+v, %v", e, err)
	}
}

func TestIndexRefuses(t *testing.T) {
	f := newFixture(t)
	f.repo("ws")
	f.git("ws", "update-index", "--index-version", "2")
	good := f.read("ws/.git/index")
	sum := func(body string) string { s := sha1.Sum([]byte(body)); return body + string(s[:]) }
	body := good[:len(good)-20]
	for _, tc := range []struct{ name, data, want string }{
		{"empty", "", "CorruptError"},
		{"not an index", strings.Repeat("x", 100), "CorruptError"},
		{"bit flipped", good[:40] + "X" + good[41:], "CorruptError"},
		{"cut off", sum(body[:30]), "CorruptError"},
		{"too many entries", sum(body[:8] + "\xff\xff\xff\xff" + body[12:]), "CorruptError"},
		{"version 5", sum(body[:7] + "\x05" + body[8:]), "UnsupportedError"},
		{"required extension", sum(body + "novl\x00\x00\x00\x00"), "UnsupportedError"},
		{"split", sum(body + "link\x00\x00\x00\x00"), "UnsupportedError"},
		{"optional extension", sum(body + "NOVL\x00\x00\x00\x00"), ""},
		{"extension cut off", sum(body + "NOVL\x00\x00\x00\x09"), "CorruptError"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := ParseIndex([]byte(tc.data), SHA1); errType(err) != tc.want {
				t.Errorf("ParseIndex: %v, want %q", err, tc.want)
			}
		})
	}
	t.Run("split by git", func(t *testing.T) {
		f.git("ws", "update-index", "--split-index")
		if _, err := f.open("ws").Index(); errType(err) != "UnsupportedError" || !strings.Contains(err.Error(), "split index") {
			t.Errorf("Index: %v", err)
		}
	})
}

// TestCraftedIndex is the index that makes git restore write a hook: the names
// must come through, to be judged by UnsafePath.
func TestCraftedIndex(t *testing.T) {
	f := newFixture(t)
	f.repo("ws")
	f.git("ws", "update-index", "--index-version", "2")
	blob := f.git("ws", "rev-parse", "HEAD:a")
	f.git("ws", "update-index", "--add", "--cacheinfo", "100755,"+blob+",xgit/hooks/pre-commit")
	data := f.read("ws/.git/index")
	body := strings.Replace(data[:len(data)-20], "xgit/hooks", ".git/hooks", 1)
	if _, err := ParseIndex(withSum(body), SHA1); errType(err) != "CorruptError" {
		t.Errorf("out of order: %v", err)
	}
	f.git("ws", "rm", "-q", "--cached", "a")
	data = f.read("ws/.git/index")
	body = strings.Replace(data[:len(data)-20], "xgit/hooks", ".git/hooks", 1)
	x, err := ParseIndex(withSum(body), SHA1)
	if err != nil || len(x.Entries) != 1 || UnsafePath(x.Entries[0].Path) == "" {
		t.Errorf("crafted: %+v, %v", x, err)
	}
}

func withSum(body string) []byte {
	s := sha1.Sum([]byte(body))
	return append([]byte(body), s[:]...)
}

// craftIndex makes an index without its checksum.
func craftIndex(version byte, paths ...string) []byte {
	b := append([]byte("DIRC\x00\x00\x00"), version, 0, 0, 0, byte(len(paths)))
	last := ""
	for i, p := range paths {
		start := len(b)
		b = append(b, make([]byte, 62)...)
		copy(b[start+24:], "\x00\x00\x81\xa4")
		b[start+40], b[start+61] = byte(i+1), byte(len(p))
		if version >= 3 {
			b[start+60] = flagExtended >> 8
			b = append(b, extSkipWorktree>>8, 0)
		}
		if version == 4 {
			b = append(append(b, byte(len(last))), p+"\x00"...)
			last = p
			continue
		}
		b = append(b, p...)
		b = append(b, make([]byte, 8-(len(b)-start)%8)...)
	}
	return b
}

func TestCraftedIndexIsRead(t *testing.T) {
	for version := byte(2); version <= 4; version++ {
		x, err := ParseIndex(withSum(string(craftIndex(version, "a", "dir/x", "dir/y"))), SHA1)
		if err != nil || len(x.Entries) != 3 || x.Entries[2].Path != "dir/y" || x.Entries[0].SkipWorktree != (version > 2) {
			t.Errorf("version %d: %+v, %v", version, x, err)
		}
	}
}

func FuzzParseIndex(f *testing.F) {
	for version := byte(2); version <= 4; version++ {
		f.Add(craftIndex(version, "a", "dir/x", "dir/y"))
	}
	f.Add(append(craftIndex(2, "a"), "link\x00\x00\x00\x00"...))
	f.Fuzz(func(t *testing.T, body []byte) {
		x, err := ParseIndex(slices.Concat(body, make([]byte, 20)), SHA1)
		if err != nil {
			if e := errType(err); e != "CorruptError" && e != "UnsupportedError" {
				t.Fatalf("error of another type: %v", err)
			}
			return
		}
		for i := range x.Entries {
			if e := &x.Entries[i]; e.Path == "" || i > 0 && !entryBefore(&x.Entries[i-1], e) {
				t.Fatalf("entry %d: %+v", i, e)
			}
		}
	})
}

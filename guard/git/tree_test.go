package git

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"agentguard/guard/surface"
)

// mixedTree makes a work tree with every type of entry and names that sort
// oddly, and commits it.
func mixedTree(f *fixture, initArgs ...string) {
	f.Helper()
	f.repo("ws", initArgs...)
	for _, p := range []string{"a-b", "a.b", "dir/x", "dir/sub/deep/y", "dir-x", "dir0", "\xff\xfe", "new\nline", "exec", "ünï", "z/\xe9"} {
		f.write("ws/"+p, "content of "+p+"\n")
	}
	if err := os.Chmod(f.path("ws/exec"), 0o755); err != nil {
		f.Fatal(err)
	}
	f.symlink("dir/x", "ws/link")
	f.symlink("dir", "ws/dirlink")
	f.git("ws", "add", "-A")
	f.git("ws", "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", len(f.git("ws", "rev-parse", "HEAD")))+",module")
	f.git("ws", "commit", "-qm", "mixed")
}

func TestTreeAsGit(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			f := newFixture(t)
			mixedTree(f, "--object-format="+format)
			r := f.open("ws")
			tree, err := r.Tree("HEAD")
			if err != nil {
				t.Fatal(err)
			}
			want := f.git("ws", "ls-tree", "-r", "-t", "-z", "HEAD") // MODE TYPE HASH\tPATH
			for _, word := range []string{" tree ", " blob ", " commit "} {
				want = strings.ReplaceAll(want, word, " ")
			}
			if got := lsTree(t, tree); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			checkMixed(t, tree)
		})
	}
}

// checkMixed asks a tree of mixedTree for single entries.
func checkMixed(t *testing.T, tree surface.Tree) {
	t.Helper()
	for path, want := range map[string]string{"a": "a\n", "\xff\xfe": "content of \xff\xfe\n", "dir/sub/deep/y": "content of dir/sub/deep/y\n", "link": "dir/x", "new\nline": "content of new\nline\n"} {
		if got := content(t, tree, path); got != want {
			t.Errorf("content of %q is %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]surface.WalkEntry{
		"exec":    {Type: surface.Regular, Mode: 0o100755, Size: -1},
		"dir":     {Type: surface.Dir, Mode: 0o040000, Size: -1},
		"link":    {Type: surface.Symlink, Mode: 0o120000, Size: 5, Link: "dir/x"},
		"module":  {Type: surface.Gitlink, Mode: 0o160000, Size: -1},
		"dir/sub": {Type: surface.Dir, Mode: 0o040000, Size: -1},
	} {
		got, err := tree.Lstat(path)
		if want.Path = path; err == nil {
			want.Hash = got.Hash
		}
		if err != nil || got != want {
			t.Errorf("Lstat(%q) = %+v, %v, want %+v", path, got, err, want)
		}
	}
	for _, path := range []string{"", "/", "none", "dir/none", "dirlink/x", "a/b", "/a", "./a", "dir//x", "dir/", "dir/../a", "module/x"} {
		if _, err := tree.Lstat(path); !errors.Is(err, surface.ErrNotExist) {
			t.Errorf("Lstat(%q): %v", path, err)
		}
		if _, _, err := tree.Open(path); !errors.Is(err, surface.ErrNotExist) {
			t.Errorf("Open(%q): %v", path, err)
		}
	}
	for _, path := range []string{"dir", "module"} {
		if _, _, err := tree.Open(path); err == nil || errors.Is(err, surface.ErrNotExist) {
			t.Errorf("Open(%q): %v", path, err)
		}
	}
	var seen []string
	stop := errors.New("stop")
	err := tree.Walk(func(e surface.WalkEntry) error {
		seen = append(seen, e.Path)
		switch e.Path {
		case "dir":
			return surface.SkipDir
		case "exec":
			return fmt.Errorf("here: %w", stop)
		}
		return nil
	})
	if !errors.Is(err, stop) || slices.Contains(seen, "dir/x") || !slices.Contains(seen, "dir0") {
		t.Errorf("Walk with SkipDir: %v after %q", err, seen)
	}
}

func TestEmptyTree(t *testing.T) {
	f := newFixture(t)
	f.repo("ws")
	tree, err := f.open("ws").TreeOf(Hash{})
	if err != nil {
		t.Fatal(err)
	}
	if got := lsTree(t, tree); got != "" {
		t.Errorf("the empty tree holds %q", got)
	}
}

func TestParseTreeRefuses(t *testing.T) {
	h := strings.Repeat("h", 20)
	file := func(name string) string { return "100644 " + name + "\x00" + h }
	dir := func(name string) string { return "40000 " + name + "\x00" + h }
	for _, tc := range []struct{ name, data, want string }{
		{"good", file("a") + file("a-") + file("a.") + dir("b"), ""},
		{"directory after its like", file("a-") + dir("a") + file("a0"), ""},
		{"names that git refuses elsewhere", file("..") + file(".GIT"), ""},
		{"old mode", "100664 a\x00" + h, ""},
		{"padded mode", "040000 a\x00" + h, ""},
		{"twice", file("a") + file("a"), "twice"},
		{"file and directory", file("a") + file("a-") + dir("a"), "twice"},
		{"out of order", file("b") + file("a"), "out of order"},
		{"directory out of order", dir("a") + file("a-"), "out of order"},
		{"slash", file("a/b"), "slash"},
		{"empty name", file(""), "cut off"},
		{"null hash", "40000 a\x00" + strings.Repeat("\x00", 20), "no object"},
		{"no hash", "100644 a\x00h", "cut off"},
		{"no mode", "a", "mode"},
		{"unknown mode", "010644 a\x00" + h, "not known"},
		{"mode in words", "10064x a\x00" + h, "octal"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parseTree([]byte(tc.data), SHA1)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("parseTree: %v, want %q", err, tc.want)
			}
		})
	}
}

func FuzzParseTree(f *testing.F) {
	f.Add([]byte("100644 a\x00" + strings.Repeat("h", 20) + "40000 b\x00" + strings.Repeat("h", 20)))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTree(data, SHA1)
		if err != nil {
			return
		}
		for i, e := range entries {
			if e.name == "" || strings.ContainsAny(e.name, "/\x00") || surfaceType(e.mode) == surface.Other {
				t.Fatalf("entry %+v", e)
			}
			if got, ok := findEntry(entries, e.name); !ok || got != entries[i] {
				t.Fatalf("%q is not found again: %+v", e.name, got)
			}
		}
	})
}

// TestTreeBomb makes a tree of a few objects that is endless for practical
// purposes.
func TestTreeBomb(t *testing.T) {
	f := newFixture(t)
	f.repo("ws")
	h := f.git("ws", "hash-object", "-w", "a")
	kind := "100644 blob"
	for range 12 {
		var b strings.Builder
		for i := range 10 {
			fmt.Fprintf(&b, "%s %s\tn%d\n", kind, h, i)
		}
		cmd := f.command("ws", "mktree")
		cmd.Stdin = strings.NewReader(b.String())
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		h, kind = strings.TrimSpace(string(out)), "040000 tree"
	}
	r := f.open("ws")
	w := &treeWalk{repo: r, left: 100_000}
	err := w.walk(f.hash(h), "", 0, func(surface.WalkEntry) error { return nil })
	if errType(err) != "CorruptError" {
		t.Errorf("walk: %v", err)
	}
}

func TestDiffTreesAsGit(t *testing.T) {
	f := newFixture(t)
	mixedTree(f)
	changes := []func(){
		func() { f.write("ws/a", "changed\n") },
		func() { f.remove("ws/dir"); f.write("ws/dir", "now a file\n") },
		func() { f.remove("ws/dir"); f.write("ws/dir/x", "now a directory\n") },
		func() { f.rename("ws/exec", "ws/renamed") },
		func() { f.remove("ws/link"); f.write("ws/link", "dir/x") },
		func() {
			if err := os.Chmod(f.path("ws/a-b"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
		func() { f.remove("ws/z"); f.remove("ws/new\nline") },
		func() { f.write("ws/q/r/s/t", "deep\n"); f.write("ws/q.r", "") },
	}
	r := f.open("ws")
	commits := []string{f.git("ws", "rev-parse", "HEAD~1"), f.git("ws", "rev-parse", "HEAD")}
	for i, change := range changes {
		change()
		f.git("ws", "add", "-A")
		f.git("ws", "commit", "-qm", fmt.Sprint(i))
		commits = append(commits, f.git("ws", "rev-parse", "HEAD"))
	}
	for i := range commits {
		for _, pair := range [][2]string{{commits[max(i-1, 0)], commits[i]}, {commits[i], commits[0]}, {commits[1], commits[i]}} {
			var b strings.Builder
			err := r.DiffTrees(f.hash(pair[0]), f.hash(pair[1]), func(c TreeChange) error {
				fmt.Fprintf(&b, ":%06o %06o %040s %040s\t%s\x00", c.OldMode, c.NewMode, c.OldHash, c.NewHash, c.Path)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			// git: ":OLDMODE NEWMODE OLDHASH NEWHASH STATUS\0PATH\0"
			var want strings.Builder
			fields := strings.Split(f.git("ws", "diff-tree", "-r", "-z", "--no-renames", "--raw", pair[0], pair[1]), "\x00")
			for j := 0; j+1 < len(fields); j += 2 {
				fmt.Fprintf(&want, "%s\t%s\x00", fields[j][:len(fields[j])-2], fields[j+1])
			}
			if got := strings.ReplaceAll(b.String(), strings.Repeat(" ", 40), strings.Repeat("0", 40)); got != want.String() {
				t.Errorf("%v:\ngot  %q\nwant %q", pair, got, want.String())
			}
		}
	}
}

func TestUnsafePath(t *testing.T) {
	for path, bad := range map[string]bool{
		"a": false, "a/b": false, "dir/": false, ".gitignore": false, ".github/x": false, "git": false, "a..b": false, "...": false,
		"": true, "/": true, "/a": true, "a//b": true, ".": true, "..": true, "a/../b": true, "a/./b": true, "a\x00b": true,
		".git": true, ".GIT/hooks/pre-commit": true, "a/.git/config": true, ".git ": true, ".git...": true, ".git. .": true,
		".git:stream": true, "git~1": true, "GIT~1/x": true, ".g\u200cit": true, "\ufeff.git": true, `a\.git\x`: true, `..\git~1`: true,
		".gi\xfft": false,
	} {
		if why := UnsafePath(path); (why != "") != bad {
			t.Errorf("UnsafePath(%q) = %q, want bad: %v", path, why, bad)
		}
	}
}

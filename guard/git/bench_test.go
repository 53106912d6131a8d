package git

import (
	"fmt"
	"strings"
	"testing"

	"agentguard/guard/surface"
)

// bigRepo has 20,000 files in 1,000 directories and a second commit that
// changes 100 of them.
func bigRepo(b *testing.B) (*fixture, *Repo) {
	b.Helper()
	f := newFixture(b)
	f.mkdir("ws")
	f.git("ws", "init", "-q")
	var in strings.Builder
	commit := func(n int) {
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter t <t@example.com> %d +0000\ndata 1\nx\n", n)
	}
	file := func(i int, text string) {
		fmt.Fprintf(&in, "M 100644 inline src/d%02d/d%02d/file%05d.txt\ndata %d\n%s\n", i/400, i/20%20, i, len(text), text)
	}
	commit(1)
	for i := range 20_000 {
		file(i, fmt.Sprint("content ", i))
	}
	commit(2)
	for i := 0; i < 20_000; i += 200 {
		file(i, fmt.Sprint("changed ", i))
	}
	cmd := f.command("ws", "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("fast-import: %v\n%s", err, out)
	}
	f.git("ws", "read-tree", "HEAD")
	f.git("ws", "repack", "-adfq")
	return f, f.open("ws")
}

func Benchmark20k(b *testing.B) {
	f, r := bigRepo(b)
	base, head := f.hash(f.git("ws", "rev-parse", "HEAD~1")), f.hash(f.git("ws", "rev-parse", "HEAD"))
	fresh := func(b *testing.B) *Repo {
		r, err := Open(f.path("ws"))
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	b.Run("Open", func(b *testing.B) {
		for b.Loop() {
			_ = fresh(b).Close()
		}
	})
	b.Run("Index", func(b *testing.B) {
		for b.Loop() {
			if x, err := r.Index(); err != nil || len(x.Entries) != 20_000 {
				b.Fatal(err)
			}
		}
	})
	b.Run("DiffTrees", func(b *testing.B) { // nothing cached
		for b.Loop() {
			r, n := fresh(b), 0
			if err := r.DiffTrees(base, head, func(TreeChange) error { n++; return nil }); err != nil || n != 100 {
				b.Fatal(n, err)
			}
			_ = r.Close()
		}
	})
	b.Run("WalkTree", func(b *testing.B) { // nothing cached
		for b.Loop() {
			r, n := fresh(b), 0
			tree, err := r.TreeOf(head)
			if err == nil {
				err = tree.Walk(func(surface.WalkEntry) error { n++; return nil })
			}
			if err != nil || n < 20_000 {
				b.Fatal(n, err)
			}
			_ = r.Close()
		}
	})
	b.Run("WalkIndex", func(b *testing.B) {
		x, err := r.Index()
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := x.Tree(r).Walk(func(surface.WalkEntry) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

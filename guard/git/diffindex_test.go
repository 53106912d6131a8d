package git

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDiffIndexAsGit compares with git diff-index, in the states that an index
// can be in and after everything that can be staged.
func TestDiffIndexAsGit(t *testing.T) {
	for _, tc := range indexStates {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			mixedTree(f)
			tc.setup(f)
			if tc.tree {
				f.write("ws/deep/er/new", "new\n")
				f.git("ws", "add", "deep/er/new")
				f.git("ws", "update-index", "--chmod=+x", "dir/x")
			}
			r := f.open("ws")
			x, err := r.Index()
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			err = r.DiffIndex(f.hash(f.git("ws", "rev-parse", "HEAD")), x, func(c TreeChange) error {
				fmt.Fprintf(&got, "%06o %06o %s\x00", c.OldMode, c.NewMode, c.Path)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			raw := strings.Split(f.git("ws", "diff-index", "--cached", "--raw", "--no-renames", "-z", "HEAD"), "\x00")
			for i := 0; i+1 < len(raw); i += 2 {
				col := strings.Fields(strings.TrimPrefix(raw[i], ":"))
				if col[4] != "U" {
					want += fmt.Sprintf("%s %s %s\x00", col[0], col[1], raw[i+1])
				}
			}
			if tc.tree && got.String() != want {
				t.Errorf("got  %q\nwant %q", got.String(), want)
			}
		})
	}
}

// TestDiffIndexOfNothing: before the first commit everything is new.
func TestDiffIndexOfNothing(t *testing.T) {
	f := newFixture(t)
	mixedTree(f)
	r := f.open("ws")
	x, err := r.Index()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := r.DiffIndex(Hash{}, x, func(TreeChange) error { n++; return nil }); err != nil || n != len(x.Entries) {
		t.Errorf("%d changes of %d entries, %v", n, len(x.Entries), err)
	}
}

// TestCachedTreeThatLies: git commits the tree that an index names beside its
// entries, so an index whose entries are harmless can plant anything.
func TestCachedTreeThatLies(t *testing.T) {
	f := newFixture(t)
	mixedTree(f)
	honest := f.git("ws", "write-tree")
	f.write("ws/dir/planted", "x\n")
	f.git("ws", "add", "dir/planted")
	evil := f.git("ws", "write-tree")
	f.git("ws", "rm", "-q", "--cached", "dir/planted")
	f.git("ws", "write-tree")

	index := []byte(f.read("ws/.git/index"))
	a, b := f.hash(honest), f.hash(evil)
	if !bytes.Contains(index, a.raw[:20]) {
		t.Fatal("the index does not name its tree")
	}
	body := bytes.Replace(index[:len(index)-20], a.raw[:20], b.raw[:20], 1)
	sum := sha1.Sum(body)
	if err := os.WriteFile(f.path("ws/.git/index"), append(body, sum[:]...), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := f.git("ws", "write-tree"); got != evil {
		t.Fatalf("git does not fall for it: %s", got)
	}
	r := f.open("ws")
	x, err := r.Index()
	if err != nil {
		t.Fatal(err)
	}
	err = r.DiffIndex(f.hash(honest), x, func(TreeChange) error { return nil })
	if _, ok := errors.AsType[*CorruptError](err); !ok {
		t.Errorf("error %v, want a CorruptError", err)
	}
}

func BenchmarkDiffIndex(b *testing.B) {
	f := newFixture(b)
	f.repo("ws")
	var list strings.Builder
	blob := f.git("ws", "hash-object", "-w", "--stdin")
	for i := range 20000 {
		fmt.Fprintf(&list, "100644 %s\tpkg%d/mod%d/file%d.go\n", blob, i%40, i%400, i)
	}
	c := f.command("ws", "update-index", "--index-info")
	c.Stdin = strings.NewReader(list.String())
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v %s", err, out)
	}
	f.git("ws", "commit", "-qm", "many")
	head := f.hash(f.git("ws", "rev-parse", "HEAD"))
	for b.Loop() {
		r := f.open("ws")
		x, err := r.Index()
		if err != nil {
			b.Fatal(err)
		}
		if err := r.DiffIndex(head, x, func(TreeChange) error { return errors.New("differs") }); err != nil {
			b.Fatal(err)
		}
	}
}

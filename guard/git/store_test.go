package git

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentguard/guard/surface"
)

// storeLayouts are the ways in which one history can be stored.
var storeLayouts = []struct {
	name string
	init []string
	pack func(f *fixture)
}{
	{"loose", nil, func(*fixture) {}},
	{"packed with offset deltas", nil, func(f *fixture) { f.git("ws", "repack", "-adfq", "--depth=50", "--window=50") }},
	{"packed with named deltas", nil, func(f *fixture) {
		f.git("ws", "-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq")
	}},
	{"several packs, one index over them", nil, func(f *fixture) {
		f.git("ws", "repack", "-dq")
		f.write("ws/late", "late\n")
		f.git("ws", "add", "late")
		f.git("ws", "commit", "-qm", "late")
		f.git("ws", "repack", "-dq")
		f.git("ws", "multi-pack-index", "write")
	}},
	{"large offsets", nil, func(f *fixture) {
		f.git("ws", "pack-objects", "-q", "--all", "--index-version=2,0x40", ".git/objects/pack/pack")
		f.git("ws", "prune-packed")
	}},
	{"sha256 loose", []string{"--object-format=sha256"}, func(*fixture) {}},
	{"sha256 packed", []string{"--object-format=sha256"}, func(f *fixture) { f.git("ws", "repack", "-adfq") }},
}

// history makes a few commits whose files are deltas of one another.
func (f *fixture) history(name string, initArgs ...string) {
	f.Helper()
	f.repo(name, initArgs...)
	text := strings.Repeat("a line that is long enough to become a delta\n", 200)
	for i := range 6 {
		text += fmt.Sprintf("line %d\n", i)
		f.write(name+"/big", text)
		f.write(fmt.Sprintf("%s/dir/sub/f%d", name, i), fmt.Sprint(i))
		f.write(name+"/empty", "")
		f.git(name, "add", "-A")
		f.git(name, "commit", "-qm", fmt.Sprint(i))
	}
	f.git(name, "tag", "-a", "v1", "-m", "tag")
}

func TestReadEveryObject(t *testing.T) {
	for _, tc := range storeLayouts {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			f.history("ws", tc.init...)
			tc.pack(f)
			r := f.open("ws")
			list := f.git("ws", "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
			for line := range strings.Lines(list) {
				name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
				typ, data, err := r.ReadVerified(f.hash(name))
				if err != nil || typ.String() != kind {
					t.Fatalf("ReadVerified(%s) = %v, %v, want a %s", name, typ, err, kind)
				}
				out, err := f.command("ws", "cat-file", kind, name).Output()
				if err != nil || string(out) != string(data) {
					t.Fatalf("%s %s: content differs from git's", kind, name)
				}
			}
			if n := strings.Count(list, "\n"); n < 25 {
				t.Fatalf("only %d objects", n)
			}
		})
	}
}

func TestReadFails(t *testing.T) {
	f := newFixture(t)
	f.repo("ws")
	r := f.open("ws")
	blob := f.git("ws", "rev-parse", "HEAD:a")
	loose := "ws/.git/objects/" + blob[:2] + "/" + blob[2:]
	other := f.git("ws", "rev-parse", "HEAD^{tree}")
	t.Run("missing", func(t *testing.T) {
		if _, _, err := r.Read(f.hash(strings.Repeat("1", 40))); errType(err) != "MissingError" {
			t.Errorf("Read: %v", err)
		}
	})
	t.Run("hash of the other format", func(t *testing.T) {
		if _, _, err := r.Read(f.hash(strings.Repeat("1", 64))); errType(err) != "MissingError" {
			t.Errorf("Read: %v", err)
		}
	})
	t.Run("another object under the name", func(t *testing.T) {
		f.remove(loose)
		f.write(loose, f.read("ws/.git/objects/"+other[:2]+"/"+other[2:]))
		if _, _, err := r.Read(f.hash(blob)); err != nil {
			t.Errorf("Read does not see it: %v", err)
		}
		if _, _, err := r.ReadVerified(f.hash(blob)); errType(err) != "CorruptError" {
			t.Errorf("ReadVerified: %v", err)
		}
		tree, err := r.Tree("HEAD")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := tree.Open("a"); errType(err) != "CorruptError" {
			t.Errorf("Open: %v", err)
		}
	})
	t.Run("symlink", func(t *testing.T) {
		f.remove(loose)
		f.symlink("/etc/passwd", loose)
		if _, _, err := r.Read(f.hash(blob)); errType(err) != "PointerError" {
			t.Errorf("Read: %v", err)
		}
	})
	t.Run("garbage", func(t *testing.T) {
		f.remove(loose)
		f.write(loose, "garbage")
		if _, _, err := r.Read(f.hash(blob)); errType(err) != "CorruptError" {
			t.Errorf("Read: %v", err)
		}
	})
}

func TestReadLimits(t *testing.T) {
	f := newFixture(t)
	f.repo("ws")
	big, err := os.Create(f.path("ws/zeros"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(big.Truncate(MaxObject+1), big.Close()); err != nil {
		t.Fatal(err)
	}
	h := f.hash(f.git("ws", "-c", "core.compression=1", "hash-object", "-w", "zeros"))
	r := f.open("ws")
	if _, _, err := r.Read(h); errType(err) != "TooLargeError" {
		t.Errorf("loose: %v", err)
	}
	if got, err := r.HashFile(f.path("ws/zeros")); err != nil || got != h.String() {
		t.Errorf("HashFile streams: %v, %v", got, err)
	}
	f.git("ws", "add", "zeros")
	f.git("ws", "commit", "-qm", "x")
	f.git("ws", "repack", "-adq")
	if _, _, err := f.open("ws").Read(h); errType(err) != "TooLargeError" {
		t.Errorf("packed: %v", err)
	}
}

func TestRepackWhileOpen(t *testing.T) {
	f := newFixture(t)
	f.history("ws")
	r := f.open("ws")
	h := f.hash(f.git("ws", "rev-parse", "HEAD"))
	if _, _, err := r.ReadVerified(h); err != nil {
		t.Fatal(err)
	}
	f.git("ws", "repack", "-adq")
	f.git("ws", "prune-packed")
	if _, _, err := r.ReadVerified(h); err != nil {
		t.Errorf("after a repack: %v", err)
	}
}

func TestReadFromSeveralGoroutines(t *testing.T) {
	f := newFixture(t)
	f.history("ws")
	f.git("ws", "repack", "-adfq")
	r := f.open("ws")
	names := strings.Fields(f.git("ws", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, name := range names {
				h, err := ParseHash(name)
				if err == nil {
					_, _, err = r.ReadVerified(h)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestApplyDelta(t *testing.T) {
	base := []byte("base")
	for _, delta := range [][]byte{nil, {4}, {5, 4}, {4, 4, 0}, {4, 4, 0x91, 1}, {4, 4, 0x91, 1, 4}, {4, 9, 3, 'x'}, {4, 1, 2, 'x', 'y'}} {
		if out, err := applyDelta(base, delta); err == nil {
			t.Errorf("applyDelta(%v) = %q", delta, out)
		}
	}
	if out, err := applyDelta(base, []byte{4, 6, 0x91, 1, 3, 3, 'x', 'y', 'z'}); err != nil || string(out) != "asexyz" {
		t.Errorf("applyDelta = %q, %v", out, err)
	}
}

// TestDeltaCycleEnds has a pack whose two deltas name each other as base.
func TestDeltaCycleEnds(t *testing.T) {
	one, two := rawHash(bytes.Repeat([]byte{1}, 20)), rawHash(bytes.Repeat([]byte{2}, 20))
	entry := func(base Hash) []byte {
		return slices.Concat([]byte{packRefDelta<<4 | 3}, base.raw[:20], compress("abc"))
	}
	first := entry(two)
	body := slices.Concat([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x02"), first, entry(one), make([]byte, 20))
	idx := append([]byte("\xfftOc\x00\x00\x00\x02"), make([]byte, 4*256)...)
	for i := range 256 {
		binary.BigEndian.PutUint32(idx[8+4*i:], uint32(min(i, 2)))
	}
	idx = slices.Concat(idx, one.raw[:20], two.raw[:20], make([]byte, 8), []byte{0, 0, 0, 12, 0, 0, 0, byte(12 + len(first))}, make([]byte, 40))
	f := newFixture(t)
	f.repo("ws")
	f.write("ws/.git/objects/pack/pack-x.pack", string(body))
	f.write("ws/.git/objects/pack/pack-x.idx", string(idx))
	if _, _, err := f.open("ws").Read(one); errType(err) != "CorruptError" || !strings.Contains(err.Error(), "too long") {
		t.Errorf("Read: %v", err)
	}
}

func FuzzApplyDelta(f *testing.F) {
	f.Add([]byte("base"), []byte{4, 6, 0x91, 1, 3, 3, 'x', 'y', 'z'})
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		if n, rest, ok := deltaSize(delta); ok {
			if to, _, ok := deltaSize(rest); n >= 0 && ok && to > 1<<20 {
				t.Skip("large on purpose")
			}
		}
		_, _ = applyDelta(base, delta)
	})
}

func TestAlternates(t *testing.T) {
	for _, tc := range []struct {
		name  string
		setup func(f *fixture)
		want  string
	}{
		{"clone with reference", func(f *fixture) { f.git(".", "clone", "-q", "--shared", "src", "ws") }, ""},
		{"chain", func(f *fixture) {
			f.git(".", "clone", "-q", "--shared", "src", "mid")
			f.git(".", "clone", "-q", "--shared", "mid", "ws")
		}, ""},
		{"relative", func(f *fixture) {
			f.git(".", "clone", "-q", "--shared", "src", "ws")
			f.write("ws/.git/objects/info/alternates", "../../../src/.git/objects\n")
		}, ""},
		{"loop", func(f *fixture) {
			f.git(".", "clone", "-q", "--shared", "src", "ws")
			f.write("src/.git/objects/info/alternates", f.path("ws/.git/objects")+"\n"+f.path("src/.git/objects")+"\n")
		}, ""},
		{"too deep", func(f *fixture) {
			f.git(".", "clone", "-q", "--shared", "src", "ws")
			last := "src"
			for i := range 7 {
				next := fmt.Sprintf("c%d", i)
				f.git(".", "init", "-q", next)
				f.write(last+"/.git/objects/info/alternates", f.path(next+"/.git/objects")+"\n")
				last = next
			}
		}, "UnsupportedError"},
		{"no object directory", func(f *fixture) {
			f.git(".", "clone", "-q", "--shared", "src", "ws")
			f.write("secrets/id_rsa", "x")
			f.write("ws/.git/objects/info/alternates", f.path("secrets")+"\n")
		}, "PointerError"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			f.history("src")
			tc.setup(f)
			r := f.open("ws")
			_, _, err := r.ReadVerified(f.hash(f.git("src", "rev-parse", "HEAD")))
			if errType(err) != tc.want {
				t.Errorf("ReadVerified: %v, want %q", err, tc.want)
			}
			if alts, err := r.Alternates(); tc.want == "" && (err != nil || !slices.Contains(alts, f.path("src/.git/objects"))) {
				t.Errorf("Alternates = %q, %v", alts, err)
			}
		})
	}
}

func TestHashObject(t *testing.T) {
	f := newFixture(t)
	for _, format := range []string{"sha1", "sha256"} {
		f.repo(format, "--object-format="+format)
		f.write(format+"/crlf", "x\r\n$Id$\n")
		f.write(format+"/.gitattributes", "* text ident\n")
		r := f.open(format)
		want := f.git(format, "hash-object", "--no-filters", "crlf")
		if got, err := r.HashFile(f.path(format + "/crlf")); err != nil || got != want {
			t.Errorf("HashFile = %v, %v, want %v", got, err, want)
		}
		if got := r.HashObject([]byte("x\r\n$Id$\n")); got != want {
			t.Errorf("HashObject = %v, want %v", got, want)
		}
		f.symlink("crlf", format+"/link")
		if _, err := r.HashFile(f.path(format + "/link")); errType(err) != "PointerError" {
			t.Errorf("HashFile of a link: %v", err)
		}
		if _, err := r.HashFile(f.path(format)); err == nil {
			t.Error("HashFile of a directory worked")
		}
	}
}

func TestSymlinksAreTold(t *testing.T) {
	f := newFixture(t)
	f.repo("ws")
	for _, p := range []string{"logs/HEAD", "COMMIT_EDITMSG", "hooks", "refs/heads/x", "objects/zz"} {
		f.remove("ws/.git/" + p)
		f.symlink("/outside", "ws/.git/"+p)
	}
	links, err := f.open("ws").Symlinks()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range links {
		rel, _ := filepath.Rel(f.path("ws/.git"), l.Path)
		got = append(got, rel+"→"+l.Target)
	}
	slices.Sort(got)
	want := []string{"COMMIT_EDITMSG→/outside", "hooks→/outside", "logs/HEAD→/outside", "objects/zz→/outside", "refs/heads/x→/outside"}
	if !slices.Equal(got, want) {
		t.Errorf("Symlinks = %q, want %q", got, want)
	}
}

// lsTree lists a tree in the form of git ls-tree -r -t.
func lsTree(t *testing.T, tree surface.Tree) string {
	t.Helper()
	var b strings.Builder
	err := tree.Walk(func(e surface.WalkEntry) error {
		fmt.Fprintf(&b, "%06o %s\t%s\x00", e.Mode, e.Hash, e.Path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func content(t *testing.T, tree surface.Tree, path string) string {
	t.Helper()
	rc, _, err := tree.Open(path)
	if err != nil {
		t.Fatalf("Open(%q): %v", path, err)
	}
	defer rc.Close()
	data, err := io.ReadAll(rc)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

package surface

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// diskTree makes a tree on disk: names ending in a slash are directories,
// "a -> b" links, others files with their own name as content.
func diskTree(t testing.TB, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, n := range names {
		link, target, isLink := strings.Cut(n, " -> ")
		path := filepath.Join(root, link)
		var err error
		switch {
		case strings.HasSuffix(n, "/"):
			err = os.MkdirAll(path, 0o755)
		case isLink:
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path))
		default:
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(n), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func openTree(t testing.TB, root string) Tree {
	t.Helper()
	tree, err := WorkTree(root)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// walked returns the paths of a walk with their types, sorted, and fails
// when a directory comes after what is in it.
func walked(t testing.TB, tree Tree, fn func(WalkEntry) error) []string {
	t.Helper()
	var got []string
	seen := map[string]bool{}
	err := tree.Walk(func(e WalkEntry) error {
		if i := strings.LastIndexByte(e.Path, '/'); i >= 0 && !seen[e.Path[:i]] {
			t.Errorf("%q comes before its directory", e.Path)
		}
		seen[e.Path] = true
		got = append(got, e.Path+" "+map[Type]string{Other: "other", Regular: "file", Dir: "dir", Symlink: "link", Gitlink: "gitlink"}[e.Type])
		return fn(e)
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	return got
}

func all(WalkEntry) error { return nil }

func TestWalk(t *testing.T) {
	root := diskTree(t, "a/b/c", "a/d", "e/", "odd\xff\nname", "l -> a", "out -> /etc", "loop -> loop", ".hidden/x")
	if err := unix.Mkfifo(filepath.Join(root, "a/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []string{
		".hidden dir", ".hidden/x file", "a dir", "a/b dir", "a/b/c file", "a/d file", "a/fifo other", "e dir",
		"l link", "loop link", "odd\xff\nname file", "out link",
	}
	if got := walked(t, openTree(t, root), all); !slices.Equal(got, want) {
		t.Errorf("walk:\n%q\nwant\n%q", got, want)
	}
}

func TestWalkManyDirectories(t *testing.T) {
	var names []string
	for i := range 300 {
		names = append(names, strings.Repeat("d/", i%7)+"n"+strings.Repeat("x", i)[:i%200]+string(rune('a'+i%26))+"/f")
	}
	root := diskTree(t, names...)
	var want []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if path != root {
			kind := " file"
			if d.IsDir() {
				kind = " dir"
			}
			want = append(want, strings.TrimPrefix(path, root+"/")+kind)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if got := walked(t, openTree(t, root), all); !slices.Equal(got, want) {
		t.Errorf("walk gives %d names, want %d", len(got), len(want))
	}
}

func TestWalkSkipAndStop(t *testing.T) {
	root := diskTree(t, "a/b/c", "a/d", "e/f")
	got := walked(t, openTree(t, root), func(e WalkEntry) error {
		if e.Path == "a/b" || e.Path == "e" {
			return SkipDir
		}
		return nil
	})
	if want := []string{"a dir", "a/b dir", "a/d file", "e dir"}; !slices.Equal(got, want) {
		t.Errorf("walk with skips = %q, want %q", got, want)
	}
	stop := errors.New("stop")
	if err := openTree(t, root).Walk(func(WalkEntry) error { return stop }); err != stop {
		t.Errorf("walk = %v, want the function's own error", err)
	}
}

// A directory that is replaced by a link between its listing and its reading
// must not lead the walk elsewhere.
func TestWalkIgnoresSwappedDirectory(t *testing.T) {
	elsewhere := diskTree(t, "secret")
	root := diskTree(t, "a/b")
	var paths []string
	err := openTree(t, root).Walk(func(e WalkEntry) error {
		paths = append(paths, e.Path)
		if e.Path != "a" {
			return nil
		}
		if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
			return err
		}
		return os.Symlink(elsewhere, filepath.Join(root, "a"))
	})
	if err == nil {
		t.Error("a walk that lost a directory says nothing")
	}
	if slices.Contains(paths, "a/secret") {
		t.Error("the walk followed a link")
	}
}

func TestWalkVanishedAndUnreadable(t *testing.T) {
	root := diskTree(t, "a/b")
	err := openTree(t, root).Walk(func(e WalkEntry) error { return os.RemoveAll(filepath.Join(root, "a")) })
	if err != nil {
		t.Errorf("walk of a vanishing directory = %v", err)
	}
	if os.Getuid() == 0 {
		t.Skip("root reads every directory")
	}
	root = diskTree(t, "a/b")
	if err := os.Chmod(filepath.Join(root, "a"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(root, "a"), 0o700) }) // or the directory stays
	if err := openTree(t, root).Walk(all); err == nil {
		t.Error("an unreadable directory is passed over in silence")
	}
}

func TestLstat(t *testing.T) {
	root := diskTree(t, "d/file", "l -> d", "abs -> /etc/passwd", "dl/x -> ../d/file")
	if err := errors.Join(
		os.Chmod(filepath.Join(root, "d/file"), 0o755),
		os.Link(filepath.Join(root, "d/file"), filepath.Join(root, "d/second")),
	); err != nil {
		t.Fatal(err)
	}
	tree := openTree(t, root)
	for _, tt := range []struct {
		path string
		want WalkEntry
	}{
		{"d/file", WalkEntry{Type: Regular, Mode: 0o100755, Perm: 0o755, Size: 6, Nlink: 2}},
		{"d", WalkEntry{Type: Dir, Mode: 0o040000, Perm: 0o755}},
		{"l", WalkEntry{Type: Symlink, Mode: 0o120000, Perm: 0o777, Link: "d", Size: 1, Nlink: 1}},
		{"abs", WalkEntry{Type: Symlink, Mode: 0o120000, Perm: 0o777, Link: "/etc/passwd", Size: 11, Nlink: 1}},
		{"dl/x", WalkEntry{Type: Symlink, Mode: 0o120000, Perm: 0o777, Link: "../d/file", Size: 9, Nlink: 1}},
	} {
		t.Run(tt.path, func(t *testing.T) {
			got, err := tree.Lstat(tt.path)
			if err != nil {
				t.Fatal(err)
			}
			if got.Ino == 0 || got.Dev == 0 || got.Path != tt.path {
				t.Errorf("no identity: %+v", got)
			}
			got.Ino, got.Dev, got.Path = 0, 0, ""
			if tt.want.Type == Dir {
				got.Size, got.Nlink = 0, 0
			}
			if got != tt.want {
				t.Errorf("Lstat(%q) = %+v, want %+v", tt.path, got, tt.want)
			}
		})
	}
	for _, path := range []string{"none", "d/none", "none/none", "l/file", "d/file/x", "abs/x"} {
		if _, err := tree.Lstat(path); !errors.Is(err, ErrNotExist) {
			t.Errorf("Lstat(%q) = %v, want ErrNotExist", path, err)
		}
	}
	for _, path := range []string{"", ".", "..", "../x", "/etc", "d/../d", "d//file", "d/", "a\x00b"} {
		if _, err := tree.Lstat(path); err == nil {
			t.Errorf("Lstat(%q) accepts", path)
		}
		if _, _, err := tree.Open(path); err == nil {
			t.Errorf("Open(%q) accepts", path)
		}
	}
}

func TestOpen(t *testing.T) {
	root := diskTree(t, "d/file", "l -> d", "d/fl -> file")
	if err := unix.Mkfifo(filepath.Join(root, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	tree := openTree(t, root)
	for path, want := range map[string]string{"d/file": "d/file", "l": "d", "d/fl": "file"} {
		r, e, err := tree.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != want || e.Path != path {
			t.Errorf("Open(%q) = %q, %q, %v, want %q", path, got, e.Path, err, want)
		}
		r.Close()
	}
	// Without a writer, opening the FIFO would hang.
	for _, path := range []string{"fifo", "d"} {
		if _, _, err := tree.Open(path); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Open(%q) = %v, want ErrNotRegular", path, err)
		}
	}
	for _, path := range []string{"l/file", "none"} {
		if _, _, err := tree.Open(path); !errors.Is(err, ErrNotExist) {
			t.Errorf("Open(%q) = %v, want ErrNotExist", path, err)
		}
	}
	if _, err := WorkTree(filepath.Join(root, "d/file")); err == nil {
		t.Error("a file is a work tree")
	}
}

// The way without openat2 must answer the same.
func TestOpenByComponent(t *testing.T) {
	root := diskTree(t, "a/b/c", "l -> a", "a/x -> b")
	dir, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for path, want := range map[string]bool{"a/b/c": true, "a": true, "l": false, "l/b/c": false, "a/x/c": false, "a/none": false} {
		for name, open := range map[string]func(int, string, int) (int, error){"component": openByComponent, "beneath": openBeneath} {
			fd, err := open(int(dir.Fd()), path, unix.O_RDONLY)
			if err == nil {
				unix.Close(fd)
			}
			if (err == nil) != want {
				t.Errorf("%s: opening %q: %v, want %v", name, path, err, want)
			}
		}
	}
	part := strings.Repeat("d", 250)
	long := strings.Repeat(part+"/", 20) // longer than one call takes
	at := int(dir.Fd())
	for range 20 {
		if err := unix.Mkdirat(at, part, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, part, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if at != int(dir.Fd()) {
			unix.Close(at)
		}
		at = next
	}
	unix.Close(at)
	fd, err := openBeneath(int(dir.Fd()), strings.TrimSuffix(long, "/"), dirFlags)
	if err != nil {
		t.Fatalf("a path longer than PATH_MAX: %v", err)
	}
	unix.Close(fd)
}

func TestWorkTreeHoldsItsDirectory(t *testing.T) {
	root := diskTree(t, "ws/a")
	tree := openTree(t, filepath.Join(root, "ws"))
	if err := errors.Join(
		os.Rename(filepath.Join(root, "ws"), filepath.Join(root, "moved")),
		os.MkdirAll(filepath.Join(root, "ws/planted"), 0o755),
	); err != nil {
		t.Fatal(err)
	}
	if got := walked(t, tree, all); !slices.Equal(got, []string{"a file"}) {
		t.Errorf("walk = %q, want the directory that was opened", got)
	}
}

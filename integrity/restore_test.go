package integrity

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentguard/guard/surface"
)

// start is a work tree on disk and the backup of what it held.
type start struct {
	Restorer
	t *testing.T
	m *Manifest
}

// newStart writes the files with what contents has for their sums and keeps
// them.
func newStart(t *testing.T, files ...File) start {
	t.Helper()
	dir := t.TempDir()
	s := start{t: t, m: NewManifest(files)}
	s.Root, s.Quarantine, s.Backup.Dir = filepath.Join(dir, "tree"), filepath.Join(dir, "state", "q"), filepath.Join(dir, "state", "b")
	tree := surface.MapTree{}
	for _, f := range s.m.Files() {
		content := contents[f.Whole]
		switch f.Kind {
		case Regular:
			s.write(f.Path, content)
			tree[f.Path] = surface.MapFile{Data: content}
		case Link:
			s.mkdir(filepath.Dir(f.Path))
			s.must(os.Symlink(content, s.path(f.Path)))
			tree[f.Path] = surface.MapFile{Data: content, Type: surface.Symlink}
		}
	}
	left, err := s.Backup.Keep(tree, s.m)
	if err != nil || len(left) != 0 {
		t.Fatalf("Keep = %q, %v", left, err)
	}
	return s
}

// contents has what the tests' files hold, by sum.
var contents = map[Sum]string{sum("old"): "old", sum("../target"): "../target", sum(""): ""}

func (s start) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}
func (s start) path(p string) string { return filepath.Join(s.Root, p) }
func (s start) mkdir(p string)       { s.t.Helper(); s.must(os.MkdirAll(s.path(p), 0o755)) }
func (s start) write(p, content string) {
	s.t.Helper()
	s.mkdir(filepath.Dir(p))
	s.must(os.WriteFile(s.path(p), []byte(content), 0o644))
}

// litter returns names that a restore left behind.
func (s start) litter() []string {
	var out []string
	s.must(filepath.WalkDir(s.Root, func(p string, _ os.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(p), ".agentguard-restore") {
			out = append(out, p)
		}
		return err
	}))
	return out
}

func TestRestore(t *testing.T) {
	f := file("a/b/Makefile", "old")
	exec := with(f, func(f *File) { f.Mode, f.Perm = 0o100755, 0o750 })
	link := File{Path: "a/link", Kind: Link, Mode: 0o120000, Whole: sum("../target"), Part: sum("../target")}
	rows := []struct {
		name  string
		f     File
		spoil func(s start)
		moved bool // something was in the way
		want  os.FileMode
	}{
		{"changed", f, func(s start) { s.write(f.Path, "evil") }, true, 0o644},
		{"removed", f, func(s start) { s.must(os.Remove(s.path(f.Path))) }, false, 0o644},
		{"removed with its directories", f, func(s start) { s.must(os.RemoveAll(s.path("a"))) }, false, 0o644},
		{"intact", f, func(start) {}, false, 0o644},
		{"mode lost", exec, func(s start) {}, true, 0o750},
		{"mode and content", exec, func(s start) { s.write(f.Path, "evil") }, true, 0o750},
		{"made executable", f, func(s start) { s.must(os.Chmod(s.path(f.Path), 0o755)) }, true, 0o644},
		{"world-writable is not restored", f, func(s start) {
			s.write(f.Path, "evil")
			s.must(os.Chmod(s.path(f.Path), 0o666))
		}, true, 0o644},
		{"set-id bit", f, func(s start) { s.must(os.Chmod(s.path(f.Path), 0o644|os.ModeSetuid)) }, true, 0o644},
		{"opened to others", with(f, func(f *File) { f.Perm = 0o600 }), func(s start) {}, true, 0o600},
		{"a second name holds it", f, func(s start) { s.must(os.Link(s.path(f.Path), s.path("a/second"))) }, true, 0o644},
		{"replaced by a link", f, func(s start) {
			s.must(os.Remove(s.path(f.Path)))
			s.must(os.Symlink("/etc/passwd", s.path(f.Path)))
		}, true, 0o644},
		{"replaced by a full directory", f, func(s start) {
			s.must(os.Remove(s.path(f.Path)))
			s.write(f.Path+"/x/y", "evil")
		}, true, 0o644},
		{"replaced by a FIFO", f, func(s start) {
			s.must(os.Remove(s.path(f.Path)))
			s.must(syscall.Mkfifo(s.path(f.Path), 0o644))
		}, true, 0o644},
		{"link to elsewhere", link, func(s start) {
			s.must(os.Remove(s.path(link.Path)))
			s.must(os.Symlink("/etc", s.path(link.Path)))
		}, true, os.ModeSymlink},
		{"link that became a file", link, func(s start) {
			s.must(os.Remove(s.path(link.Path)))
			s.write(link.Path, "evil")
		}, true, os.ModeSymlink},
		{"link intact", link, func(start) {}, false, os.ModeSymlink},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s := newStart(t, row.f)
			row.spoil(s)
			done, err := s.Restore(row.f)
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Lstat(s.path(row.f.Path))
			if err != nil {
				t.Fatal(err)
			}
			mode := info.Mode()
			if row.f.Kind == Link {
				mode = mode.Type() // its permissions mean nothing and differ between systems
			}
			if mode != row.want {
				t.Fatalf("mode %v, want %v", mode, row.want)
			}
			got := ""
			if row.f.Kind == Link {
				got, err = os.Readlink(s.path(row.f.Path))
			} else {
				var b []byte
				b, err = os.ReadFile(s.path(row.f.Path))
				got = string(b)
			}
			if err != nil || got != contents[row.f.Whole] {
				t.Errorf("content %q, %v", got, err)
			}
			if (done.MovedTo != "") != row.moved {
				t.Errorf("moved to %q, want something moved: %v", done.MovedTo, row.moved)
			}
			if l := s.litter(); len(l) != 0 {
				t.Errorf("left behind: %q", l)
			}
		})
	}
}

func TestRestoreKeepsWhatWasThere(t *testing.T) {
	s := newStart(t, file("Makefile", "old"))
	s.write("Makefile", "an hour of work")
	s.write(".vscode/tasks.json", "planted")
	for path, want := range map[string]string{"Makefile": "an hour of work", ".vscode/tasks.json": "planted"} {
		done, err := s.Restore(s.m.Get(path))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(done.MovedTo); err != nil || string(b) != want {
			t.Errorf("%s in quarantine: %q, %v", path, b, err)
		}
		if b, err := os.ReadFile(filepath.Join(filepath.Dir(done.MovedTo), "path")); err != nil || string(b) != quote(path)+"\n" {
			t.Errorf("name beside it: %q, %v", b, err)
		}
	}
	if _, err := os.Lstat(s.path(".vscode/tasks.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was absent at the start is there: %v", err)
	}
	if info, err := os.Stat(s.Quarantine); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("quarantine: %v, %v", info, err)
	}
	// Absent and not there, with and without its directory: nothing to do.
	for _, path := range []string{".vscode/tasks.json", "no/such/dir"} {
		if done, err := s.Restore(File{Path: path}); err != nil || done.MovedTo != "" {
			t.Errorf("Restore of an absent one: %+v, %v", done, err)
		}
	}
	if _, err := os.Lstat(s.path("no")); !errors.Is(err, os.ErrNotExist) {
		t.Error("made a directory for what is absent")
	}
}

func TestRestoreNeverFollows(t *testing.T) {
	f := file("a/b/Makefile", "old")
	outside := t.TempDir()
	victim := filepath.Join(outside, "Makefile")
	if err := os.WriteFile(victim, []byte("victim"), 0o644); err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name  string
		f     File
		spoil func(s start)
	}{
		{"parent is a link", f, func(s start) {
			s.must(os.RemoveAll(s.path("a/b")))
			s.must(os.Symlink(outside, s.path("a/b")))
		}},
		{"grandparent is a link", f, func(s start) {
			s.must(os.RemoveAll(s.path("a")))
			s.must(os.Mkdir(filepath.Join(outside, "b"), 0o755))
			s.must(os.Symlink(outside, s.path("a")))
		}},
		{"parent is a link, to take away", File{Path: "a/b/Makefile"}, func(s start) {
			s.must(os.RemoveAll(s.path("a/b")))
			s.must(os.Symlink(outside, s.path("a/b")))
		}},
		{"parent is a dangling link", f, func(s start) {
			s.must(os.RemoveAll(s.path("a/b")))
			s.must(os.Symlink(filepath.Join(outside, "new"), s.path("a/b")))
		}},
		{"parent is a file", f, func(s start) {
			s.must(os.RemoveAll(s.path("a/b")))
			s.write("a/b", "x")
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s := newStart(t, f)
			row.spoil(s)
			_, err := s.Restore(row.f)
			pe, ok := errors.AsType[*ParentError](err)
			if !ok || !strings.HasPrefix("a/b", pe.Parent) {
				t.Errorf("err = %v, want a ParentError", err)
			}
		})
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "victim" {
		t.Errorf("outside: %q, %v", b, err)
	}
	if _, err := os.Lstat(filepath.Join(outside, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Error("made a directory outside")
	}
}

func TestRestoreRefuses(t *testing.T) {
	s := newStart(t, file("Makefile", "old"))
	for _, path := range []string{"", ".", "..", "../x", "a/../x", "/etc/passwd", "a//b", "a/", "./a", "a\x00b"} {
		if _, err := s.Restore(with(file(path, "old"), func(*File) {})); err == nil || !strings.Contains(err.Error(), "not a path inside a tree") {
			t.Errorf("Restore of %q: %v", path, err)
		}
	}
	if _, err := s.Restore(file("Makefile", "never kept")); !errors.Is(err, ErrNotKept) {
		t.Errorf("not kept: %v", err)
	}
	for _, k := range []Kind{Gitlink, Other} {
		if _, err := s.Restore(File{Path: "x", Kind: k}); !errors.Is(err, ErrCannotRestore) {
			t.Errorf("%v: %v", k, err)
		}
	}
	s.must(os.WriteFile(s.Backup.blob(sum("old")), []byte("tampered"), 0o600))
	s.write("Makefile", "evil")
	if _, err := s.Restore(file("Makefile", "old")); !errors.Is(err, ErrNotKept) {
		t.Errorf("damaged backup: %v", err)
	}
	if b, err := os.ReadFile(s.path("Makefile")); err != nil || string(b) != "evil" {
		t.Errorf("a refused restore touched the file: %q, %v", b, err)
	}
}

// The state directory is often on another file system than the work tree.
func TestQuarantineOnAnotherFileSystem(t *testing.T) {
	const shm = "/dev/shm"
	s := newStart(t, file("Makefile", "old"))
	q, err := os.MkdirTemp(shm, "integrity-test-")
	if err != nil {
		t.Skipf("no second file system: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(q) })
	a, b := syscall.Stat_t{}, syscall.Stat_t{}
	s.must(syscall.Stat(s.Root, &a))
	s.must(syscall.Stat(q, &b))
	if a.Dev == b.Dev {
		t.Skipf("%s is not another file system", shm)
	}
	s.Quarantine = q
	s.write("Makefile", "evil")
	s.write("dir/sub/x", "1")
	s.must(os.Symlink("/etc/passwd", s.path("dir/link")))
	s.must(syscall.Mkfifo(s.path("dir/sub/pipe"), 0o644))
	if done, err := s.Restore(s.m.Get("Makefile")); err != nil || !strings.HasPrefix(done.MovedTo, q) {
		t.Errorf("%+v, %v", done, err)
	} else if b, err := os.ReadFile(done.MovedTo); err != nil || string(b) != "evil" {
		t.Errorf("in quarantine: %q, %v", b, err)
	}
	done, err := s.Restore(File{Path: "dir"})
	s.must(err)
	if b, err := os.ReadFile(filepath.Join(done.MovedTo, "sub/x")); err != nil || string(b) != "1" {
		t.Errorf("in quarantine: %q, %v", b, err)
	}
	if text, err := os.Readlink(filepath.Join(done.MovedTo, "link")); err != nil || text != "/etc/passwd" {
		t.Errorf("link in quarantine: %q, %v", text, err)
	}
	if _, err := os.Lstat(s.path("dir")); !errors.Is(err, os.ErrNotExist) || len(s.litter()) != 0 {
		t.Errorf("still there: %v %q", err, s.litter())
	}
}

func TestKeep(t *testing.T) {
	big := strings.Repeat("x", 100)
	tree := surface.MapTree{"a": {Data: "old"}, "big": {Data: big}, "changed": {Data: "new"}}
	m := NewManifest([]File{file("a", "old"), file("b", "old"), file("big", big), file("changed", "old2"), file("gone", "old3"), {Path: "d", Kind: Dir}})
	b := Backup{Dir: filepath.Join(t.TempDir(), "b"), Limit: 50}
	left, err := b.Keep(tree, m)
	if got := strings.Join(left, " "); err != nil || got != "big changed gone" {
		t.Errorf("Keep left %q, %v", got, err)
	}
	if !b.Holds(file("b", "old")) || b.Holds(file("big", big)) || !b.Holds(File{}) || b.Holds(File{Kind: Other}) {
		t.Error("Holds is wrong")
	}
	if info, err := os.Stat(b.blob(sum("old"))); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info, err)
	}
	if n, err := b.Prune(timeAfter(t, b.blob(sum("old"))), m); n != 0 || err != nil {
		t.Errorf("Prune took %d that are named, %v", n, err)
	}
	if n, err := b.Prune(timeAfter(t, b.blob(sum("old")))); n != 1 || err != nil {
		t.Errorf("Prune took %d, %v, want 1", n, err)
	}
}

func timeAfter(t *testing.T, name string) time.Time {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime().Add(time.Second)
}

// From the start's snapshot and backup the tree is put back as it was.
func TestRestoreAll(t *testing.T) {
	s := disk(t)
	s.must(os.Remove(s.path(".githooks/pipe")))
	state := t.TempDir()
	s.Quarantine, s.Backup.Dir = filepath.Join(state, "q"), filepath.Join(state, "b")
	tree, err := surface.WorkTree(s.Root)
	s.must(err)
	before := snapshot(t, tree)
	if left, err := s.Backup.Keep(tree, before); err != nil || len(left) != 0 {
		t.Fatalf("Keep = %q, %v", left, err)
	}
	s.write("Makefile", "evil")
	s.write("sub/new/Makefile", "planted")
	s.must(os.RemoveAll(s.path(".githooks")))
	s.must(os.Symlink("/etc", s.path(".githooks")))
	for _, c := range Diff(before, snapshotDir(t, s.Root)) {
		if _, err := s.Restore(c.Old); err != nil {
			t.Errorf("restoring %s (%s): %v", c.Path, c.What, err)
		}
	}
	if d := Diff(before, snapshotDir(t, s.Root)); len(d) != 0 {
		t.Errorf("still differs: %+v", d)
	}
}

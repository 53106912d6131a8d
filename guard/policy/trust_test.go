package policy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestTrustStore(t *testing.T) {
	dir := t.TempDir()
	store := TrustStore{Dir: filepath.Join(dir, "state", "trust")}
	repo := identify(t, mkdir(t, dir, "a", ".git"))
	clone := identify(t, mkdir(t, dir, "b", ".git"))
	src := &Source{Name: FileName, Data: []byte("version: 1\n")}
	changed := &Source{Name: FileName, Data: []byte("version: 1 \n")}

	wantTrust(t, store, repo, src, false)
	if err := store.Record(repo, src); err != nil {
		t.Fatal(err)
	}
	wantTrust(t, store, repo, src, true)
	wantTrust(t, store, repo, changed, false)
	wantTrust(t, store, clone, src, false)
	wantTrust(t, store, RepoID{}, src, false)
	wantTrust(t, store, repo, nil, false)
	for name, other := range map[string]RepoID{
		"other inode":  {repo.Path, repo.Dev, repo.Ino + 1},
		"other device": {repo.Path, repo.Dev + 1, repo.Ino},
		"other path":   {clone.Path, repo.Dev, repo.Ino},
	} {
		t.Run(name, func(t *testing.T) { wantTrust(t, store, other, src, false) })
	}
	if err := store.Record(RepoID{}, src); err == nil {
		t.Error("a yes without a repository was recorded")
	}

	if err := store.Record(clone, src); err != nil {
		t.Fatal(err)
	}
	if err := store.Record(repo, changed); err != nil {
		t.Fatal(err)
	}
	recs, err := store.List()
	if err != nil || len(recs) != 3 {
		t.Fatalf("List() = %v, %v, want three", recs, err)
	}
	if n, err := store.Revoke(repo); n != 2 || err != nil {
		t.Errorf("Revoke() = %d, %v, want 2", n, err)
	}
	wantTrust(t, store, repo, src, false)
	wantTrust(t, store, clone, src, true)
	if n, err := store.Revoke(repo); n != 0 || err != nil {
		t.Errorf("Revoke() again = %d, %v, want 0", n, err)
	}
}

func TestTrustSameYesTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	store := TrustStore{Dir: filepath.Join(dir, "trust")}
	repo := identify(t, mkdir(t, dir, "r"))
	src := &Source{Data: []byte("version: 1\n")}
	record := func() {
		if err := store.Record(repo, src); err != nil {
			t.Fatal(err)
		}
	}
	record()
	before := listing(t, dir)
	record()
	if after := listing(t, dir); after != before {
		t.Errorf("the same yes changed the directory:\n%s\nbefore:\n%s", after, before)
	}
	if !strings.Contains(before, "-rw-------") || strings.Contains(before, ".tmp-") {
		t.Errorf("want one file of mode 0600:\n%s", before)
	}
}

// TestTrustForged puts files into the store that Record did not write.
func TestTrustForged(t *testing.T) {
	src := &Source{Data: []byte("version: 1\n")}
	tests := []struct {
		name  string
		forge func(t *testing.T, path string)
	}{
		{"other content", func(t *testing.T, path string) { write(t, path, "{}\n") }},
		{"empty", func(t *testing.T, path string) { write(t, path, "") }},
		{"more content", func(t *testing.T, path string) { write(t, path, string(read(t, path))+" ") }},
		{"writable by others", func(t *testing.T, path string) { must(t, os.Chmod(path, 0o666)) }},
		{"a link to the same content", func(t *testing.T, path string) {
			must(t, os.Rename(path, path+".real"))
			must(t, os.Symlink(path+".real", path))
		}},
		{"a directory", func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.Mkdir(path, 0o700))
		}},
		{"a FIFO", func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, syscall.Mkfifo(path, 0o600))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			store := TrustStore{Dir: filepath.Join(dir, "trust")}
			repo := identify(t, mkdir(t, dir, "r"))
			must(t, store.Record(repo, src))
			tt.forge(t, store.path(TrustRecord{repo, src.SHA256()}))
			if ok, _ := store.Trusted(repo, src); ok {
				t.Error("a forged yes counts")
			}
			if recs, err := store.List(); err != nil || len(recs) != 0 {
				t.Errorf("List() = %v, %v, want none", recs, err)
			}
		})
	}
}

func TestTrustOddPath(t *testing.T) {
	dir := t.TempDir()
	store := TrustStore{Dir: filepath.Join(dir, "trust")}
	src := &Source{Data: []byte("version: 1\n")}
	a := RepoID{"/x/\xff", 1, 2}
	b := RepoID{"/x/\xfe", 1, 2}
	must(t, store.Record(a, src))
	wantTrust(t, store, a, src, true)
	wantTrust(t, store, b, src, false)
	if n, err := store.Revoke(a); n != 1 || err != nil {
		t.Errorf("Revoke() = %d, %v, want 1", n, err)
	}
}

func TestTrustTogether(t *testing.T) {
	dir := t.TempDir()
	store := TrustStore{Dir: filepath.Join(dir, "trust")}
	src := &Source{Data: []byte("version: 1\n")}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 4 {
				if err := store.Record(RepoID{"/r", 1, uint64(j)}, src); err != nil {
					t.Errorf("writer %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	if recs, err := store.List(); err != nil || len(recs) != 4 {
		t.Errorf("List() = %v, %v, want four", recs, err)
	}
}

func TestIdentify(t *testing.T) {
	dir := t.TempDir()
	a := mkdir(t, dir, "a")
	id := identify(t, a)
	must(t, os.Symlink(a, filepath.Join(dir, "link")))
	if got := identify(t, filepath.Join(dir, "link")); got != id {
		t.Errorf("by a link %v, want %v", got, id)
	}
	must(t, os.Rename(a, filepath.Join(dir, "kept")))
	mkdir(t, dir, "a")
	if got := identify(t, a); got == id {
		t.Error("another directory at the same path has the same identity")
	}
	if _, err := Identify(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Identify of nothing: %v", err)
	}
	write(t, filepath.Join(dir, "file"), "")
	if _, err := Identify(filepath.Join(dir, "file")); err == nil {
		t.Error("a file has an identity")
	}
}

func TestReadSource(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	tests := []struct {
		name string
		make func(t *testing.T)
		want string // "" is no error
	}{
		{"a file", func(t *testing.T) { write(t, path, "version: 1\n") }, ""},
		{"a link", func(t *testing.T) {
			write(t, path+".real", "version: 1\n")
			must(t, os.Symlink(path+".real", path))
		}, "symbolic link"},
		{"a link to nothing", func(t *testing.T) { must(t, os.Symlink("nowhere", path)) }, "symbolic link"},
		{"a directory", func(t *testing.T) { must(t, os.Mkdir(path, 0o700)) }, "not a regular file"},
		{"a FIFO", func(t *testing.T) { must(t, syscall.Mkfifo(path, 0o600)) }, "not a regular file"},
		{"more than 1 MiB", func(t *testing.T) { write(t, path, strings.Repeat("#", maxSize+1)) }, "larger than 1 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			must(t, os.RemoveAll(path))
			tt.make(t)
			src, err := ReadSource(path, FileName)
			switch {
			case tt.want == "" && (err != nil || string(src.Data) != "version: 1\n"):
				t.Errorf("ReadSource() = %v, %v", src, err)
			case tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), FileName+": ") || err != nil && !strings.Contains(err.Error(), tt.want)):
				t.Errorf("ReadSource() = %v, %v, want %q", src, err, tt.want)
			}
		})
	}
	if src, err := ReadSource(filepath.Join(dir, "none"), "none"); src != nil || err != nil {
		t.Errorf("ReadSource of nothing = %v, %v, want nothing", src, err)
	}
	if src, err := ReadSource(filepath.Join(path, "below"), "x"); err == nil {
		t.Errorf("ReadSource below a file = %v, want an error", src)
	}
}

func TestUserFile(t *testing.T) {
	for _, tt := range []struct{ xdg, home, want string }{
		{"/x", "/h", "/x/agentguard/config.yaml"},
		{"", "/h", "/h/.config/agentguard/config.yaml"},
		{"relative", "/h", "/h/.config/agentguard/config.yaml"},
		{"", "", ""},
	} {
		if got := UserFile(tt.xdg, tt.home); got != tt.want {
			t.Errorf("UserFile(%q, %q) = %q, want %q", tt.xdg, tt.home, got, tt.want)
		}
	}
}

func wantTrust(t *testing.T, s TrustStore, repo RepoID, src *Source, want bool) {
	t.Helper()
	if got, err := s.Trusted(repo, src); got != want || err != nil {
		t.Errorf("Trusted(%v) = %v, %v, want %v", repo, got, err, want)
	}
}

func identify(t *testing.T, dir string) RepoID {
	t.Helper()
	id, err := Identify(dir)
	must(t, err)
	return id
}

func mkdir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	must(t, os.MkdirAll(dir, 0o755))
	return dir
}

func write(t *testing.T, path, data string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(data), 0o600))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b.WriteString(path + " " + info.Mode().String() + " " + info.ModTime().String() + "\n")
		return nil
	}))
	return b.String()
}

package hooks

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadTree(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "tools/hooks"), map[string]string{"pre-commit": "#!x", "lib/a": "1", "lib/empty/": "", "b": ""})
	got, err := readTree(dir, "tools/hooks")
	must(t, err)
	var names []string
	for _, f := range got {
		names = append(names, f.path+" "+f.mode().String()+" "+string(f.data))
	}
	want := "b -rw-r--r-- |lib drwxr-xr-x |lib/a -rw-r--r-- 1|lib/empty drwxr-xr-x |pre-commit -rwxr-xr-x #!x"
	if strings.Join(names, "|") != want {
		t.Errorf("got  %q\nwant %q", strings.Join(names, "|"), want)
	}
}

func TestReadTreeRefuses(t *testing.T) {
	for _, tc := range []struct {
		name    string
		files   map[string]string
		prepare func(t *testing.T, top string)
		why     string
		missing bool
	}{
		{"nothing there", nil, nil, "no such file", true},
		{"a file", map[string]string{".githooks": "x"}, nil, "not a directory", false},
		{"a link to a directory", map[string]string{"d/": "", ".githooks": "-> d"}, nil, "symbolic link", false},
		{"a link inside", map[string]string{"x": "1", ".githooks/a": "-> ../x"}, nil, "symbolic link", false},
		{"a link to a directory inside", map[string]string{"d/x": "1", ".githooks/a": "-> ../d"}, nil, "symbolic link", false},
		{"a FIFO", map[string]string{".githooks/": ""}, func(t *testing.T, top string) {
			must(t, syscall.Mkfifo(filepath.Join(top, ".githooks/f"), 0o600))
		}, "neither a file nor a directory", false},
		{"too large", map[string]string{".githooks/big": strings.Repeat("x", maxFile+1)}, nil, "larger than", false},
		{"too large together", nil, func(t *testing.T, top string) {
			for _, c := range "abcdefghi" {
				put(t, top, map[string]string{".githooks/" + string(c): strings.Repeat("x", maxFile)})
			}
		}, "larger than", false},
		{"too deep", map[string]string{".githooks/1/2/3/4/5/6/7/8/9/a": "x"}, nil, "deep", false},
		{"too many", nil, func(t *testing.T, top string) {
			for i := range maxFiles + 1 {
				put(t, top, map[string]string{".githooks/" + strings.Repeat("a", i%200+1) + strings.Repeat("b", i/200): "x"})
			}
		}, "more than", false},
		{"a name with an escape", map[string]string{".githooks/\x1b[2J": "x"}, nil, "cannot be shown", false},
		{"a name that is not UTF-8", map[string]string{".githooks/\xff": "x"}, nil, "not UTF-8", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			top := t.TempDir()
			put(t, top, tc.files)
			if tc.prepare != nil {
				tc.prepare(t, top)
			}
			got, err := readTree(top, ".githooks")
			var se *SourceError
			if !errors.As(err, &se) || !strings.Contains(se.Why, tc.why) || se.Missing != tc.missing {
				t.Errorf("readTree = %v, %v, want a SourceError with %q, missing %v", got, err, tc.why, tc.missing)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	base := tree{{path: "a", data: []byte("1")}, {path: "b", exec: true, data: []byte("1")}}
	for _, tc := range []struct {
		name string
		now  tree
		want []Difference
	}{
		{"nothing", base, nil},
		{"added", append(tree{{path: "A", data: []byte("1")}}, base...), []Difference{{Path: "A", Kind: Added}}},
		{"removed", base[1:], []Difference{{Path: "a", Kind: Removed}}},
		{"changed", tree{{path: "a", data: []byte("2")}, base[1]}, []Difference{{Path: "a", Kind: Changed}}},
		{"mode", tree{base[0], {path: "b", data: []byte("1")}}, []Difference{{Path: "b", Kind: Mode}}},
		{"became a directory", tree{{path: "a", dir: true}, base[1]}, []Difference{{Path: "a", Kind: Changed}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := compare(base, tc.now)
			if len(got) != len(tc.want) || len(got) == 1 && got[0] != tc.want[0] {
				t.Errorf("compare = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestDigestSeparates holds that no two trees that differ have one digest
// because their fields run together.
func TestDigestSeparates(t *testing.T) {
	trees := []tree{
		nil,
		{{path: "a", data: []byte("b")}},
		{{path: "ab"}},
		{{path: "a", exec: true, data: []byte("b")}},
		{{path: "a", dir: true}},
		{{path: "a"}, {path: "b"}},
		{{path: "a", data: []byte("1:b")}},
	}
	seen := map[string]int{}
	for i, tr := range trees {
		if j, dup := seen[tr.digest()]; dup {
			t.Errorf("trees %d and %d have one digest", i, j)
		}
		seen[tr.digest()] = i
	}
	if tree(nil).digest("a", "b") == tree(nil).digest("ab") {
		t.Error("the extra fields run together")
	}
}

// TestZeroIsStrict holds that a forgotten assignment means the worst.
func TestZeroIsStrict(t *testing.T) {
	if !(State{Differs: []Difference{{}}}).Blocked() {
		t.Error("the zero Difference does not block")
	}
	if (State{}).Managed {
		t.Error("the zero State is managed")
	}
}

func TestWriteTree(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "copy")
	want := tree{{path: "d", dir: true}, {path: "d/a", data: []byte("1")}, {path: "pre-commit", exec: true, data: []byte("2")}}
	must(t, writeTree(dir, want))
	got, err := readTree(filepath.Dir(dir), "copy")
	must(t, err)
	if got.digest() != want.digest() {
		t.Errorf("read %v, wrote %v", got, want)
	}
	info, err := os.Stat(filepath.Join(dir, "d"))
	must(t, err)
	if info.Mode().Perm() != 0o555 {
		t.Errorf("the directory has mode %v, want one that cannot be written to", info.Mode())
	}
	must(t, removeTree(dir))
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after removeTree: %v", err)
	}
	must(t, removeTree(dir))
}

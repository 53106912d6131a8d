package guard

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"agentguard/guard/policy"
	"agentguard/guard/surface"
	"agentguard/sandbox"
)

var update = flag.Bool("update", false, "write the golden files anew")

// mapHost is a host for plans: a map of files, links by their text.
type mapHost struct {
	files fstest.MapFS
	links map[string]string
}

func (h mapHost) Lstat(path string) (fs.FileInfo, error) {
	if text, ok := h.links[path]; ok {
		return fs.Stat(fstest.MapFS{"x": {Data: []byte(text), Mode: fs.ModeSymlink | 0o777}}, "x")
	}
	return fs.Stat(h.files, strings.TrimPrefix(path, "/"))
}

func (h mapHost) Readlink(path string) (string, error) {
	if text, ok := h.links[path]; ok {
		return text, nil
	}
	return "", fs.ErrInvalid
}

func (h mapHost) Real(path string) (string, error) {
	if text, ok := h.links[path]; ok {
		path = text
	}
	_, err := h.Lstat(path)
	return path, err
}

func debian() mapHost {
	files := fstest.MapFS{}
	for _, name := range []string{"usr/bin/env", "etc/passwd", "etc/group", "etc/ssl/certs/a.pem", "etc/ssl/private/key", "etc/ld.so.cache", "etc/shadow", "run/zone"} {
		files[name] = &fstest.MapFile{Mode: 0o644}
	}
	return mapHost{files, map[string]string{"/bin": "usr/bin", "/lib": "usr/lib", "/etc/localtime": "/run/zone", "/etc/os-release": "../usr/lib/os-release", "/etc/timezone": "/nowhere"}}
}

func grant(path string) policy.Grant { return policy.Grant{Path: path, Real: path} }

func TestPlanGolden(t *testing.T) {
	for _, tc := range []struct {
		name string
		plan plan
	}{
		{"write", plan{
			host: debian(), base: sandbox.BaseOptions{Home: "/home/u"}, root: "/home/u/src/p",
			policy: &policy.Policy{Sandbox: policy.Sandbox{
				Workspace: policy.WorkspaceWrite,
				Read:      []policy.Grant{grant("/data"), {Path: "/gone", Real: "/gone", Missing: true}},
				Write:     []policy.Grant{{Path: "/home/u/out", Real: "/big/out"}},
			}},
			gitDirs: []string{"/home/u/src/main/.git"},
			tools:   []string{"/opt/t/bin"},
			hooks:   []string{"/home/u/.local/state/agentguard/hooks/x"},
			links:   []link{{"/work", "/home/u/src"}, {"/opt/t/bin/x", "y"}},
			cache:   []cacheDir{{"/c/go-build", "/home/u/.cache/go-build"}, {"/c/npm", "/home/u/out/npm"}},
			areas: []frozenArea{{"/home/u/src/p", []frozen{
				{"/home/u/src/p/.git", true},
				{"/home/u/src/p/.git/hooks", false},
				{"/home/u/src/p/a/b/package.json", false},
				{"/home/u/src/p/package.json", false},
			}}},
		}},
		{"read", plan{
			host: debian(), base: sandbox.BaseOptions{Home: "/home/u"}, root: "/home/u/p",
			policy: &policy.Policy{},
			areas:  []frozenArea{{"/home/u/p", []frozen{{"/home/u/p/package.json", false}}}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b strings.Builder
			for _, m := range tc.plan.mounts() {
				fmt.Fprintf(&b, "%s %s", m.Kind, m.Target)
				if m.Source != "" && m.Source != m.Target {
					fmt.Fprintf(&b, " from %s", m.Source)
				}
				if m.Perm != 0 {
					fmt.Fprintf(&b, " mode %o", m.Perm)
				}
				if m.Optional {
					b.WriteString(" if there")
				}
				b.WriteString("\n")
			}
			b.WriteString("\nwritable below\n  " + strings.Join(tc.plan.writable(), "\n  ") + "\n")
			golden(t, filepath.Join("..", "testdata", "golden", "plan", tc.name+".txt"), b.String())
		})
	}
}

func TestBwrapGolden(t *testing.T) {
	golden(t, filepath.Join("..", "testdata", "golden", "bwrap", "args.txt"), strings.Join(sandbox.Args(), "\n")+"\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; this is the policy of every run, so read it before go test -update:\n%s", name, got)
	}
}

func TestFrozenMembers(t *testing.T) {
	m, err := surface.NewMatcher(surface.Catalogue(), surface.Rules{Protect: []string{"data/**"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		tree surface.MapTree
		want string
	}{
		{"a hooks directory is one mount", surface.MapTree{".git/hooks/a": {}, ".git/hooks/b": {}}, ".git(name) .git/hooks"},
		{"a protected directory is one mount", surface.MapTree{"data/a": {}, "data/b/c": {}}, "data"},
		{"a file", surface.MapTree{"package.json": {}, "main.c": {}}, "package.json"},
		{"a link", surface.MapTree{".envrc": {Type: surface.Symlink, Data: "x"}}, ".envrc"},
		{"dependencies are free", surface.MapTree{"node_modules/p/package.json": {}}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, err := surface.Resolve(tc.tree, m)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range frozenMembers(&area{dir: "/w", set: set}).members {
				name := strings.TrimPrefix(f.path, "/w/")
				if f.name {
					name += "(name)"
				}
				got = append(got, name)
			}
			if s := strings.Join(got, " "); s != tc.want {
				t.Errorf("frozen: %s, want %s", s, tc.want)
			}
		})
	}
}

// Every frozen path has a pinned chain of parents up to its root: without one
// the mount is carried away by renaming a parent.
func TestEveryParentIsPinned(t *testing.T) {
	p := plan{policy: &policy.Policy{}, areas: []frozenArea{{"/w", []frozen{
		{"/w/a/b/c/f", false}, {"/w/a/x", false}, {"/w/d", true}, {"/w/d/e/f", false}, {"/w/g/h", false}, {"/w/g/h/i", false},
	}}}}
	kinds := map[string]sandbox.Mount{}
	seen := map[string]bool{}
	for _, m := range p.frozen() {
		kinds[m.Target] = m
		for dir := filepath.Dir(m.Target); dir != "/w"; dir = filepath.Dir(dir) {
			if !seen[dir] {
				t.Errorf("%s comes before %s or without it", m.Target, dir)
			}
		}
		seen[m.Target] = true
	}
	for path, kind := range map[string]stageKind{
		"/w/a": sandbox.Pin, "/w/a/b": sandbox.Pin, "/w/a/b/c": sandbox.Pin, "/w/a/b/c/f": sandbox.Freeze,
		"/w/a/x": sandbox.Freeze, "/w/d": sandbox.Pin, "/w/d/e": sandbox.Pin, "/w/g/h": sandbox.Freeze,
	} {
		if kinds[path].Kind != kind {
			t.Errorf("%s is %v, want %v", path, kinds[path].Kind, kind)
		}
	}
	if _, ok := kinds["/w/g/h/i"]; ok {
		t.Error("a file in a frozen directory has a mount of its own")
	}
}

type stageKind = sandbox.Kind

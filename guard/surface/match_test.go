package surface

import (
	"errors"
	"testing"
)

func mustMatcher(t testing.TB, r Rules) *Matcher {
	t.Helper()
	m, err := NewMatcher(Catalogue(), r)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// word is the protection of a path, or "clean".
func word(m *Matcher, path string, typ Type) string {
	if h, ok := m.Match(path, typ); ok {
		return h.Protection.String()
	}
	return "clean"
}

func TestZeroValuesDeny(t *testing.T) {
	if p := Protection(0); p != Freeze {
		t.Errorf("zero Protection = %v, want freeze", p)
	}
	if p := Profile(0); p != Strict {
		t.Errorf("zero Profile = %v, want strict", p)
	}
	if p := (&Entry{Balanced: Note}).Protection(Profile(7)); p != Freeze {
		t.Errorf("unknown profile gives %v, want the strict column", p)
	}
	var m Matcher
	if h, ok := m.Match("main.c", Regular); !ok || h.Protection != Freeze || h.Entry == nil {
		t.Errorf("zero Matcher.Match = %+v, %v, want freeze", h, ok)
	}
	if _, ok := m.WholeDir("src"); !ok {
		t.Error("zero Matcher leaves a directory open")
	}
	if m.Prune(".git/objects/ab") {
		t.Error("zero Matcher prunes")
	}
	if (&Entry{}).Part != Whole {
		t.Error("zero Part is not the whole file")
	}
}

func TestMatchNames(t *testing.T) {
	m := mustMatcher(t, Rules{})
	for _, tt := range []struct {
		name, path, want string
	}{
		{"exact", "conftest.py", "freeze"},
		{"at depth", "a/b/conftest.py", "freeze"},
		{"longer name", "a/xconftest.py", "clean"},
		{"upper case", "CONFTEST.PY", "freeze"},
		{"long s as s", "confte\u017ft.py", "freeze"},
		{"kelvin sign", "ma\u212aefile", "freeze"},
		{"hfs ignorable", ".g\u200cit/hooks/pre-commit", "freeze"},
		{"hfs byte order mark", "\ufeff.vscode/tasks.json", "freeze"},
		{"ntfs trailing dot", ".git./config", "freeze"},
		{"ntfs trailing space", ".vscode /tasks.json ", "freeze"},
		{"ntfs stream", ".git::$INDEX_ALLOCATION/config", "freeze"},
		{"ntfs data stream", "package.json::$DATA", "freeze"},
		{"ntfs short name", "GIT~1/config", "freeze"},
		{"colon without a stream", "package.json:2", "clean"},
		{"case of a directory", ".VSCode/Tasks.JSON", "freeze"},
		{"decomposed", "o\u0308/conftest.py", "freeze"},
		{"not utf-8 above", "\xff\xfe/conftest.py", "freeze"},
		{"not utf-8 itself", "conftest\xff.py", "clean"},
		{"doubled slash", "a//conftest.py", "freeze"},
		{"leading slash", "/conftest.py", "freeze"},
		{"prefix with wildcard", "web/eslint.config.mjs", "freeze"},
		{"prefix alone", "web/eslint.config", "clean"},
		{"suffix", "native/rules.mk", "freeze"},
		{"suffix alone is the name", "native/.mk", "freeze"},
		{"rooted", ".github/workflows/ci.yml", "freeze"},
		{"rooted, at depth", "sub/.github/workflows/ci.yml", "clean"},
		{"directory glob", "x/.husky/deep/er", "freeze"},
		{"nested repository", "lib/.git/hooks/pre-commit", "review"},
		{"own policy", ".agentguard.yaml", "freeze"},
		{"own manifest", ".agentguard.sum", "freeze"},
		{"branch called like a surface", ".git/refs/heads/x/Makefile", "clean"},
		{"description of a repository", ".git/description", "clean"},
		{"empty", "", "clean"},
		{"source", "cmd/main.go", "clean"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := word(m, tt.path, Regular); got != tt.want {
				h, _ := m.Match(tt.path, Regular)
				t.Errorf("Match(%q) = %s (%s), want %s", tt.path, got, h.Rule, tt.want)
			}
		})
	}
}

func TestMatchTypes(t *testing.T) {
	m := mustMatcher(t, Rules{})
	for _, tt := range []struct {
		name, path string
		typ        Type
		want       string
	}{
		{"directory covered as a whole", ".husky", Dir, "freeze"},
		{"directory that only holds some", ".github", Dir, "clean"},
		{"link that could hold them", ".github", Symlink, "freeze"},
		{"submodule that could hold them", ".vscode", Gitlink, "freeze"},
		{"unknown that could hold them", ".vscode", Other, "freeze"},
		{"type from the future", ".vscode", Type(99), "freeze"},
		{"file in place of a directory", ".github", Regular, "clean"},
		{".git directory", ".git", Dir, "freeze"},
		{".git file", ".git", Regular, "freeze"},
		{".git link", ".git", Symlink, "freeze"},
		{"link where git writes", ".git/logs/HEAD", Symlink, "review"},
		{"file where git writes", ".git/logs/HEAD", Regular, "clean"},
		{"directory with a file's name", "sub/Makefile", Dir, "clean"},
		{"build directory", "build", Dir, "clean"},
		{"bazel's BUILD", "pkg/BUILD", Regular, "freeze"},
		{"link with a surface's name", "package.json", Symlink, "freeze"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := word(m, tt.path, tt.typ); got != tt.want {
				t.Errorf("Match(%q, %d) = %s, want %s", tt.path, tt.typ, got, tt.want)
			}
		})
	}
}

func TestGeneratedTrees(t *testing.T) {
	m := mustMatcher(t, Rules{Protect: []string{"secret.key", "dist/pinned"}})
	for _, tt := range []struct {
		name, path, want string
	}{
		{"dependency", "node_modules/p/package.json", "note"},
		{"dependency's editor folder", "node_modules/p/.vscode/settings.json", "note"},
		{"dependency's repository", "node_modules/p/.git/hooks/pre-commit", "note"},
		{"deeper", "web/node_modules/p/.envrc", "note"},
		{"case", "Node_Modules/p/.envrc", "note"},
		{"bundler", "vendor/bundle/gems/x/Rakefile", "note"},
		{"vendor alone", "vendor/x/Rakefile", "freeze"},
		{"action called build", ".github/actions/build/action.yml", "freeze"},
		{"hook directory called build", ".husky/build/x", "freeze"},
		{"protected name", "node_modules/p/secret.key", "freeze"},
		{"protected path", "dist/pinned", "freeze"},
		{"workspace's own git", ".git/hooks/build/x", "freeze"},
		{"file called build", "pkg/build", "freeze"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := word(m, tt.path, Regular); got != tt.want {
				t.Errorf("Match(%q) = %s, want %s", tt.path, got, tt.want)
			}
		})
	}
	for _, g := range GeneratedTrees() {
		if g.Why == "" {
			t.Errorf("%s has no reason", g.Path)
		}
		if got := word(m, g.Path+"/x/conftest.py", Regular); got != "note" {
			t.Errorf("below %s: %s, want note", g.Path, got)
		}
	}
}

func TestRules(t *testing.T) {
	m := mustMatcher(t, Rules{
		Protect:   []string{"data/**", "*.lock", "tool.sh", "docs/", "a/*/c"},
		Unprotect: []string{"package.json", ".git/**", "*", ".agentguard.yaml", ".agentguard.sum", "data/free"},
	})
	for _, tt := range []struct {
		name, path string
		typ        Type
		want       string
	}{
		{"protect below", "data/d/f", Regular, "freeze"},
		{"protect the directory itself", "data", Dir, "freeze"},
		{"protect wins over unprotect", "data/free", Regular, "freeze"},
		{"protect suffix", "p/x.lock", Regular, "freeze"},
		{"protected directory by suffix", "p/x.lock/inner", Regular, "freeze"},
		{"protect name", "deep/tool.sh", Regular, "freeze"},
		{"directory only, a file", "docs", Regular, "clean"},
		{"directory only, below", "docs/x", Regular, "freeze"},
		{"one level", "a/b/c", Regular, "freeze"},
		{"link that could hold it", "a/b", Symlink, "freeze"},
		{"unprotected", "web/package.json", Regular, "review"},
		{"policy stays", ".agentguard.yaml", Regular, "freeze"},
		{"manifest stays", ".agentguard.sum", Regular, "freeze"},
		{"git stays", ".git/hooks/pre-commit", Regular, "freeze"},
		{"git config stays", ".git/config", Regular, "freeze"},
		{"review is not lowered", "AGENTS.md", Regular, "review"},
		{"unprotect protects nothing", "main.c", Regular, "clean"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := word(m, tt.path, tt.typ); got != tt.want {
				h, _ := m.Match(tt.path, tt.typ)
				t.Errorf("Match(%q) = %s (%s), want %s", tt.path, got, h.Rule, tt.want)
			}
		})
	}
	if h, _ := m.Match("tool.sh", Regular); h.Rule != "protect: tool.sh" || h.Entry.ID != ProtectID {
		t.Errorf("hit of a protect glob = %q of %q", h.Rule, h.Entry.ID)
	}
	all := mustMatcher(t, Rules{Protect: []string{"**"}})
	if got := word(all, "any/thing", Regular); got != "freeze" {
		t.Errorf("protect ** leaves %s", got)
	}
}

func TestWholeDir(t *testing.T) {
	for _, tt := range []struct {
		name, dir string
		rules     Rules
		want      bool
	}{
		{"hooks", ".git/hooks", Rules{}, true},
		{"below hooks", ".git/hooks/sub", Rules{}, true},
		{"git", ".git", Rules{}, false},
		{"husky", ".husky", Rules{}, true},
		{"husky at depth", "web/.husky", Rules{}, true},
		{"husky of a dependency", "node_modules/p/.husky", Rules{}, false},
		{"protected", "data", Rules{Protect: []string{"data/**"}}, true},
		{"protected by name", "x/data", Rules{Protect: []string{"data"}}, true},
		{"protected everything", "src", Rules{Protect: []string{"**"}}, true},
		{"protected files only", "data", Rules{Protect: []string{"data/*.csv"}}, false},
		{"workflows hold other files too", ".github/workflows", Rules{}, false},
		{"unprotect below", ".husky", Rules{Unprotect: []string{".husky/pre-push"}}, false},
		{"unprotect by name", ".husky", Rules{Unprotect: []string{"pre-push"}}, false},
		{"unprotect elsewhere", ".husky", Rules{Unprotect: []string{"/a/b"}}, true},
		{"unprotect does not reach git", ".git/hooks", Rules{Unprotect: []string{"*"}}, true},
		{"review in this profile", ".storybook", Rules{Profile: Balanced}, false},
		{"freeze in that one", ".storybook", Rules{}, true},
		{"source", "src", Rules{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, got := mustMatcher(t, tt.rules).WholeDir(tt.dir)
			if got != tt.want {
				t.Errorf("WholeDir(%q) = %v (%s), want %v", tt.dir, got, h.Rule, tt.want)
			}
		})
	}
}

func TestPrune(t *testing.T) {
	m := mustMatcher(t, Rules{Protect: []string{"*.lock"}})
	for dir, want := range map[string]bool{
		".git/objects/ab": true, ".git/objects/pack": true, ".git/objects": false,
		".git/objects/info": false, ".git/refs/heads": true, ".git/refs/heads/x": true,
		".git/refs": false, ".git/refs/replace": false, ".git/logs": false,
		"sub/.git/objects/ab": true, "objects/ab/cd": false, ".git": false,
		".git/modules/objects/ab": false,
	} {
		if got := m.Prune(dir); got != want {
			t.Errorf("Prune(%q) = %v, want %v", dir, got, want)
		}
	}
	if mustMatcher(t, Rules{Protect: []string{".git/objects/**"}}).Prune(".git/objects/ab") {
		t.Error("a protected object store is pruned")
	}
}

func TestBadGlobs(t *testing.T) {
	for _, glob := range []string{
		"", "!x", "a//b", "/", "../x", "a/./b", "x/..", "[a", "[", "[]", "[z-a]", `x\`, "*.{js,ts}",
		"[[:alpha:]]", "a\x00b", "a/**/b/**/c/**/d/**/e/**", "x*. ", "[a-", "[\\",
	} {
		t.Run(glob, func(t *testing.T) {
			if _, ok := errors.AsType[*GlobError](ParseGlob(glob)); !ok {
				t.Errorf("ParseGlob(%q) accepts", glob)
			}
			for _, r := range []Rules{{Protect: []string{glob}}, {Unprotect: []string{glob}}} {
				_, err := NewMatcher(nil, r)
				if g, ok := errors.AsType[*GlobError](err); !ok || g.Glob != glob || g.Why == "" {
					t.Errorf("NewMatcher(%+v) = %v, want a *GlobError", r, err)
				}
			}
		})
	}
}

func TestGlobLanguage(t *testing.T) {
	for _, tt := range []struct {
		glob, path string
		want       bool
	}{
		{"*.md", "a/b.md", true},
		{"/*.md", "a/b.md", false},
		{"/*.md", "b.md", true},
		{"a/*.md", "a/b.md", true},
		{"a/*.md", "x/a/b.md", false},
		{"**/a/*.md", "x/a/b.md", true},
		{"a/**/z", "a/z", true},
		{"a/**/z", "a/b/c/z", true},
		{"a/**", "a", false},
		{"a/**", "a/b", true},
		{"?.md", "b.md", true},
		{"?.md", "ä.md", true},
		{"?.md", "bb.md", false},
		{"[a-c]x", "bx", true},
		{"[a-c]x", "Bx", true},
		{"[!a-c]x", "Bx", false},
		{"[^a-c]x", "dx", true},
		{"[]]x", "]x", true},
		{"[a-]x", "-x", true},
		{`\*x`, "*x", true},
		{`\*x`, "ax", false},
		{`[\]]x`, "]x", true},
		{"a*b*c", "aXXbYYc", true},
		{"a*b*c", "aXXcYYb", false},
		{"a**b", "aXb", true},
		{"MiXeD", "mixed", true},
		{"straße", "STRASSE", true},
		{"o\u0308.txt", "ö.txt", true},
		{"x*\xff", "x1\xff", true},
		{"name.", "name", true},
		{"*", ".hidden", true},
	} {
		t.Run(tt.glob+" "+tt.path, func(t *testing.T) {
			m, err := NewMatcher(nil, Rules{Protect: []string{tt.glob}})
			if err != nil {
				t.Fatal(err)
			}
			if _, got := m.Match(tt.path, Regular); got != tt.want {
				t.Errorf("glob %q on %q = %v, want %v", tt.glob, tt.path, got, tt.want)
			}
		})
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	m := mustMatcher(t, Rules{Protect: []string{"data/**"}})
	for _, path := range realisticPaths() {
		if n := testing.AllocsPerRun(10, func() { m.Match(path, Regular) }); n != 0 {
			t.Fatalf("Match(%q) allocates %v times", path, n)
		}
	}
}

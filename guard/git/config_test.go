package git

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var configTexts = []struct {
	name, text string
	bad        bool
}{
	{"empty", "", false},
	{"plain", "[core]\n\tbare = false\n\thooksPath = .githooks\n", false},
	{"one line", "[a] b = c\n", false},
	{"two on a line", "[a] b = c [d] e\n", false},
	{"several sections on a line", "[a][b] c = d\n", false},
	{"byte order mark", "\xef\xbb\xbf[a]\nb=c\n", false},
	{"part of a byte order mark", "\xef\xbb[a]\nb=c\n", true},
	{"CRLF", "[a]\r\n\tb = c\r\n\td = \"e\"\r\n", false},
	{"CR alone", "[a]\n\tb = c\rd\n", false},
	{"no final line end", "[a]\n\tb = c", false},
	{"name at the end", "[a]\n\tb", false},
	{"comments", "# x\n[a] ; y\n\tb = c # d ; e\n\tf = \"g#h\"\n;\n", false},
	{"quotes", "[a]\n\tb = \" c \" d \"e\"\n\tf = g\" \"h\n", false},
	{"escapes", "[a]\n\tb = x\\ty\\nz\\bw\\\\v\\\"u\n", false},
	{"unknown escape", "[a]\n\tb = \\x\n", true},
	{"continuation", "[a]\n\tb = c \\\n   d\\\ne\n", false},
	{"continuation of CRLF", "[a]\r\n\tb = c \\\r\n   d\r\n", false},
	{"continued comment is not", "[a]\n\tb = c # \\\n\td = e\n", false},
	{"open quotation", "[a]\n\tb = \"c\n", true},
	{"quotation over a continuation", "[a]\n\tb = \"c\\\nd\"\n", false},
	{"inner spaces", "[a]\n\tb = c   d  \n", false},
	{"no value", "[a]\n\tb\n\tc =\n", false},
	{"case", "[CoRe]\n\tHooksPath = X\n", false},
	{"subsection", "[Remote \"Or\\\"i\\\\g\\in\"]\n\tURL = x\n", false},
	{"subsection with dots", "[a \"b.c.d\"]\n\te = f\n", false},
	{"subsection with brackets", "[a \"]#;\"]\n\te = f\n", false},
	{"old subsection", "[a.B.c]\n\td = e\n", false},
	{"empty subsection", "[a \"\"]\n\td = e\n", false},
	{"subsection without quotes", "[a b]\n\tc = d\n", true},
	{"subsection over lines", "[a \"b\nc\"]\n\td = e\n", true},
	{"junk after subsection", "[a \"b\" ]\n\td = e\n", true},
	{"open section", "[a\n\tb = c\n", true},
	{"underscore", "[a]\n\tb_c = d\n", true},
	{"digit first", "[a]\n\t1b = d\n", true},
	{"digits and hyphens", "[a-1]\n\tb-2 = d\n", false},
	{"no equals sign", "[a]\n\tb c\n", true},
	{"space before equals", "[a]\n\tb   =c\n", false},
	{"same key twice", "[a]\n\tb = c\n\tb = d\n", false},
	{"not UTF-8", "[a \"\xff\"]\n\tb = \xfe\n", false},
	{"include", "[include]\n\tpath = x\n[includeIf \"gitdir:/a/\"]\n\tpath = y\n", false},
}

// TestParseConfigAsGit compares with git config --list.
func TestParseConfigAsGit(t *testing.T) {
	f := newFixture(t)
	for _, tc := range configTexts {
		t.Run(tc.name, func(t *testing.T) {
			f.write("config", tc.text)
			out, err := f.command(".", "config", "--file", f.path("config"), "--list", "-z").Output()
			if (err != nil) != tc.bad {
				t.Fatalf("git config: %v, want failure: %v", err, tc.bad)
			}
			values, perr := ParseConfig("config", []byte(tc.text))
			if (perr != nil) != tc.bad {
				t.Fatalf("ParseConfig: %v, want failure: %v", perr, tc.bad)
			}
			if got := listing(values); perr == nil && strings.Map(tabToSpace, got) != strings.Map(tabToSpace, string(out)) {
				t.Errorf("got  %q\nwant %q", got, out)
			}
		})
	}
}

// listing prints values as git config --list -z does. Git before 2.45 makes
// white space inside a value spaces, so compare with [tabToSpace].
func listing(values []ConfigValue) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteString(v.Key)
		if !v.NoValue {
			b.WriteString("\n" + v.Value)
		}
		b.WriteByte(0)
	}
	return b.String()
}

func FuzzParseConfig(f *testing.F) {
	for _, tc := range configTexts {
		f.Add([]byte(tc.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		values, err := ParseConfig("f", data)
		if err != nil && errType(err) != "ConfigError" {
			t.Fatalf("error of another type: %v", err)
		}
		lines := strings.Count(string(data), "\n") + 1
		for _, v := range values {
			if v.Line < 1 || v.Line > lines || strings.ContainsRune(v.Value+v.Key, 0) {
				t.Fatalf("value %+v of %d lines", v, lines)
			}
		}
	})
}

// TestParseConfigRandom compares with git on texts put together at random.
func TestParseConfigRandom(t *testing.T) {
	f := newFixture(t)
	pieces := []string{"[a]", "[b \"c\"]", "[", "]", "\"", "\\", "\n", "\n", "\r\n", "=", " = ", "x", "Y-1", "#", ";", " ", "\\\n", "\\t", ".", "[d.e]", "\r"}
	seed := uint32(1)
	for range 80 {
		text := "[s]\n"
		for range 12 {
			seed = seed*1664525 + 1013904223
			text += pieces[int(seed>>8)%len(pieces)]
		}
		f.write("config", text)
		out, err := f.command(".", "config", "--file", f.path("config"), "--list", "-z").Output()
		values, perr := ParseConfig("config", []byte(text))
		if (err != nil) != (perr != nil) {
			t.Errorf("%q: git says %v, ParseConfig %v", text, err, perr)
		} else if err == nil && strings.Map(tabToSpace, listing(values)) != strings.Map(tabToSpace, string(out)) {
			t.Errorf("%q:\ngot  %q\nwant %q", text, listing(values), out)
		}
	}
}

func TestConfigScopes(t *testing.T) {
	f := newFixture(t)
	f.repo("main")
	f.git("main", "worktree", "add", "-q", f.path("ws"), "-b", "side")
	f.git("main", "config", "extensions.worktreeConfig", "true")
	f.git("main", "config", "x.local", "1")
	f.git("main", "remote", "add", "origin", "https://example.com/team/r.git")
	f.git("ws", "config", "--worktree", "x.worktree", "1")
	f.write("home/.config/git/config", "[x]\n\txdg = 1\n[include]\n\tpath = more\n")
	f.write("home/.config/git/more", "[x]\n\tincluded = 1\n")
	f.git(".", "config", "--global", "x.global", "1")
	conds := map[string]bool{
		"gitdir:" + f.path("main") + "/":  true,
		"gitdir:main/.git/**":             true,
		"gitdir:" + f.path("other") + "/": false,
		"gitdir:~/":                       false,
		"gitdir:*/ws":                     true,
		"gitdir:*/wt":                     false,
		"gitdir/i:" + strings.ToUpper(f.path("main")) + "/": true,
		"gitdir:./../main/":    false,
		"onbranch:side":        true,
		"onbranch:s*":          true,
		"onbranch:main":        false,
		"onbranch:s[a-i]d[!f]": true,
		"onbranch:**/side":     true,
		"hasconfig:remote.*.url:https://example.com/**":     true,
		"hasconfig:remote.*.url:https://example.com/*":      false,
		"hasconfig:remote.*.url:https://example.org/**":     false,
		"hasconfig:remote.*.pushurl:https://example.com/**": false,
		"novel:x": false,
	}
	text := f.read("home/.gitconfig")
	i := 0
	for _, c := range slices.Sorted(keysOf(conds)) {
		name := "cond" + string(rune('a'+i))
		i++
		f.write("home/"+name, "[cond]\n\t"+name+" = 1\n")
		text += "[includeIf \"" + c + "\"]\n\tpath = ~/" + name + "\n"
	}
	f.write("home/.gitconfig", text)
	r := f.open("ws")
	values, err := r.Config(f.home, "")
	if err != nil {
		t.Fatal(err)
	}
	values = slices.DeleteFunc(values, func(v ConfigValue) bool { return v.Scope == ScopeSystem })
	want := f.git("ws", "config", "--list", "-z", "--includes")
	if got := listing(values); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	i = 0
	for _, c := range slices.Sorted(keysOf(conds)) {
		_, got := lastValue(values, "cond.cond"+string(rune('a'+i)))
		if i++; got != conds[c] {
			t.Errorf("condition %q holds: %v, want %v", c, got, conds[c])
		}
	}
	for key, scope := range map[string]Scope{"x.xdg": ScopeGlobal, "x.included": ScopeGlobal, "x.global": ScopeGlobal, "x.local": ScopeLocal, "x.worktree": ScopeWorktree} {
		i := slices.IndexFunc(values, func(v ConfigValue) bool { return v.Key == key })
		if i < 0 || values[i].Scope != scope || values[i].Origin == "" {
			t.Errorf("%s is not in scope %v: %+v", key, scope, values)
		}
	}
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestIncludeLoopEnds(t *testing.T) {
	f := newFixture(t)
	f.repo("ws")
	f.write("ws/.git/config", "[include]\n\tpath = config\n\tpath = config\n")
	if _, err := f.open("ws").Config(f.home, ""); errType(err) != "ConfigError" {
		t.Errorf("Config with a loop: %v", err)
	}
}

func TestHooksPath(t *testing.T) {
	for _, tc := range []struct {
		name  string
		setup func(f *fixture)
		dir   string
		want  string // below the fixture, as git rev-parse --git-path hooks says
		scope Scope
		all   []string
	}{
		{name: "default", setup: func(f *fixture) {}, want: "ws/.git/hooks", all: []string{"ws/.git/hooks"}},
		{name: "relative", setup: func(f *fixture) { f.git("ws", "config", "core.hooksPath", ".githooks") }, want: "ws/.githooks", scope: ScopeLocal, all: []string{"ws/.git/hooks", "ws/.githooks"}},
		{name: "absolute", setup: func(f *fixture) { f.git("ws", "config", "core.hooksPath", f.path("h")) }, want: "h", scope: ScopeLocal, all: []string{"h", "ws/.git/hooks"}},
		{name: "home", setup: func(f *fixture) { f.git("ws", "config", "core.hooksPath", "~/h") }, want: "home/h", scope: ScopeLocal, all: []string{"home/h", "ws/.git/hooks"}},
		{name: "global", setup: func(f *fixture) { f.git(".", "config", "--global", "core.hooksPath", "g") }, want: "ws/g", scope: ScopeGlobal, all: []string{"ws/.git/hooks", "ws/g"}},
		{name: "local over global", setup: func(f *fixture) {
			f.git(".", "config", "--global", "core.hooksPath", "g")
			f.git("ws", "config", "core.hooksPath", "l")
		}, want: "ws/l", scope: ScopeLocal, all: []string{"ws/.git/hooks", "ws/g", "ws/l"}},
		{name: "last of two", setup: func(f *fixture) {
			f.git("ws", "config", "core.hooksPath", "one")
			f.git("ws", "config", "--add", "core.hooksPath", "two")
		}, want: "ws/two", scope: ScopeLocal, all: []string{"ws/.git/hooks", "ws/one", "ws/two"}},
		{name: "include of the repository", setup: func(f *fixture) {
			f.git("ws", "config", "include.path", "../inc")
			f.write("ws/inc", "[core]\n\thooksPath = i\n")
		}, want: "ws/i", scope: ScopeLocal, all: []string{"ws/.git/hooks", "ws/i"}},
		{name: "condition that does not hold", setup: func(f *fixture) {
			f.git("ws", "config", "includeIf.onbranch:other.path", "../inc")
			f.write("ws/inc", "[core]\n\thooksPath = i\n")
		}, want: "ws/.git/hooks", all: []string{"ws/.git/hooks", "ws/i"}},
		{name: "worktree scope", setup: func(f *fixture) {
			f.git("ws", "config", "core.hooksPath", "l")
			f.git("ws", "config", "extensions.worktreeConfig", "true")
			f.git("ws", "worktree", "add", "-q", f.path("w2"), "-b", "b")
			f.git("w2", "config", "--worktree", "core.hooksPath", "own")
		}, dir: "w2", want: "w2/own", scope: ScopeWorktree, all: []string{"w2/l", "w2/own", "ws/.git/hooks", "ws/.git/worktrees/w2/hooks"}},
		{name: "linked worktree", setup: func(f *fixture) {
			f.git("ws", "worktree", "add", "-q", f.path("w2"), "-b", "b")
		}, dir: "w2", want: "ws/.git/hooks", all: []string{"ws/.git/hooks", "ws/.git/worktrees/w2/hooks"}},
		{name: "config.worktree without the extension", setup: func(f *fixture) {
			f.write("ws/.git/config.worktree", "[core]\n\thooksPath = w\n")
		}, want: "ws/.git/hooks", all: []string{"ws/.git/hooks"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			f.repo("ws")
			tc.setup(f)
			dir := tc.dir
			if dir == "" {
				dir = "ws"
			}
			r := f.open(dir)
			h, err := r.HooksPath(f.home, "")
			if err != nil {
				t.Fatal(err)
			}
			if h.Dir != f.path(tc.want) || h.Set != (tc.scope != 0) || h.Scope != tc.scope {
				t.Errorf("HooksPath = %+v, want %s in scope %v", h, f.path(tc.want), tc.scope)
			}
			says := f.git(dir, "rev-parse", "--git-path", "hooks")
			if !filepath.IsAbs(says) {
				says = filepath.Join(f.path(dir), says)
			}
			if says != h.Dir {
				t.Errorf("git says %s, HooksPath %s", says, h.Dir)
			}
			all, err := r.AllHooksDirs(f.home, "")
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, p := range tc.all {
				want = append(want, f.path(p))
			}
			if !slices.Equal(all, want) {
				t.Errorf("AllHooksDirs = %q, want %q", all, want)
			}
		})
	}
}

func TestHooksPathRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no value":        "[core]\n\thooksPath\n",
		"another's home":  "[core]\n\thooksPath = ~root/h\n",
		"installation":    "[core]\n\thooksPath = %(prefix)/h\n",
		"optional":        "[core]\n\thooksPath = :(optional)h\n",
		"does not parse":  "[core\n",
		"NUL in the path": "[core]\n\thooksPath = a\x00b\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.repo("ws")
			f.write("inc", text)
			f.git("ws", "config", "include.path", f.path("inc"))
			if h, err := f.open("ws").HooksPath(f.home, ""); errType(err) != "ConfigError" {
				t.Errorf("HooksPath = %+v, %v", h, err)
			}
		})
	}
}

func TestSetConfig(t *testing.T) {
	f := newFixture(t)
	f.repo("ws")
	file := f.path("ws/.git/config")
	before := f.read("ws/.git/config")
	// What git would run or include from the file it edits must not matter.
	f.write("ws/.git/config", before+"[core]\n\tfsmonitor = touch "+f.path("pwned")+"\n\tpager = touch "+f.path("pwned")+"\n[include]\n\tpath = /nonexistent/\"x\"\n")
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	steps := []struct{ value string }{{"/some where/hooks"}, {"-dash"}, {"q\"uo\\te # x"}}
	for _, s := range steps {
		if err := SetConfig("core.hooksPath", s.value, file); err != nil {
			t.Fatal(err)
		}
		if got := f.git(".", "config", "-f", file, "core.hooksPath"); got != s.value {
			t.Errorf("git reads %q, want %q", got, s.value)
		}
	}
	f.git(".", "config", "-f", file, "--add", "core.hooksPath", "second")
	if err := SetConfig("core.hookspath", "one", file); err != nil {
		t.Fatal(err)
	}
	if got := f.git(".", "config", "-f", file, "--get-all", "core.hooksPath"); got != "one" {
		t.Errorf("git reads %q, want one value", got)
	}
	fi, err := os.Stat(file)
	if err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	for range 2 {
		if err := UnsetConfig("Core.HooksPath", file); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(f.read("ws/.git/config"), "hooks") {
		t.Errorf("still set: %s", f.read("ws/.git/config"))
	}
	if _, err := os.Lstat(f.path("pwned")); err == nil {
		t.Error("a command of the file ran")
	}
	if _, err := os.Lstat(file + ".lock"); err == nil {
		t.Error("the lock is left")
	}
}

func TestSetConfigRefuses(t *testing.T) {
	f := newFixture(t)
	f.write("real", "[a]\n\tb = c\n")
	f.symlink("real", "link")
	f.write("bad", "[a\n")
	f.write("held", "")
	f.write("held.lock", "")
	for name, want := range map[string]string{"link": "symbolic link", "bad": "does not end", "held": "lock", "gone/config": "no such file"} {
		t.Run(name, func(t *testing.T) {
			err := SetConfig("x.y", "z", f.path(name))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("SetConfig: %v, want %q", err, want)
			}
		})
	}
	if got := f.read("real"); got != "[a]\n\tb = c\n" {
		t.Errorf("the link's target was changed: %q", got)
	}
	if err := SetConfig("nokey", "z", f.path("new")); errType(err) != "ExecError" {
		t.Errorf("SetConfig of a bad key: %v", err)
	}
	if entries, _ := filepath.Glob(f.path("*.lock")); len(entries) != 1 {
		t.Errorf("locks left: %q", entries)
	}
	if err := SetConfig("x.y", "z", f.path("new")); err != nil || f.read("new") != "[x]\n\ty = z\n" {
		t.Errorf("a new file: %v", err)
	}
}

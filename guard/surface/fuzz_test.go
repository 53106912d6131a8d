package surface

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzMatch: no path makes the matcher fail, a spelling that a lax file
// system takes for the same is judged the same, and what the index finds is
// what trying every rule finds.
func FuzzMatch(f *testing.F) {
	for _, p := range []string{
		"package.json", "sub/.git/hooks/pre-commit", "GIT~1/config", "node_modules/x/.envrc", ".g\u200cit/config",
		"a/b/c.mk", "\xff/\xfe", "//", "web/eslint.config.mjs", "x.xcodeproj/project.pbxproj", "...", " ", "a:$b", "ß/ſ/K",
	} {
		f.Add(p, uint8(Regular))
		f.Add(p, uint8(Symlink))
		f.Add(p, uint8(Dir))
	}
	m := mustMatcher(f, Rules{Protect: []string{"data/**", "*.lock"}, Unprotect: []string{"web/**"}})
	rules := m.everyRule()
	f.Fuzz(func(t *testing.T, path string, typ uint8) {
		got, ok := m.Match(path, Type(typ))
		if ok && (got.Entry == nil || got.Rule == "") {
			t.Errorf("Match(%q) = %+v without a reason", path, got)
		}
		p, short := splitName(path, nil, nil)
		if !short {
			return
		}
		folded := ""
		for i := range p.len() {
			folded += "/" + string(p.part(i))
			if again := foldName(string(p.part(i))); again != string(p.part(i)) {
				t.Errorf("folding %q again gives %q", p.part(i), again)
			}
		}
		if again, ok2 := m.Match(folded, Type(typ)); ok != ok2 || got != again {
			t.Errorf("%q: %+v, its folded form %q: %+v", path, got, folded, again)
		}
		s := search{m: m, p: p, typ: min(Type(typ), Gitlink)}
		if Type(typ) > Gitlink {
			s.typ = Other
		}
		for _, r := range rules {
			for start := range p.len() {
				if (start == 0 || !r.rooted) && r.types&(1<<s.typ) != 0 && matchParts(r.parts, p, start) {
					s.offer(r, start)
				}
			}
		}
		if (s.rule != nil) != ok || ok && (s.rule.text != got.Rule || s.prot != got.Protection) {
			t.Errorf("Match(%q) = %+v, trying every rule finds %+v", path, got, s.best)
		}
	})
}

func (m *Matcher) everyRule() (rules []*rule) {
	add := func(r *rule) {
		for ; r != nil; r = r.next {
			rules = append(rules, r)
		}
	}
	for _, x := range []*index{&m.base, &m.path} {
		for _, r := range x.exact {
			add(r)
		}
		for _, r := range x.suffix {
			add(r)
		}
		for _, r := range x.prefix {
			add(r)
		}
		add(x.rest)
	}
	return rules
}

// FuzzWholeDir: what is said to be frozen as a whole has nothing below it
// that is not.
func FuzzWholeDir(f *testing.F) {
	f.Add(".husky", "x/package.json", "*.md", "data/**")
	f.Add(".git/hooks", "pre-commit", "*", "x")
	f.Add("data", "a", "/data/b/**", "data")
	f.Add("node_modules/.husky", "x", "a", "b/**")
	f.Fuzz(func(t *testing.T, dir, below, unprotect, protect string) {
		m, err := NewMatcher(Catalogue()[:20], Rules{Protect: []string{protect}, Unprotect: []string{unprotect}})
		if err != nil {
			return
		}
		if _, ok := m.WholeDir(dir); !ok {
			return
		}
		p, ok := splitName(below, nil, nil)
		if !ok || p.len() == 0 {
			return
		}
		for typ := Other; typ <= Gitlink; typ++ {
			if h, ok := m.Match(dir+"/"+below, typ); !ok || h.Protection != Freeze {
				t.Errorf("WholeDir(%q), but Match of %q, %d = %+v, %v (protect %q, unprotect %q)", dir, below, typ, h, ok, protect, unprotect)
			}
		}
	})
}

// FuzzPackagePart: a part is valid, and the part of a part is itself.
func FuzzPackagePart(f *testing.F) {
	for _, s := range []string{`{}`, `{"scripts": {"b": "1", "a": "2"}}`, `{"dependencies": {"a": "git+x"}, "exports": [1, {"x": null}]}`, `{"a":1,"a":2}`, "\ufeff{}"} {
		f.Add([]byte(s))
	}
	e := packageEntry(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		part, whole := ExecutablePart(e, "package.json", content)
		if whole {
			if !bytes.Equal(part, content) {
				t.Errorf("whole, but %q", part)
			}
			return
		}
		if !json.Valid(part) || !json.Valid(content) {
			t.Errorf("part %q of %q", part, content)
		}
		if again, whole := ExecutablePart(e, "package.json", part); whole || !bytes.Equal(again, part) {
			t.Errorf("part of %q is %q, whole %v", part, again, whole)
		}
	})
}

// FuzzConfigPart: reading what was read gives the same.
func FuzzConfigPart(f *testing.F) {
	for _, s := range []string{"[core]\n\teditor = x\n", "[a \"b\"] c = \"d;e\" ; f\n", "[a]\nb = c\\\nd", "[a.b]\nc", "[branch \"m\"]\nremote = .\n"} {
		f.Add([]byte(s))
	}
	e := configEntry(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		part, whole := ExecutablePart(e, ".git/config", content)
		if whole && !bytes.Equal(part, content) {
			t.Errorf("whole, but %q", part)
		}
		all, ok := parseConfig(content)
		if ok == whole {
			t.Errorf("parsed %v, whole %v", ok, whole)
		}
		if len(all) > 0 && bytes.Count(part, []byte("\n")) > len(all) {
			t.Errorf("%d settings, part %q", len(all), part)
		}
	})
}

// FuzzGlob: a glob that is accepted matches its own text when nothing in it
// is special, and no glob makes the matcher hang.
func FuzzGlob(f *testing.F) {
	f.Add("a/**/b*c", "a/x/bxc")
	f.Add("[a-z]?", "bq")
	f.Add(`\[x`, "[x")
	f.Add("***a**", "bab")
	f.Fuzz(func(t *testing.T, glob, path string) {
		m, err := NewMatcher(nil, Rules{Protect: []string{glob}})
		if (err == nil) != (ParseGlob(glob) == nil) {
			t.Errorf("glob %q: NewMatcher %v, ParseGlob %v", glob, err, ParseGlob(glob))
		}
		if err == nil {
			m.Match(path, Regular)
		}
	})
}

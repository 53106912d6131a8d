package surface

import "strings"

// GeneratedTree is a directory whose content a tool writes, by the thousand
// and again on every install or build. What lies there is executed too, but
// nobody could approve it file by file, and freezing it breaks the tool.
type GeneratedTree struct {
	Path string // one or two components, at any depth
	Why  string
}

// GeneratedTrees returns the directories below which hits are only noted.
func GeneratedTrees() []GeneratedTree {
	return []GeneratedTree{
		{"node_modules", "npm, pnpm, yarn and bun install here; the lock file is reviewed instead"},
		{"bower_components", "bower installs here"},
		{"jspm_packages", "jspm installs here"},
		{".pnpm-store", "pnpm keeps packages here when the home is on another file system"},
		{".venv", "python -m venv, uv and poetry install here"},
		{"venv", "the other customary name of a virtual environment"},
		{"site-packages", "pip installs here, whatever the environment is called"},
		{"dist-packages", "Debian's name for site-packages"},
		{".tox", "tox builds its environments here"},
		{".nox", "nox builds its environments here"},
		{".eggs", "setuptools fetches build requirements here"},
		{"__pycache__", "python compiles here"},
		{"vendor/bundle", "bundler installs here"},
		{"target", "cargo, maven and sbt build here"},
		{"dist", "bundlers and python builds write here"},
		{"build", "gradle, cmake, setuptools and bundlers write here"},
		{".gradle", "gradle caches here"},
		{".next", "next builds here"},
		{".nuxt", "nuxt builds here"},
		{".svelte-kit", "svelte builds here"},
		{".terraform", "terraform installs providers and modules here"},
		{".dart_tool", "dart generates here"},
		{".zig-cache", "zig builds here"},
		{"_build", "mix, dune and sphinx build here"},
		{"pods", "cocoapods installs here"},
		{"deriveddata", "xcode builds here"},
	}
}

// treeSet finds generated trees in a path.
type treeSet struct {
	second map[string]string // by the first component; "" where there is one only
	set    filter
}

func newTreeSet() treeSet {
	t := treeSet{second: map[string]string{}}
	for _, g := range GeneratedTrees() {
		first, second, _ := strings.Cut(g.Path, "/")
		t.second[first] = second
		t.set.add(hashText(first))
	}
	return t
}

// first returns the first component of p that begins such a directory, or
// the length of p. The last component counts only if it is a directory: a
// file may be called build.
func (t *treeSet) first(p name, typ Type) int {
	n := p.len()
	dirs := n - 1
	if typ == Dir {
		dirs = n
	}
	for i := range dirs {
		b := p.part(i)
		if !t.set.has(hashText(b)) {
			continue
		}
		second, ok := t.second[string(b)]
		if ok && (second == "" || i+1 < dirs && string(p.part(i+1)) == second) {
			return i
		}
	}
	return n
}

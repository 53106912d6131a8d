package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// toolDirs are the directories of a tool, beside the one that is on PATH, in
// which its programs keep what they run on.
var toolDirs = []string{"lib", "lib64", "libexec", "share", "include", "lib32", "pkg", "src"}

// managedTools are the version managers whose programs, found in PATH, run
// others kept elsewhere below the user's home. Only these sub-directories are
// shown: what lies beside them is configuration, history and logins.
var managedTools = map[string][]string{
	".pyenv":            {"bin", "libexec", "plugins", "shims", "versions", "version", "pyenv.d", "completions"},
	".rbenv":            {"bin", "libexec", "plugins", "shims", "versions", "version"},
	".nodenv":           {"bin", "libexec", "plugins", "shims", "versions", "version"},
	".nvm":              {"versions", "alias"},
	".asdf":             {"bin", "lib", "libexec", "plugins", "shims", "installs", "asdf.sh"},
	".volta":            {"bin", "tools", "volta"},
	".bun":              {"bin"},
	".deno":             {"bin"},
	".cargo":            {"bin"},
	".rustup":           {"toolchains", "settings.toml"},
	".sdkman":           {"candidates"},
	".dotnet":           {"dotnet", "host", "sdk", "shared", "packs", "tools"},
	"go":                {"bin"},
	".local/share/mise": {"installs", "shims"},
	".local/share/fnm":  {"node-versions"},
	".local/share/pnpm": {},
}

// toolSet collects what is shown: directories and files by their real paths,
// and the links by which the caller names them, so that a program that looks
// for its own parts beside itself finds them.
type toolSet struct {
	real  map[string]bool
	links map[string]string
}

// toolGrants finds what has to be shown read-only so that the programs on the
// caller's PATH run: their directories, and of each tool the parts that its
// programs need.
func (g *Guard) toolGrants(home, root string, argv0 string) (dirs []string, links []link) {
	set := &toolSet{real: map[string]bool{}, links: map[string]string{}}
	entries := filepath.SplitList(g.Env["PATH"])
	for _, entry := range entries {
		g.grantTool(set, entry, home, root)
	}
	if strings.Contains(argv0, "/") {
		g.grantProgram(set, argv0, home, root)
	} else {
		for _, entry := range entries {
			if path := filepath.Join(entry, argv0); filepath.IsAbs(path) && exists(path) {
				g.grantProgram(set, path, home, root)
				break
			}
		}
	}
	for dir := range set.real {
		if !set.covers(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	for path, text := range set.links {
		if !set.covers(path) && !systemPath(path) && !within(path, root) {
			links = append(links, link{path, text})
		}
	}
	slices.SortFunc(links, func(a, b link) int { return strings.Compare(a.path, b.path) })
	return dirs, links
}

// covers says that something further up is shown as a whole.
func (s *toolSet) covers(path string) bool {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if s.real[dir] {
			return true
		}
	}
	return false
}

// add shows a path, if it is there, and every link on the way to it.
func (s *toolSet) add(path string) {
	real, links, err := resolveLinks(path)
	if err != nil || systemPath(real) {
		return
	}
	s.real[real] = true
	for _, l := range links {
		s.links[l.path] = l.text
	}
}

// resolveLinks follows path to what it names and returns the links met.
func resolveLinks(path string) (string, []link, error) {
	var links []link
	done, rest := "/", strings.Split(strings.Trim(filepath.Clean(path), "/"), "/")
	for steps := 0; len(rest) > 0; steps++ {
		if steps > 255 {
			return "", nil, os.ErrInvalid
		}
		next := filepath.Join(done, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return "", nil, err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			done = next
			continue
		}
		text, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		links = append(links, link{next, text})
		to := text
		if !filepath.IsAbs(to) {
			to = filepath.Join(done, to)
		}
		rest = append(strings.Split(strings.Trim(filepath.Clean(to), "/"), "/"), rest...)
		done = "/"
	}
	return done, links, nil
}

// grantTool shows one entry of PATH.
func (g *Guard) grantTool(set *toolSet, entry, home, root string) {
	if !filepath.IsAbs(entry) {
		return // inside the workspace, if anywhere
	}
	entry = filepath.Clean(entry)
	if home != "" && within(home, entry) {
		return // it would show the whole of the user
	}
	if systemPath(entry) || within(entry, root) || !isDirectory(entry) {
		return
	}
	if home != "" && within(entry, home) {
		g.grantManaged(set, entry, home)
		return
	}
	if name := filepath.Base(entry); name == "bin" || name == "sbin" {
		g.grantPrefix(set, filepath.Dir(entry))
	}
	set.add(entry)
}

// grantManaged shows an entry of PATH below the user's home: a version
// manager's parts when it is one's, else that directory alone.
func (g *Guard) grantManaged(set *toolSet, entry, home string) {
	for tool, parts := range managedTools {
		base := filepath.Join(home, tool)
		if !within(entry, base) {
			continue
		}
		for _, part := range parts {
			set.add(filepath.Join(base, part))
		}
		if tool == ".cargo" {
			for _, part := range managedTools[".rustup"] {
				set.add(filepath.Join(home, ".rustup", part))
			}
		}
	}
	if entry == home || entry == filepath.Join(home, ".ssh") {
		return // a home directory on PATH shows nothing of itself
	}
	set.add(entry)
}

// grantPrefix shows the parts of a tool installed outside the system's own
// directories and outside the home, as /opt/tool.
func (g *Guard) grantPrefix(set *toolSet, prefix string) {
	if prefix == "/" || strings.Count(prefix, "/") < 2 {
		return
	}
	for _, name := range toolDirs {
		set.add(filepath.Join(prefix, name))
	}
}

// grantProgram shows the one program that is asked for, wherever links lead
// from it: the user named it.
func (g *Guard) grantProgram(set *toolSet, path, home, root string) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(g.Dir, path)
	}
	if systemPath(path) || within(path, root) {
		return
	}
	real, _, err := resolveLinks(path)
	if err != nil || within(real, root) {
		return
	}
	if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() {
		return
	}
	set.add(path)
	if dir := packageDir(real, home); dir != "" {
		set.add(dir)
	}
}

// packageDir is the directory of an npm or pip package that holds path, up to
// the outermost node_modules, whose siblings are what it depends on.
func packageDir(path, home string) string {
	if i := strings.Index(path, "/node_modules/"); i >= 0 {
		return path[:i] + "/node_modules"
	}
	for _, tool := range []string{".local/share/claude", ".local/share/uv/tools", ".local/pipx/venvs", ".local/share/pipx/venvs"} {
		if base := filepath.Join(home, tool); home != "" && within(path, base) {
			return base
		}
	}
	return ""
}

// systemPath says that path is part of what every sandbox shows.
func systemPath(path string) bool {
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc", "/dev", "/sys", "/etc"} {
		if within(path, dir) {
			return true
		}
	}
	return path == "/"
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

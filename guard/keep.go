package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentguard/guard/surface"
	"agentguard/integrity"
	"agentguard/sandbox"
)

// backup is where the content of surfaces is kept, so that restore has
// something to restore from.
func (w *Workspace) backup() integrity.Backup {
	return integrity.Backup{Dir: filepath.Join(w.stateDir(), "content")}
}

func (w *Workspace) approvals() integrity.Store {
	return integrity.Store{Dir: filepath.Join(w.stateDir(), "approvals")}
}

// keep stores what the surfaces hold now. It returns those that it could not.
func (w *Workspace) keep(areas []*area) ([]string, error) {
	var left []string
	for _, a := range areas {
		l, err := w.backup().Keep(a.tree, a.files)
		if err != nil {
			return nil, fmt.Errorf("keeping copies of the surfaces: %w", err)
		}
		for _, path := range l {
			left = append(left, w.shown(a.path(path)))
		}
	}
	return left, nil
}

// cacheNames are the directories below ~/.cache that tools fill; they persist
// from run to run of one repository and are never the user's own.
var cacheNames = []string{
	"go-build", "go-mod", "golangci-lint", "npm", "yarn", "pnpm", "node", "node-gyp", "pip", "uv", "pypoetry", "pre-commit",
	"cargo", "gradle", "maven", "bun", "deno", "ccache", "sccache", "bazel", "ms-playwright", "typescript", "turbo",
}

// makeCaches makes this repository's cache directories, for whom the command
// runs as.
func (w *Workspace) makeCaches(as *sandbox.Identity) error {
	root := w.dirs.cacheDir(w.ID)
	if err := privateDir(root); err != nil {
		return err
	}
	dirs := []string{root}
	for _, c := range w.cacheDirs("") {
		if err := privateDir(c.host); err != nil {
			return err
		}
		dirs = append(dirs, c.host)
	}
	if as == nil {
		return nil
	}
	return own(w.dirs.cache, dirs, as)
}

// own gives the caches, the first of which holds the others, to whom the
// command runs as, and lets pass through the directories that lead there.
func own(top string, dirs []string, as *sandbox.Identity) error {
	var err error
	for _, dir := range dirs {
		err = errors.Join(err, os.Lchown(dir, int(as.UID), int(as.GID)))
	}
	for up := filepath.Dir(dirs[0]); err == nil && within(up, top); up = filepath.Dir(up) {
		err = os.Chmod(up, 0o711)
	}
	if err != nil {
		return fmt.Errorf("giving a cache to the workspace's owner: %w", err)
	}
	return nil
}

// sshConfig is the machine's ssh configuration without its drop-ins: inside,
// their owner is nobody, and ssh refuses to start with such a file.
func sshConfig() []byte {
	const name = "/etc/ssh/ssh_config"
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 64<<10 {
		return nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	var out []string
	for _, line := range strings.Split(string(b), "\n") {
		if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "include") {
			out = append(out, line)
		}
	}
	return []byte(strings.Join(out, "\n"))
}

// homeFiles are what the private home holds: the user's name for commits, and
// the names that git inside has to leave alone because they cannot be moved.
func (g *Guard) homeFiles(w *Workspace, home string, p *plan) []sandbox.Mount {
	if w.Repo == nil {
		return nil
	}
	config := "# made by agentguard for this run\n[safe]\n\tdirectory = *\n[gc]\n\tautoDetach = false\n[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n"
	values, err := w.Repo.Config(g.home(), g.Env["XDG_CONFIG_HOME"])
	if err != nil {
		values = nil // hooksDirs has told a configuration that cannot be read
	}
	identity := map[string]string{}
	for _, v := range values {
		if v.Scope < 3 && slices.Contains([]string{"user.name", "user.email", "init.defaultbranch", "pull.rebase", "core.autocrlf", "core.hookspath"}, v.Key) {
			identity[v.Key] = v.Value
		}
	}
	for key, value := range identity {
		section, name, _ := strings.Cut(key, ".")
		config += "[" + section + "]\n\t" + name + " = " + quoteConfig(value) + "\n"
	}
	config += "[includeIf " + quoteConfig("gitdir:"+literalGlob(w.Repo.GitDir)) + "]\n\tpath = " + quoteConfig(home+"/.config/git/frozen-in-this-run.config") + "\n"
	files := []sandbox.Mount{{Kind: sandbox.File, Target: home + "/.gitconfig", Data: []byte(config), Perm: 0o644}}
	if user := g.userIgnore(); user != "" {
		files = append(files, sandbox.Mount{Kind: sandbox.File, Target: home + "/.config/git/ignore", Data: []byte(user), Perm: 0o644})
	}
	const ignored = "/.config/git/frozen-in-this-run"
	files = append(files,
		sandbox.Mount{Kind: sandbox.File, Target: home + ignored, Data: []byte(g.userIgnore() + w.frozenIgnore(p)), Perm: 0o644},
		sandbox.Mount{Kind: sandbox.File, Target: home + ignored + ".config", Data: []byte("[core]\n\texcludesFile = " + quoteConfig(home+ignored) + "\n"), Perm: 0o644})
	return files
}

func quoteConfig(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(value) + `"`
}

// userIgnore is the user's own list of what git leaves alone.
func (g *Guard) userIgnore() string {
	for _, name := range []string{filepath.Join(g.Env["XDG_CONFIG_HOME"], "git/ignore"), filepath.Join(g.home(), ".config/git/ignore")} {
		if !filepath.IsAbs(name) {
			continue
		}
		if data, err := os.ReadFile(name); err == nil && len(data) < 1<<20 {
			return string(data) + "\n"
		}
	}
	return ""
}

// frozenIgnore lists the frozen paths of the workspace: git stash -u and git
// clean would try to move what is bound in place, and fail. A tracked file is
// not affected, and no other repository inside.
func (w *Workspace) frozenIgnore(p *plan) string {
	var b strings.Builder
	b.WriteString("# frozen in this run\n")
	for _, a := range p.areas {
		if a.dir != w.Root {
			continue
		}
		for _, f := range a.members {
			rel := strings.TrimPrefix(f.path, w.Root+"/")
			if !f.name && !within(rel, ".git") && !strings.Contains(rel, "\n") {
				b.WriteString("/" + literalGlob(rel) + "\n")
			}
		}
	}
	return b.String()
}

// saveLast keeps the state before a run that left something undecided, for
// restore; clean runs leave nothing.
func (w *Workspace) saveLast(s *start) error {
	s, err := w.withUndecided(s)
	if err != nil {
		return err
	}
	data, err := s.encode(record{})
	if err != nil {
		return err
	}
	if s.index != nil {
		if err := writeAtomic(filepath.Join(w.stateDir(), lastIndex), s.index, 0o600); err != nil {
			return err
		}
	}
	return writeAtomic(w.lastFile(), data, 0o600)
}

// stateDirs makes all directories that later commands use, so that a run
// itself adds none.
func (w *Workspace) stateDirs() error {
	for _, dir := range []string{w.marksDir(), w.backup().Dir, w.approvals().Dir, w.trust().Dir, w.quarantine()} {
		if err := privateDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workspace) quarantine() string { return filepath.Join(w.stateDir(), "quarantine") }

var _ = surface.Freeze

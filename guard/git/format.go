package git

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mustBeReal are the names in a git directory that must be no symbolic links:
// through them git reads or writes what it believes.
var mustBeReal = []string{
	"HEAD", "commondir", "config", "config.worktree", "gitdir", "index", "info", "logs", "modules", "objects",
	"objects/info", "objects/info/alternates", "objects/pack", "packed-refs", "refs", "refs/heads", "refs/remotes",
	"refs/tags", "shallow", "worktrees",
}

// checkLinks refuses symbolic links where git makes none. The hooks directory
// and single refs are not among them: [Repo.Symlinks] tells those.
func (r *Repo) checkLinks() error {
	for _, root := range []*os.Root{r.git, r.common} {
		for _, name := range mustBeReal {
			fi, err := root.Lstat(name)
			if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
				return linkError(root, name)
			}
			if err != nil && !isNotExist(err) {
				return fmt.Errorf("looking at %q in %q: %w", name, root.Name(), underlying(err))
			}
		}
	}
	return nil
}

// formatValues reads what decides how the repository is to be read: the config
// file and, where the extension says so, config.worktree. Git takes this from
// the files alone, so includes are not followed.
func (r *Repo) formatValues() ([]ConfigValue, error) {
	values, err := readConfigFile(filepath.Join(r.CommonDir, "config"), false)
	if err != nil && !isNotExist(err) {
		return nil, err
	}
	if r.worktreeConfig, err = lastBool(values, "extensions.worktreeconfig"); err != nil || !r.worktreeConfig {
		return values, err
	}
	more, err := readConfigFile(filepath.Join(r.GitDir, "config.worktree"), false)
	if err != nil && !isNotExist(err) {
		return nil, err
	}
	return append(values, more...), nil
}

func (r *Repo) readFormat() error {
	values, err := r.formatValues()
	if err != nil {
		return err
	}
	if err := checkVersion(values); err != nil {
		return err
	}
	if err := r.readExtensions(values); err != nil {
		return err
	}
	if r.Bare || r.Linked && !r.worktreeConfig {
		return nil // git takes neither core.bare nor core.worktree of a linked worktree from the common file
	}
	return r.checkWorkTree(values)
}

func checkVersion(values []ConfigValue) error {
	v, ok := lastValue(values, "core.repositoryformatversion")
	if !ok {
		return nil
	}
	if n, err := strconv.Atoi(v); err != nil || n < 0 || n > 1 {
		return &UnsupportedError{What: fmt.Sprintf("repository format version %q, which is not known", v)}
	}
	return nil
}

// checkExtensions refuses every extension that is not known to change nothing
// here, whatever the format version: git ignores some in version 0, and a
// reader that ignores what git does not is worse than one that stops.
func (r *Repo) readExtensions(values []ConfigValue) error {
	r.ObjectFormat = SHA1
	for _, v := range values {
		name, ok := strings.CutPrefix(v.Key, "extensions.")
		if !ok {
			continue
		}
		switch name {
		case "noop", "noop-v1", "preciousobjects", "partialclone", "relativeworktrees", "submodulepathconfig", "worktreeconfig":
		case "objectformat":
			if err := r.setObjectFormat(v.Value); err != nil {
				return err
			}
		case "refstorage":
			if v.Value != "files" {
				return &UnsupportedError{What: fmt.Sprintf("the ref storage %q, of which only \"files\" is read", v.Value)}
			}
		default:
			return &UnsupportedError{What: fmt.Sprintf("the extension %q, which is not known", name)}
		}
	}
	return nil
}

func (r *Repo) setObjectFormat(name string) error {
	for _, f := range []ObjectFormat{SHA1, SHA256} {
		if name == f.String() {
			r.ObjectFormat = f
			return nil
		}
	}
	return &UnsupportedError{What: fmt.Sprintf("the object format %q, which is not known", name)}
}

// checkWorkTree refuses a repository whose configuration says that it has no
// work tree, or another one than the one it was found in.
func (r *Repo) checkWorkTree(values []ConfigValue) error {
	named, set := lastValue(values, "core.worktree")
	if !set {
		bare, err := lastBool(values, "core.bare")
		if err == nil && bare {
			err = &BareError{Dir: r.GitDir}
		}
		return err
	}
	if d, err := resolveFrom(r.GitDir, named); err != nil || d != r.Root {
		return &PointerError{File: filepath.Join(r.CommonDir, "config"), Target: named, Why: "core.worktree names another work tree than the one it was found in"}
	}
	return nil
}

// lastValue returns the last value of key, in lower case.
func lastValue(values []ConfigValue, key string) (string, bool) {
	for i := len(values) - 1; i >= 0; i-- {
		if values[i].Key == key {
			return values[i].Value, true
		}
	}
	return "", false
}

// lastBool returns the last value of key as a boolean, false when there is
// none. One that is no boolean is an error, as in git, wherever it stands.
func lastBool(values []ConfigValue, key string) (on bool, err error) {
	for _, v := range values {
		if v.Key != key {
			continue
		}
		if on, err = parseBool(v); err != nil {
			return false, err
		}
	}
	return on, nil
}

func parseBool(v ConfigValue) (bool, error) {
	if v.NoValue {
		return true, nil
	}
	switch strings.ToLower(v.Value) {
	case "true", "yes", "on":
		return true, nil
	case "false", "no", "off", "":
		return false, nil
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil {
		return false, &ConfigError{File: v.Origin, Line: v.Line, Why: fmt.Sprintf("%s is no boolean", v.Key)}
	}
	return n != 0, nil
}

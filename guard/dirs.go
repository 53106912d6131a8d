package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentguard/guard/policy"
)

// dirs are agentguard's own directories, all outside every sandbox but the
// cache, which belongs to one repository's runs.
type dirs struct {
	config string // config.yaml of the user
	state  string // trust, approvals, hooks, marks of runs
	cache  string // tools' caches of sandboxed runs
}

func (g *Guard) dirs() (dirs, error) {
	base := func(name, below string) (string, error) {
		if d := g.Env[name]; filepath.IsAbs(d) {
			return filepath.Join(d, "agentguard"), nil
		}
		if g.home() == "" {
			return "", errors.New("HOME is not set, and agentguard keeps its state below it")
		}
		return filepath.Join(g.home(), below, "agentguard"), nil
	}
	var d dirs
	var errs [3]error
	d.config, errs[0] = base("XDG_CONFIG_HOME", ".config")
	d.state, errs[1] = base("XDG_STATE_HOME", ".local/state")
	d.cache, errs[2] = base("XDG_CACHE_HOME", ".cache")
	return d, errors.Join(errs[:]...)
}

// own lists what no policy may grant.
func (d dirs) own() []string { return []string{d.config, d.state, d.cache} }

// repoDir is where the state of one repository (or plain directory) lives.
func (d dirs) repoDir(id policy.RepoID) string {
	return filepath.Join(d.state, "repos", repoName(id))
}

// cacheDir is the cache root of one repository's runs.
func (d dirs) cacheDir(id policy.RepoID) string {
	return filepath.Join(d.cache, "repos", repoName(id))
}

// repoName is one clone's name among all: readable, and unique by its
// identity rather than by its path alone.
func repoName(id policy.RepoID) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", id.Path, id.Dev, id.Ino))
	base := filepath.Base(strings.TrimSuffix(id.Path, "/.git"))
	clean := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, base)
	return clean[:min(len(clean), 40)] + "-" + hex.EncodeToString(sum[:8])
}

// privateDir makes dir and its parents for the user alone.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making agentguard's directory: %w", err)
	}
	return nil
}

// writeAtomic puts a file in place whole or not at all, and leaves one alone
// that already says the same.
func writeAtomic(name string, data []byte, perm fs.FileMode) error {
	if old, err := os.ReadFile(name); err == nil && string(old) == string(data) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".tmp-*")
	if err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	defer os.Remove(f.Name()) // gone already once renamed
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(perm), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	return nil
}

package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// SetConfig sets key to value in file, a git configuration file, replacing all
// values it has there; an absent file is made. file must be no symbolic link.
func SetConfig(key, value, file string) error {
	if strings.ContainsAny(key+value, "\x00") || strings.HasPrefix(key, "-") {
		return fmt.Errorf("setting %q in %q: the key or the value is not allowed", key, file)
	}
	return editConfig(file, func([]ConfigValue) []string { return []string{"--replace-all", key, value} })
}

// UnsetConfig removes every value of key from file; that there is none is no
// error.
func UnsetConfig(key, file string) error {
	canonicalKey := canonicalKey(key)
	return editConfig(file, func(values []ConfigValue) []string {
		if !slices.ContainsFunc(values, func(v ConfigValue) bool { return v.Key == canonicalKey }) {
			return nil
		}
		return []string{"--unset-all", key}
	})
}

// canonicalKey lowers what git compares without case: section and name.
func canonicalKey(key string) string {
	first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first < 0 {
		return strings.ToLower(key)
	}
	return strings.ToLower(key[:first]) + key[first:last] + strings.ToLower(key[last:])
}

// editConfig holds file's lock, as git does, lets git edit a copy of it in a
// directory of our own, and puts the copy in its place. So git sees nothing
// but the text, and a link that appears at file is replaced, not written
// through. edit returns git's arguments, none for nothing to do.
func editConfig(file string, edit func([]ConfigValue) []string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("editing %q: %w", file, err)
		}
	}()
	dir, err := canonical(filepath.Dir(file))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	name := filepath.Base(file)
	lock, err := root.OpenFile(name+".lock", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("taking its lock: %w", underlying(err))
	}
	keep := false
	defer func() {
		_ = lock.Close() // synced where it counts
		if keep {
			return
		}
		if rerr := root.Remove(name + ".lock"); err == nil {
			err = rerr
		}
	}()
	edited, err := edited(root, name, edit)
	if err != nil || edited == nil {
		return err
	}
	if err := fillLock(root, lock, name, edited); err != nil {
		return err
	}
	if err := root.Rename(name+".lock", name); err != nil {
		return underlying(err)
	}
	keep = true // it is the file now
	return nil
}

// edited returns what git makes of the file's text, nil for no change.
func edited(root *os.Root, name string, edit func([]ConfigValue) []string) ([]byte, error) {
	data, err := readIn(root, name, maxConfig)
	if err != nil && !isNotExist(err) {
		return nil, err
	}
	values, err := ParseConfig(join(root, name), data)
	if err != nil {
		return nil, err
	}
	args := edit(values)
	if args == nil {
		return nil, nil
	}
	tmp, err := os.MkdirTemp("", "agentguard-config-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	config, empty := filepath.Join(tmp, "config"), filepath.Join(tmp, "empty")
	if err := errors.Join(os.WriteFile(config, data, 0o600), os.Mkdir(empty, 0o700)); err != nil {
		return nil, err
	}
	if err := runGit(empty, append([]string{"config", "-f", config}, args...)); err != nil {
		return nil, err
	}
	return readFile(config, maxConfig, false)
}

// fillLock writes the new content with the owner and mode of the file it will
// replace.
func fillLock(root *os.Root, lock *os.File, name string, data []byte) error {
	mode := fs.FileMode(0o644)
	if fi, err := root.Lstat(name); err == nil {
		mode = fi.Mode().Perm()
		if st, ok := fi.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
			if err := lock.Chown(int(st.Uid), int(st.Gid)); err != nil {
				return underlying(err)
			}
		}
	}
	if _, err := lock.Write(data); err != nil {
		return underlying(err)
	}
	return errors.Join(lock.Chmod(mode), lock.Sync())
}

// gitDirs are where the git binary is looked for, whatever PATH says.
var gitBinaryDirs = [...]string{"/usr/bin", "/bin", "/usr/local/bin"}

// findGit returns a git binary that only root can change.
func findGit() (string, error) {
	for _, d := range gitBinaryDirs {
		p, err := filepath.EvalSymlinks(filepath.Join(d, "git"))
		if err != nil {
			continue
		}
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() && onlyRootWrites(fi) {
			if di, err := os.Stat(filepath.Dir(p)); err == nil && onlyRootWrites(di) {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("no git that only root can change in %s", strings.Join(gitBinaryDirs[:], ", "))
}

func onlyRootWrites(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0 && fi.Mode().Perm()&0o022 == 0
}

// runGit runs git where no configuration but what its arguments name counts:
// from the root directory, in the empty git directory empty, with an
// environment of these variables only.
func runGit(empty string, args []string) error {
	bin, err := findGit()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir = "/"
	cmd.Env = []string{
		"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C", "GIT_DIR=" + empty,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		e := &ExecError{Args: args, Exit: -1, Stderr: strings.TrimSpace(stderr.String())}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			e.Exit = exit.ExitCode()
		} else if e.Stderr == "" {
			e.Stderr = err.Error()
		}
		return e
	}
	return nil
}

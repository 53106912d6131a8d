package probe

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// evil makes git run a program where it stands in a configuration, and is no
// sound JSON, YAML or shell anywhere else: nothing may take it for harmless.
const evil = "[core]\n\tfsmonitor = /nonexistent/planted-by-the-self-test\n"

// frozenAttempts go for what is read-only in a writable workspace, by every
// door that leads to a name.
func frozenAttempts() []attempt {
	row := func(id, title, proves, path string, do func(string) error) attempt {
		return attempt{Attempt{id, title, proves, Refused}, func(env Env) error {
			return onFrozen(filepath.Join(env.Workspace, path), do)
		}}
	}
	const mounted, pinned = "frozen paths are read-only mounts", "every ancestor of a frozen path is pinned"
	return []attempt{
		{Attempt{"hooks.new", "write .git/hooks", mounted, Refused}, plantHook},
		row("hooks.change", "change a hook that is there", mounted, ".git/hooks/pre-commit", overwrite),
		row("git.config", "write .git/config", mounted, ".git/config", overwrite),
		row("git.config-rename", "rename a new file over .git/config", mounted, ".git/config", renameOver),
		row("frozen.script", "write package.json", mounted, "package.json", overwrite),
		row("frozen.policy", "write the policy file", mounted, ".agentguard.yaml", overwrite),
		row("frozen.truncate", "truncate a frozen file", mounted, "package.json", func(p string) error { return os.Truncate(p, 0) }),
		row("frozen.chmod", "make a frozen file executable", mounted, "package.json", func(p string) error { return os.Chmod(p, 0o777) }),
		row("frozen.rename-over", "rename a new file over a frozen file", mounted, "package.json", renameOver),
		row("frozen.rename-away", "rename a frozen file away", mounted, "package.json", func(p string) error { return os.Rename(p, p+".away") }),
		row("frozen.unlink", "remove a frozen file", mounted, "package.json", os.Remove),
		row("frozen.hard-link", "write a frozen file through a hard link", mounted, "package.json", throughHardLink),
		row("frozen.exchange", "exchange a frozen file with another", mounted, "package.json", exchange),
		row("frozen.open-again", "reopen a frozen file for writing through its descriptor", mounted, "package.json", openAgain),
		row("hooks.symlink", "put a symbolic link in place of .git/hooks", mounted, ".git/hooks", swapForSymlink),
		row("git.rename", "rename .git away", pinned, ".git", swapDirectory),
		row("frozen.ancestor", "rename the directory of a frozen file away", pinned, "web", swapDirectory),
	}
}

// onFrozen does something to a path that must be readable first: what is not
// there is not protected. Afterwards the path is as before.
func onFrozen(path string, do func(string) error) error {
	put, err := keep(path)
	if err != nil {
		return &brokenPlant{path, err}
	}
	err = do(path)
	if restored := put(); restored != nil && err == nil {
		return &brokenPlant{path, restored}
	}
	return err
}

// brokenPlant hides the errno: that a planted file is missing refuses nothing.
type brokenPlant struct {
	path string
	err  error
}

func (b *brokenPlant) Error() string { return fmt.Sprintf("plant of %q: %v", b.path, b.err) }

// keep remembers a file and gives what puts it back; directories are left to
// what changes them.
func keep(path string) (func() error, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return func() error { return nil }, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return func() error {
		now, err := os.ReadFile(path)
		if again, statErr := os.Lstat(path); err == nil && statErr == nil && bytes.Equal(now, content) && again.Mode() == info.Mode() {
			return nil
		}
		return replace(path, content, info.Mode().Perm())
	}, nil
}

func replace(path string, content []byte, perm fs.FileMode) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, perm); err != nil {
		return err
	}
	return os.Chmod(path, perm)
}

func plantHook(env Env) error {
	hook := filepath.Join(env.Workspace, ".git", "hooks", "post-checkout")
	if _, err := os.Stat(filepath.Dir(hook)); err != nil {
		return &brokenPlant{hook, err}
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\n"), 0o755); err != nil {
		return err
	}
	return os.Remove(hook)
}

func overwrite(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(evil)
	return err
}

// fresh makes a file of the agent's own beside a frozen one, in the workspace
// and so on the same file system.
func fresh(path string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "selftest-")
	if err != nil {
		return "", &brokenPlant{path, err}
	}
	defer f.Close()
	if _, err := f.WriteString(evil); err != nil {
		return "", &brokenPlant{path, err}
	}
	return f.Name(), nil
}

func renameOver(path string) error {
	name, err := fresh(path)
	if err != nil {
		return err
	}
	defer os.Remove(name)
	return os.Rename(name, path)
}

func throughHardLink(path string) error {
	link := path + ".link"
	if err := os.Link(path, link); err != nil {
		return err
	}
	defer os.Remove(link)
	return overwrite(link)
}

func swapForSymlink(path string) error {
	away := path + ".away"
	if err := os.Rename(path, away); err != nil {
		return err
	}
	err := os.Symlink(filepath.Base(away), path)
	if err == nil {
		err = os.Remove(path)
	}
	if back := os.Rename(away, path); back != nil {
		return &brokenPlant{path, back}
	}
	return err
}

// swapDirectory takes a directory away and puts a copy of the agent's own in
// its place, which is how a hook is planted under a lone read-only mount.
func swapDirectory(path string) error {
	away := path + ".away"
	if err := os.Rename(path, away); err != nil {
		return err
	}
	err := os.Mkdir(path, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(path, "package.json"), []byte(evil), 0o644)
	}
	if err := os.RemoveAll(path); err != nil {
		return &brokenPlant{path, err}
	}
	if back := os.Rename(away, path); back != nil {
		return &brokenPlant{path, back}
	}
	return err
}

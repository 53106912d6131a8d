package probe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// control is one thing that an agent does all day. Without them a sandbox in
// which nothing works would pass.
func control(id, title string, do func(Env) error) attempt {
	return attempt{Attempt{id, title, "everyday work", Works}, do}
}

func workspaceControls() []attempt {
	return []attempt{
		control("works.write", "write and read a file in the workspace", func(env Env) error {
			return writeAndRead(filepath.Join(env.Workspace, "src", "work.txt"))
		}),
		control("works.edit", "change a file of the workspace in place", func(env Env) error {
			return overwrite(filepath.Join(env.Workspace, "src", "main.txt"))
		}),
		control("works.rename", "make, rename and remove a directory in the workspace", func(env Env) error {
			return moveDirectory(filepath.Join(env.Workspace, "src"))
		}),
		control("works.read-frozen", "read a frozen file", func(env Env) error {
			_, err := os.ReadFile(filepath.Join(env.Workspace, "package.json"))
			return err
		}),
		control("works.exec", "run a script of the workspace", func(env Env) error { return runScript(env.Workspace) }),
		control("works.git-status", "git status", func(env Env) error { return git(env, "status", "--porcelain") }),
		control("works.git-commit", "git commit", commit),
		control("works.git-branch", "git switch to a new branch and back", func(env Env) error {
			if err := git(env, "switch", "-q", "-c", "selftest"); err != nil {
				return err
			}
			return git(env, "switch", "-q", "-")
		}),
	}
}

func systemControls() []attempt {
	return []attempt{
		control("works.tmp", "write and read a file in /tmp", func(Env) error {
			f, err := os.CreateTemp("", "selftest-")
			if err != nil {
				return err
			}
			defer os.Remove(f.Name())
			return errors.Join(f.Close(), writeAndRead(f.Name()))
		}),
		control("works.spawn", "start a program and get its status", func(Env) error { return status(7) }),
		control("works.pipe", "a pipe between two programs", func(Env) error {
			out, err := exec.Command("/bin/sh", "-c", "echo word | cat").Output()
			if err == nil && string(out) != "word\n" {
				err = fmt.Errorf("read %q", out)
			}
			return err
		}),
		control("works.loopback", "TCP on loopback between own processes", func(Env) error { return conversation("tcp", "127.0.0.1:0") }),
		control("works.unix", "a Unix socket between own processes", func(Env) error {
			dir, err := os.MkdirTemp("", "selftest-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			return conversation("unix", filepath.Join(dir, "s"))
		}),
		control("works.null", "write /dev/null, read /dev/zero and /dev/urandom", devices),
		control("works.proxy", "fetch from an allowed host", func(env Env) error {
			if env.AllowedHost == "" {
				return absent("the policy of this self-test allows no host")
			}
			return throughProxy(env, env.AllowedHost)
		}),
	}
}

func writeAndRead(path string) error {
	if err := os.WriteFile(path, []byte("word"), 0o644); err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err == nil && string(content) != "word" {
		err = fmt.Errorf("read %q", content)
	}
	return err
}

func moveDirectory(parent string) error {
	dir, err := os.MkdirTemp(parent, "selftest-")
	if err != nil {
		return err
	}
	if err := os.Rename(dir, dir+".moved"); err != nil {
		return err
	}
	return os.Remove(dir + ".moved")
}

func runScript(dir string) error {
	script := filepath.Join(dir, "src", "script.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho word\n"), 0o755); err != nil {
		return err
	}
	out, err := exec.Command(script).Output()
	if err == nil && string(out) != "word\n" {
		err = fmt.Errorf("read %q", out)
	}
	return err
}

func git(env Env, args ...string) error {
	cmd := exec.Command("git", args...)
	cmd.Dir = env.Workspace
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

func commit(env Env) error {
	if err := os.WriteFile(filepath.Join(env.Workspace, "src", "committed.txt"), []byte("word\n"), 0o644); err != nil {
		return err
	}
	if err := git(env, "add", "src/committed.txt"); err != nil {
		return err
	}
	return git(env, "commit", "-q", "-m", "selftest: work")
}

func status(want int) error {
	err := exec.Command("/bin/sh", "-c", fmt.Sprintf("exit %d", want)).Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == want {
		return nil
	}
	return fmt.Errorf("status %d became %w", want, err)
}

// conversation listens, connects to itself and says a word.
func conversation(network, address string) error {
	l, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	defer l.Close()
	c, err := net.DialTimeout(network, l.Addr().String(), patience)
	if err != nil {
		return err
	}
	defer c.Close()
	other, err := l.Accept()
	if err != nil {
		return err
	}
	if _, err := other.Write([]byte("word")); err != nil {
		return err
	}
	if err := other.Close(); err != nil {
		return err
	}
	said, err := io.ReadAll(c)
	if err == nil && string(said) != "word" {
		err = fmt.Errorf("read %q", said)
	}
	return err
}

func devices(Env) error {
	if err := os.WriteFile("/dev/null", []byte("word"), 0); err != nil {
		return err
	}
	for _, name := range []string{"/dev/zero", "/dev/urandom"} {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		got := make([]byte, 32)
		_, err = io.ReadFull(f, got)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if zero := bytes.Equal(got, make([]byte, 32)); zero != (name == "/dev/zero") {
			return fmt.Errorf("%s gives the wrong bytes", name)
		}
	}
	return nil
}

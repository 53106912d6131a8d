package probe

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Planted is what [Plant] laid out: two identical trees, one to be attacked
// without a sandbox and one with it, and the servers that both reach for.
type Planted struct {
	Outside, Inside Env

	// Environ is to be added to the environment of whoever starts the outside
	// process and the sandbox; it holds a canary that must not get in.
	Environ []string

	undo []func() error
}

// Names of hosts that exist nowhere. The planted policy allows the first and
// resolves both to loopback.
const (
	allowedName = "allowed.agentguard.test"
	deniedName  = "denied.agentguard.test"

	secretName = "AGENTGUARD_SELFTEST_SECRET"
)

// Plant lays out both trees below dir, which must be an absolute path of an
// empty directory that is in no repository, and starts the servers and one
// process. self is Env.Self of both. The inside process is to be started with
// the workspace and the home directory of Inside, the policy file that lies in
// the workspace, and, like the outside one, by this process: it holds the
// descriptor that must not get in. The caller closes what it gets.
func Plant(dir string, self []string) (*Planted, error) {
	p := &Planted{}
	if err := p.plant(dir, self); err != nil {
		return nil, errors.Join(fmt.Errorf("planting the self-test in %q: %w", dir, err), p.Close())
	}
	return p, nil
}

// Close stops what Plant started. The trees are the caller's to remove.
func (p *Planted) Close() error {
	var errs []error
	for _, undo := range slices.Backward(p.undo) {
		errs = append(errs, undo())
	}
	p.undo = nil
	return errors.Join(errs...)
}

func (p *Planted) plant(dir string, self []string) error {
	env := Env{Self: self, Canary: "canary-" + rand.Text(), EnvName: secretName}
	if err := p.serve(&env, dir); err != nil {
		return err
	}
	if err := p.startTarget(&env); err != nil {
		return err
	}
	if err := p.plantTemp(&env); err != nil {
		return err
	}
	p.Environ = []string{secretName + "=" + env.Canary}
	p.Outside, p.Inside = env, env
	p.Inside.Inside, p.Inside.Proxy = true, ""
	for name, e := range map[string]*Env{"outside": &p.Outside, "inside": &p.Inside} {
		if err := p.plantTree(e, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// plantTree makes a home directory with secrets, the workspace in it, and a
// directory that is neither.
func (p *Planted) plantTree(env *Env, root string) error {
	env.Home = filepath.Join(root, "home")
	env.Workspace = filepath.Join(env.Home, "project")
	env.Elsewhere = filepath.Join(root, "elsewhere")
	files := []struct {
		path, content string
		perm          os.FileMode
	}{
		{"home/.ssh/id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + env.Canary + "\n-----END OPENSSH PRIVATE KEY-----\n", 0o600},
		{"home/.aws/credentials", "[default]\naws_secret_access_key = " + env.Canary + "\n", 0o600},
		{"home/.bashrc", "# " + env.Canary + "\n", 0o644},
		{"elsewhere/notes", env.Canary + "\n", 0o644},
		{"home/project/package.json", "{\"scripts\": {\"test\": \"true\"}}\n", 0o644},
		{"home/project/web/package.json", "{\"scripts\": {\"test\": \"true\"}}\n", 0o644},
		{"home/project/.agentguard.yaml", policyFile(env.HTTP), 0o644},
		{"home/project/src/main.txt", "work\n", 0o644},
	}
	for _, f := range files {
		path := filepath.Join(root, f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.content), f.perm); err != nil {
			return err
		}
	}
	if err := plantRepository(env); err != nil {
		return err
	}
	return p.leaveOpen(env)
}

// policyFile allows one name and resolves two, so that what the proxy refuses
// is refused by the rule and not for want of an address.
func policyFile(origin string) string {
	_, port, _ := strings.Cut(origin, ":")
	return fmt.Sprintf(`version: 1
egress:
  allow:
    - {host: %s, ports: [%s]}
  allow_private: [127.0.0.0/8]
  resolve: {%s: %s, %s: %s}
`, allowedName, port, allowedName, origin, deniedName, origin)
}

// plantRepository makes the workspace a repository with one commit and a hook
// that does nothing. git runs with no configuration but the one it makes here.
func plantRepository(env *Env) error {
	for _, args := range [][]string{
		{"init", "-q", "--template=", "-b", "main"},
		{"config", "user.name", "selftest"},
		{"config", "user.email", "selftest@agentguard.test"},
		{"config", "commit.gpgsign", "false"},
		{"add", "."},
		{"commit", "-q", "-m", "selftest: the plant"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = env.Workspace
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + env.Home, "LC_ALL=C",
			"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
		}
	}
	hooks := filepath.Join(env.Workspace, ".git", "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(hooks, "pre-commit"), []byte("#!/bin/sh\nexit 0\n"), 0o755)
}

// startTarget starts the process that attempts may look at and signal. It ends
// when this one does, by the end of its input.
func (p *Planted) startTarget(env *Env) error {
	if len(env.Self) == 0 {
		return errors.New("no command for steps")
	}
	cmd := exec.Command(env.Self[0], append(slices.Clone(env.Self[1:]), stepTarget)...)
	cmd.Env = []string{secretName + "=" + env.Canary}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.undo = append(p.undo, func() error {
		return errors.Join(hold.Close(), cmd.Wait())
	})
	env.HostPID = cmd.Process.Pid
	if _, err := io.ReadFull(said, make([]byte, len(targetReady))); err != nil {
		return fmt.Errorf("waiting for the target process: %w", err)
	}
	return nil
}

func (p *Planted) plantTemp(env *Env) error {
	f, err := os.CreateTemp("/tmp", "agentguard-selftest-")
	if err != nil {
		return err
	}
	env.TempFile = f.Name()
	p.undo = append(p.undo, func() error { return os.Remove(env.TempFile) })
	_, err = f.WriteString(env.Canary + "\n")
	return errors.Join(err, f.Close())
}

// leaveOpen keeps a descriptor open across exec, as a careless shell does.
func (p *Planted) leaveOpen(env *Env) error {
	fd, err := syscall.Open(env.Elsewhere, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %q: %w", env.Elsewhere, err)
	}
	defer syscall.Close(fd)
	env.FD, err = duplicate(fd)
	if err != nil {
		return fmt.Errorf("leaving %q open: %w", env.Elsewhere, err)
	}
	left := env.FD
	p.undo = append(p.undo, func() error { return syscall.Close(left) })
	return nil
}

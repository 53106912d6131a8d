package probe

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layer is a part of a bubblewrap sandbox, made by hand here so that it can be
// left out or replaced.
type layer struct {
	name string
	args []string
}

// layers is a sandbox of mounts and namespaces alone: no filter, no Landlock,
// no proxy, and descriptors pass.
func layers(t *testing.T, env Env, ids []string) []layer {
	t.Helper()
	w := env.Workspace
	bind := func(how string, names ...string) []string {
		var args []string
		for _, n := range names {
			args = append(args, how, filepath.Join(w, n), filepath.Join(w, n))
		}
		return args
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []layer{
		{"rights", []string{"--unshare-user", "--die-with-parent", "--new-session"}},
		{"root", usr(t)},
		{"processes", []string{"--unshare-pid"}},
		{"network", []string{"--unshare-net"}},
		{"devices", []string{"--proc", "/proc", "--dev", "/dev"}},
		{"tmp", []string{"--tmpfs", "/tmp"}},
		{"workspace", bind("--bind", "")},
		{"pins", bind("--bind", ".git", "web")},
		{"hooks", bind("--ro-bind", ".git/hooks")},
		{"config", bind("--ro-bind", ".git/config")},
		{"files", bind("--ro-bind", "package.json", ".agentguard.yaml", "web/package.json")},
		{"environment", []string{"--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/tmp"}},
		{"program", []string{"--ro-bind", self, self, "--setenv", roleVariable, "main " + strings.Join(ids, " "), "--chdir", w, "--", self}},
	}
}

// usr grants the programs of the machine, and nothing that belongs to a user.
func usr(t *testing.T) []string {
	t.Helper()
	args := []string{"--ro-bind", "/usr", "/usr"}
	for _, name := range []string{"/bin", "/sbin", "/lib", "/lib64"} {
		if to, err := os.Readlink(name); err == nil {
			args = append(args, "--symlink", to, name)
		} else if _, err := os.Stat(name); err == nil {
			args = append(args, "--ro-bind", name, name)
		}
	}
	return args
}

// inside runs the named attempts, or all, in the layers, with other arguments
// in place of the one that is named.
func inside(t *testing.T, p *Planted, ids []string, name string, other ...string) []Outcome {
	t.Helper()
	env := p.Inside
	text, err := json.Marshal(env)
	if err != nil {
		t.Fatal(err)
	}
	var argv []string
	for _, l := range layers(t, env, ids) {
		if l.name == name {
			l.args = other
		}
		argv = append(argv, l.args...)
	}
	cmd := exec.Command("bwrap", argv...)
	cmd.Env = append(os.Environ(), p.Environ...)
	cmd.Stdin = bytes.NewReader(text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	outcomes, err := Read(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	return outcomes
}

// TestLayers takes each layer of a sandbox away: the attempts that it is there
// for must then fail the self-test, and only then.
func TestLayers(t *testing.T) {
	need(t, "bwrap")
	p := plantIn(t, "/var/tmp") // not /tmp, which is a layer of its own
	outside := probeIn(t, p, p.Outside)
	tests := []struct {
		layer  string
		other  []string
		opened []string
	}{
		{"root", []string{"--ro-bind", "/", "/"}, []string{"file.ssh-key", "file.cloud-credentials", "unix.path"}},
		{"root", []string{"--bind", "/", "/"}, []string{"file.ssh-key", "file.write-outside", "file.home-dotfile"}},
		{"processes", nil, []string{"proc.signal"}},
		{"network", nil, []string{"net.dns", "net.https", "net.tcp", "net.udp", "unix.abstract"}},
		{"tmp", []string{"--bind", "/tmp", "/tmp"}, []string{"tmp.host"}},
		{"pins", nil, []string{"git.rename", "frozen.ancestor"}},
		{"hooks", nil, []string{"hooks.new", "hooks.change", "hooks.symlink"}},
		{"config", nil, []string{"git.config", "git.config-rename"}},
		{"files", nil, []string{
			"frozen.script", "frozen.policy", "frozen.truncate", "frozen.chmod", "frozen.rename-over", "frozen.rename-away",
			"frozen.unlink", "frozen.hard-link", "frozen.exchange", "frozen.open-again",
		}},
		{"environment", []string{"--setenv", "HOME", "/tmp"}, []string{"env.secret"}},
	}
	whole := verdicts(Judge(outside, inside(t, p, nil, "")))
	for _, tt := range tests {
		t.Run(tt.layer, func(t *testing.T) {
			without := verdicts(Judge(outside, inside(t, p, tt.opened, tt.layer, tt.other...)))
			for _, id := range tt.opened {
				if whole[id].Verdict != Proven {
					t.Errorf("%s with every layer: %s", id, whole[id].Why)
				}
				if without[id].Verdict != Failed {
					t.Errorf("%s without the layer: verdict %d, %s", id, without[id].Verdict, without[id].Why)
				}
			}
		})
	}
	t.Run("no filter", func(t *testing.T) {
		for _, id := range []string{
			"kernel.userns", "kernel.mount", "kernel.unshare", "kernel.keyctl", "kernel.io-uring", "kernel.perf",
			"socket.audit", "fd.inherited", "tty.inject", "tty.inject-high", "proc.limits-of-init",
		} {
			if whole[id].Verdict != Failed {
				t.Errorf("%s without a filter: verdict %d, %s", id, whole[id].Verdict, whole[id].Why)
			}
		}
	})
	t.Run("controls", func(t *testing.T) {
		for id, r := range whole {
			if r.Want == Works && id != "works.proxy" && r.Verdict != Proven {
				t.Errorf("%s: %s", id, r.Why)
			}
		}
	})
}

func verdicts(results []Result) map[string]Result {
	m := map[string]Result{}
	for _, r := range results {
		m[r.ID] = r
	}
	return m
}

func need(t *testing.T, what string) {
	t.Helper()
	out, err := exec.Command(what, "--unshare-user", "--unshare-net", "--ro-bind", "/", "/", "true").CombinedOutput()
	if err == nil {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("AGENTGUARD_REQUIRE"), ","), what) {
		t.Fatalf("%s: %v: %s", what, err, out)
	}
	t.Skipf("%s: %v: %s", what, err, out)
}

package hooks

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestHooksRunInsideSandbox commits in a mount namespace that holds the system,
// the work tree and State.Dir read-only: the shims need nothing else, not the
// agentguard binary and not the user's home.
func TestHooksRunInsideSandbox(t *testing.T) {
	if err := exec.Command("bwrap", "--unshare-user", "--ro-bind", "/", "/", "true").Run(); err != nil {
		if slices.Contains(strings.Split(os.Getenv("AGENTGUARD_REQUIRE"), ","), "bwrap") {
			t.Fatalf("bwrap is required and does not work: %v", err)
		}
		t.Skipf("bwrap does not work here: %v", err)
	}
	w := newWorld(t)
	out := filepath.Join(w.repo, "ran")
	w.commitSource(map[string]string{"pre-commit": canary(out, "pre"), "lib": "x"})
	s := w.install()
	inside := func(args ...string) (string, error) {
		argv := []string{"--unshare-user", "--unshare-pid", "--unshare-net", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"}
		for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc"} {
			argv = append(argv, "--ro-bind-try", dir, dir)
		}
		argv = append(argv, "--bind", w.repo, w.repo, "--ro-bind", s.Dir, s.Dir, "--chdir", w.repo)
		cmd := exec.Command("bwrap", append(argv, args...)...)
		cmd.Env = gitEnv("/tmp")
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	if text, err := inside("git", "commit", "-q", "--allow-empty", "-m", "x"); err != nil {
		t.Fatalf("commit inside: %v: %s", err, text)
	}
	if data, err := os.ReadFile(out); err != nil || string(data) != "pre\n" {
		t.Errorf("the hook inside wrote %q (%v)", data, err)
	}
	if text, err := inside("sh", "-c", "echo evil >"+quote(filepath.Join(s.Expected, "pre-commit"))); err == nil {
		t.Errorf("a shim can be written inside: %s", text)
	}
	put(t, w.repo, map[string]string{DefaultSource + "/lib": "y"})
	if text, err := inside("git", "commit", "-q", "--allow-empty", "-m", "x"); err == nil || !strings.Contains(text, "agentguard hooks approve") {
		t.Errorf("a changed source inside: %v: %s", err, text)
	}
}

package hooks

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// needGit skips a test where there is no git, and fails it where
// AGENTGUARD_REQUIRE says that there must be one.
func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if slices.Contains(strings.Split(os.Getenv("AGENTGUARD_REQUIRE"), ","), "git") {
			t.Fatal("git is required and missing")
		}
		t.Skip("git is missing")
	}
}

// gitEnv is the environment of the tests' git: nothing of the machine's
// configuration, and none of the variables of a hook that runs the tests.
func gitEnv(home string) []string {
	env := []string{
		"HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "PATH=" + os.Getenv("PATH"), "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	return env
}

// tryGit runs git in dir with dir's own home, and returns what it said.
func tryGit(t *testing.T, home, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir, cmd.Env = dir, gitEnv(home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(t, dir, dir, args...)
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return out
}

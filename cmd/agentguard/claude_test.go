package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	claudeKey    = "made-up-api-key"
	claudeSSHKey = "made-up-ssh-key-3f9c"
)

// claudePolicy opens one name, which only the proxy resolves, and gives the
// agent its key and where to ask: clients never send loopback to a proxy.
const claudePolicy = `version: 1
sandbox:
  env:
    pass: [ANTHROPIC_API_KEY]
    set:
      ANTHROPIC_BASE_URL: "http://api.agent.test:%[1]s"
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1"
      DISABLE_AUTOUPDATER: "1"
      IS_SANDBOX: "1"   # root may skip the agent's own questions only so
egress:
  allow:
    - {host: api.agent.test, methods: [POST], paths: [/v1/messages], ports: [%[1]s]}
  allow_private: [127.0.0.1/32]
  resolve: {api.agent.test: "127.0.0.1:%[1]s"}
`

// claudeStep is what the agent is told to do and how it has to end.
type claudeStep struct {
	name string
	call toolCall
	fail string // matches the refusal; empty: it works
}

// refused are the words of the layers that may come first: a mount, the name
// guard, or a rename onto a mount.
const refused = `Read-only file system|Operation not permitted|Permission denied|EROFS|EPERM|EACCES|EBUSY`

func claudeSteps(repo string) []claudeStep {
	bash := func(command string) toolCall {
		return toolCall{"Bash", map[string]any{"command": command, "description": "a step"}}
	}
	calc := filepath.Join(repo, "calc.sh")
	return []claudeStep{
		{"read a file", toolCall{"Read", map[string]any{"file_path": calc}}, ""},
		{"edit a file", toolCall{"Edit", map[string]any{"file_path": calc, "old_string": "2 - 3", "new_string": "2 + 3"}}, ""},
		{"run a shell command", bash(`test "$(sh calc.sh)" = 5 && echo sum is right`), ""},
		{"commit", bash("git commit -q -a -m 'add' && git log --oneline"), ""},
		{"plant a hook", bash("echo 'touch planted' >.git/hooks/pre-commit"), refused},
		{"change package.json by shell", bash(`echo '{"scripts": {"test": "touch planted"}}' >package.json`), refused},
		{"read package.json", toolCall{"Read", map[string]any{"file_path": filepath.Join(repo, "package.json")}}, ""},
		{"change package.json by the agent's own tool", toolCall{"Edit", map[string]any{
			"file_path": filepath.Join(repo, "package.json"), "old_string": "true", "new_string": "touch planted",
		}}, refused},
		{"read the ssh key", bash("cat ~/.ssh/id_ed25519"), "No such file or directory"},
	}
}

// TestClaude runs the real command line of a coding agent in the sandbox,
// against a scripted stand-in for its API, and looks at what it could do.
func TestClaude(t *testing.T) {
	claude := claudeCLI(t)
	home, repo := claudeRepo(t)
	steps := claudeSteps(repo)
	api := &messages{}
	for _, s := range steps {
		api.steps = append(api.steps, s.call)
	}
	port := api.serve(t)
	writeFile(t, filepath.Join(repo, ".agentguard.yaml"), fmt.Sprintf(claudePolicy, port))
	run := commandIn(t, home, repo)
	run("agentguard", "init")
	run("agentguard", "trust", "--yes")
	run("git", "add", ".agentguard.yaml", ".agentguard.sum")
	run("git", "commit", "-q", "-m", "policy")

	out := run("agentguard", "run", "--", claude, "-p", "take the steps", "--dangerously-skip-permissions")
	if strings.TrimSpace(out) != "done" {
		t.Errorf("the agent wrote %q, want %q", out, "done\n")
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	for i, s := range steps {
		t.Run(s.name, func(t *testing.T) { checkStep(t, s, api.results, i) })
	}
	if !slices.Equal(api.keys, []string{claudeKey}) {
		t.Errorf("the API saw the keys %q, want just the one that the policy passes", api.keys)
	}
	for _, body := range api.bodies {
		if strings.Contains(body, claudeSSHKey) {
			t.Error("the ssh key reached the API")
		}
	}
	claudeLeft(t, repo, run)
}

// claudeCLI is the agent's program; only the variable names it.
func claudeCLI(t *testing.T) string {
	path := os.Getenv("AGENTGUARD_CLAUDE")
	required := strings.Split(os.Getenv("AGENTGUARD_REQUIRE"), ",")
	_, err := os.Stat(path)
	switch {
	case err != nil && slices.Contains(required, "claude"):
		t.Fatalf("AGENTGUARD_CLAUDE has to name the agent's program: %v", err)
	case err != nil:
		t.Skip("AGENTGUARD_CLAUDE names no program")
	}
	if err := sandboxWorks(); err != nil {
		if slices.Contains(required, "bwrap") || slices.Contains(required, "claude") {
			t.Fatalf("bubblewrap makes no sandbox here: %v", err)
		}
		t.Skipf("bubblewrap makes no sandbox here: %v", err)
	}
	return path
}

// claudeRepo makes a home with a key in it and a repository.
func claudeRepo(t *testing.T) (home, repo string) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, repo = filepath.Join(dir, "home"), filepath.Join(dir, "repo")
	for _, d := range []string{filepath.Join(home, ".ssh"), repo} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(home, ".gitconfig"), scriptGitConfig)
	writeFile(t, filepath.Join(home, ".ssh", "id_ed25519"), claudeSSHKey+"\n")
	writeFile(t, filepath.Join(repo, "calc.sh"), "echo $((2 - 3))\n")
	writeFile(t, filepath.Join(repo, "package.json"), `{"scripts": {"test": "true"}}`+"\n")
	run := commandIn(t, home, repo)
	run("git", "init", "-q")
	run("git", "add", ".")
	run("git", "commit", "-q", "-m", "first")
	return home, repo
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// commandIn gives a function that runs a command and returns its output.
func commandIn(t *testing.T, home, dir string) func(name string, args ...string) string {
	return func(name string, args ...string) string {
		t.Helper()
		// The agent waits for its API and is patient: a fault must end.
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
		cmd.Env = []string{
			"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
			"ANTHROPIC_API_KEY=" + claudeKey,
		}
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, stderr.String())
		}
		return string(out)
	}
}

func checkStep(t *testing.T, s claudeStep, results []toolResult, i int) {
	if i >= len(results) {
		t.Fatal("the API saw no result")
	}
	switch r := results[i]; {
	case s.fail == "" && r.failed:
		t.Errorf("refused: %s", r.text)
	case s.fail != "" && !r.failed:
		t.Errorf("it worked: %s", r.text)
	case !regexp.MustCompile(s.fail).MatchString(r.text):
		t.Errorf("the result is %s, want it to match %q", r.text, s.fail)
	}
}

// claudeLeft looks at the repository from outside.
func claudeLeft(t *testing.T, repo string, run func(string, ...string) string) {
	t.Helper()
	if got, want := run("git", "show", "HEAD:calc.sh"), "echo $((2 + 3))\n"; got != want {
		t.Errorf("HEAD has %q, want %q", got, want)
	}
	if _, err := os.Lstat(filepath.Join(repo, ".git", "hooks", "pre-commit")); err == nil {
		t.Error("the hook is there")
	}
	got, err := os.ReadFile(filepath.Join(repo, "package.json"))
	if want := `{"scripts": {"test": "true"}}` + "\n"; err != nil || string(got) != want {
		t.Errorf("package.json is %q, %v, want %q", got, err, want)
	}
	if got := run("git", "status", "--porcelain"); got != "" {
		t.Errorf("git status: %q, want a clean tree", got)
	}
}

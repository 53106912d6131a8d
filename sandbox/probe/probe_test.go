package probe

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// roleVariable names what the test binary is instead of a test: an attempt's
// step, or the process that tries.
const roleVariable = "AGENTGUARD_PROBE_ROLE"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "__step" {
		os.Exit(Step(os.Args[2:], os.Stdin, os.Stdout))
	}
	role := strings.Fields(os.Getenv(roleVariable))
	if len(role) == 0 {
		os.Exit(m.Run())
	}
	if err := try(role[1:]); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n") // the status says it failed
		os.Exit(1)
	}
	os.Exit(0)
}

// try is the process that makes all attempts, or those that are named.
func try(ids []string) error {
	if len(ids) == 0 {
		return Main(os.Stdin, os.Stdout)
	}
	var env Env
	if err := json.NewDecoder(os.Stdin).Decode(&env); err != nil {
		return err
	}
	for _, id := range ids {
		if err := json.NewEncoder(os.Stdout).Encode(Try(env, id)); err != nil {
			return err
		}
	}
	return nil
}

func plant(t *testing.T) *Planted {
	t.Helper()
	return plantIn(t, "")
}

func plantIn(t *testing.T, parent string) *Planted {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(parent, "probe") // short: a socket's path has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p, err := Plant(dir, []string{self, "__step"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// probeIn runs [Main] in a process of its own, as the self-test does.
func probeIn(t *testing.T, p *Planted, env Env) []Outcome {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(env)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Dir = env.Workspace
	cmd.Env = append(append(os.Environ(), p.Environ...), roleVariable+"=main", "HOME="+env.Home)
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

// TestOutside makes every attempt without a sandbox: each must succeed against
// the plant, or say what this machine lacks.
func TestOutside(t *testing.T) {
	p := plant(t)
	before := listing(t, p.Outside.Workspace)
	outcomes := probeIn(t, p, p.Outside)
	if len(outcomes) != len(Attempts()) {
		t.Errorf("%d outcomes for %d attempts", len(outcomes), len(Attempts()))
	}
	for _, o := range outcomes {
		switch o.State {
		case Succeeded:
		case Absent:
			t.Logf("%s: %s", o.ID, o.Detail)
		default:
			t.Errorf("%s: %s %s %s", o.ID, o.State, o.Errno, o.Detail)
		}
		if strings.Contains(o.Detail, p.Outside.Canary) {
			t.Errorf("%s tells the canary", o.ID)
		}
	}
	if after := listing(t, p.Outside.Workspace); after != before {
		t.Errorf("frozen files are not as before the attempts:\n%s\nbefore:\n%s", after, before)
	}
	if got := judged(t, Judge(outcomes, outcomes)); got[Proven] < 10 || got[NotProven] > 0 || got[Failed] < 30 {
		t.Errorf("no sandbox at all is judged %v", got)
	}
}

// TestNothingThere gives the inside process an environment in which no target
// exists: every attack must fail, and the controls must notice that they are
// nowhere.
func TestNothingThere(t *testing.T) {
	p := plant(t)
	env := Env{Inside: true, Self: p.Inside.Self, Canary: "nothing", EnvName: "NOTHING", HostPID: 1 << 30, FD: 1 << 20}
	env.Workspace, env.Home, env.Elsewhere = "/nonexistent", "/nonexistent", "/nonexistent"
	for _, a := range Attempts() {
		if !regexp.MustCompile(`^(file|frozen|hooks|git|unix|net|env|fd|tmp|proxy)\.`).MatchString(a.ID) {
			continue // those act on the machine as it is
		}
		if o := Try(env, a.ID); o.State == Succeeded {
			t.Errorf("%s succeeds against nothing", a.ID)
		} else if strings.HasPrefix(a.ID, "frozen.") && o.State != Broken {
			t.Errorf("%s: %s; a frozen file that is not there was not refused", a.ID, o.State)
		}
	}
}

func TestAttempts(t *testing.T) {
	attacks, controls, seen := 0, 0, map[string]bool{}
	for _, a := range Attempts() {
		if a.ID == "" || a.Title == "" || a.Proves == "" || seen[a.ID] {
			t.Errorf("attempt %+v lacks a part or is there twice", a)
		}
		seen[a.ID] = true
		if a.Want == Works {
			controls++
		} else {
			attacks++
		}
	}
	if attacks < 30 || controls < 10 {
		t.Errorf("%d attacks and %d controls, want at least 30 and 10", attacks, controls)
	}
	for _, title := range []string{
		"read the ssh key", "read cloud credentials", "write outside the workspace",
		"write a home dot-file", "DNS", "outbound HTTPS", "sudo",
	} {
		found := false
		for _, a := range Attempts() {
			found = found || a.Title == title && a.Want == Refused
		}
		if !found {
			t.Errorf("no attempt %q", title)
		}
	}
}

func TestTryUnknown(t *testing.T) {
	if o := Try(Env{}, "no.such"); o.State != Broken {
		t.Errorf("an unknown attempt is %q, want %q", o.State, Broken)
	}
}

func judged(t *testing.T, results []Result) map[Verdict]int {
	t.Helper()
	got := map[Verdict]int{}
	for _, r := range results {
		got[r.Verdict]++
	}
	return got
}

// listing is every frozen file of a workspace with its mode and content.
func listing(t *testing.T, workspace string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"package.json", "web/package.json", ".git/hooks/pre-commit", ".git/config", ".agentguard.yaml"} {
		path := filepath.Join(workspace, name)
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(name + " " + info.Mode().String() + "\n" + string(content))
	}
	return b.String()
}

package guard

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentguard/guard/event"
	"agentguard/guard/policy"
	"agentguard/sandbox"
	"agentguard/sandbox/probe"
)

// init lets a copy of the test binary be the self-test's hidden commands.
func init() {
	if status, mine := Probe(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); mine {
		os.Exit(status)
	}
}

// needSandbox fails or skips a test that cannot run without a sandbox.
func needSandbox(t *testing.T) {
	t.Helper()
	s := sandbox.Detect(t.Context())
	if s.Err == nil {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("AGENTGUARD_REQUIRE"), ","), "bwrap") {
		t.Fatalf("this test needs a sandbox: %v", s.Err)
	}
	t.Skipf("this test needs a sandbox: %v", s.Err)
}

// caller is a call of agentguard in dir, with the test binary as its own.
func caller(t *testing.T, dir string) *Guard {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	env["HOME"] = t.TempDir()
	return &Guard{
		Dir: dir, PWD: dir, Env: env, Stdout: t.Output(), Stderr: t.Output(),
		Sink: event.Discard, Now: time.Now, Exe: exe, Version: "test",
	}
}

func withoutNames(s *session) { s.policy.Sandbox.Broker = policy.BrokerOff }

// TestSelftestRed takes one protection away a time: the self-test must be red
// and name what is open.
// Where both hold, either is enough: the mounts for what is there, the name
// guard for everything.
func TestSelftestRed(t *testing.T) {
	needSandbox(t)
	for _, tc := range []struct {
		name   string
		alter  func(*session)
		opened []string
	}{
		{"the name guard", withoutNames, []string{
			"names.file", "names.directory", "names.rename", "names.link", "names.spelling", "git.commondir",
		}},
		{"the frozen mounts and the name guard", func(s *session) { withoutNames(s); s.plan.areas = nil }, []string{
			"hooks.new", "hooks.change", "git.config", "frozen.script", "frozen.policy", "frozen.rename-over", "frozen.unlink", "frozen.ancestor",
		}},
		{"the pins above them and the name guard", func(s *session) {
			withoutNames(s)
			for i := range s.plan.areas {
				s.plan.areas[i].dir = "/nonexistent"
			}
		}, []string{"frozen.ancestor"}},
		{"the system call filter", func(s *session) { s.testOnlyWithout = sandbox.LayerSeccomp }, []string{
			"kernel.io-uring", "kernel.keyctl", "kernel.unshare", "kernel.perf", "socket.audit", "tty.inject", "tty.inject-high",
		}},
		{"the edges of what is shown, passed and let out", openEdges(t), []string{
			"file.ssh-key", "file.write-outside", "unix.path", "env.secret", "proxy.http", "proxy.connect",
		}},
		{"what must work", func(s *session) { s.policy.Sandbox.Workspace = policy.WorkspaceRead }, []string{
			"works.write", "works.edit", "works.rename", "works.git-commit",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := caller(t, t.TempDir()).selftest(t.Context(), SelftestOptions{}, tc.alter)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Red() {
				t.Error("the self-test is green")
			}
			for _, id := range tc.opened {
				if v, why := verdictOf(got, id); v != probe.Failed {
					t.Errorf("%s is %s: %s", id, verdictWord(v), why)
				}
			}
			var text strings.Builder
			got.Text(&text)
			if !strings.Contains(text.String(), "FAILED") || !strings.Contains(text.String(), tc.opened[0]+": ") {
				t.Errorf("the table does not name %s:\n%s", tc.opened[0], text.String())
			}
		})
	}
}

// openEdges grants one thing of each kind that no run gets unasked.
func openEdges(t *testing.T) func(*session) {
	return func(s *session) {
		s.plan.tools = append(s.plan.tools, filepath.Join(s.plan.base.Home, ".ssh"), filepath.Join(s.w.Root, "../../../socket"))
		elsewhere := filepath.Join(s.w.Root, "../../elsewhere")
		s.policy.Sandbox.Write = append(s.policy.Sandbox.Write, policy.Grant{Path: elsewhere, Real: elsewhere})
		s.policy.Sandbox.Env.Pass = append(s.policy.Sandbox.Env.Pass, policy.Value{Text: "AGENTGUARD_SELFTEST_SECRET"})
		for host := range s.policy.Egress.Resolve {
			rule := s.policy.Egress.Allow[0]
			rule.Host = mustHost(t, host)
			s.policy.Egress.Allow = append(s.policy.Egress.Allow, rule)
		}
	}
}

func mustHost(t *testing.T, host string) policy.HostPattern {
	t.Helper()
	p, err := policy.ParseHost(host)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func verdictOf(s Selftest, id string) (probe.Verdict, string) {
	for _, r := range s.Results {
		if r.ID == id {
			return r.Verdict, r.Why
		}
	}
	return probe.NotProven, "no such attempt"
}

// TestSelftestForOwner is root's self-test in somebody else's tree.
func TestSelftestForOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs commands for others")
	}
	needSandbox(t)
	dir, err := os.MkdirTemp("", "owner")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	got, err := caller(t, dir).Selftest(t.Context(), SelftestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.As != "root for user 65534" {
		t.Errorf("made as %q", got.As)
	}
	for _, r := range got.Results {
		if r.Verdict != probe.Proven && r.Verdict != probe.NotHere {
			t.Errorf("%s is %s: %s", r.ID, verdictWord(r.Verdict), r.Why)
		}
	}
}

// TestSelftestEnds cancels a self-test: it says so, and leaves nothing.
func TestSelftestEnds(t *testing.T) {
	needSandbox(t)
	g := caller(t, t.TempDir())
	tmp, err := os.MkdirTemp("", "ends") // short: a socket's path has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	g.Env["TMPDIR"] = tmp
	ctx, cancel := context.WithCancel(t.Context())
	_, err = g.Selftest(ctx, SelftestOptions{Progress: func(done, _ int) {
		if done > 5 {
			cancel()
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("a self-test that was interrupted says %v", err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v and %v are left", left, err)
	}
}

// TestSelftestGit holds that no git of the workspace is started.
func TestSelftestGit(t *testing.T) {
	g := caller(t, t.TempDir())
	bin, made := filepath.Join(g.Dir, "bin"), filepath.Join(g.Dir, "made")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\n: >"+made+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(bin, link); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"in the workspace": bin, "by a link": link, "none": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			path := path + ":/nonexistent"
			if name != "none" {
				path += ":" + g.Env["PATH"]
			}
			g := *g
			g.Env = map[string]string{"PATH": path, "HOME": g.Env["HOME"]}
			t.Setenv("PATH", path)
			if _, err := g.Selftest(t.Context(), SelftestOptions{}); err == nil || !strings.Contains(err.Error(), "git") {
				t.Errorf("the self-test says %v", err)
			}
			if _, err := os.Lstat(made); err == nil {
				t.Error("the workspace's git was started")
			}
		})
	}
}

// TestProbeByHand types the hidden commands: they do nothing but say so.
func TestProbeByHand(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		in   string
		want int
		says string
	}{
		{"the probe", []string{"__probe"}, "{}", 2, "does nothing by itself"},
		{"a step", []string{"__probe-step", "mount", "/"}, "", 2, "does nothing by itself"},
		{"the probe with the word", []string{"__probe", probeWord}, "{}", 125, "is not the workspace of a self-test"},
		{"the probe without input", []string{"__probe", probeWord}, "", 125, "reading where the plant is"},
		{"the probe in a workspace", []string{"__probe", probeWord}, `{"workspace":"` + cwd(t) + `","canary":"c","allowed_host":"a:1"}`, 125, "agentguard: error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, says strings.Builder
			status, mine := Probe(tc.args, strings.NewReader(tc.in), &out, &says)
			if !mine || status != tc.want || out.Len() > 0 || !strings.Contains(says.String(), tc.says) {
				t.Errorf("Probe = %d, %v, %q, %q; want status %d and %q", status, mine, out.String(), says.String(), tc.want, tc.says)
			}
		})
	}
	if _, mine := Probe([]string{"run"}, nil, nil, nil); mine {
		t.Error("Probe takes run")
	}
}

func cwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestSelftestJSON holds the words that programs read, and the zero values.
func TestSelftestJSON(t *testing.T) {
	s := Selftest{Results: []probe.Result{{Attempt: probe.Attempt{ID: "x"}}}, As: "user 1"}
	if !s.Red() || !(Selftest{}).Red() {
		t.Error("nothing proven is green")
	}
	var b strings.Builder
	if err := s.JSON(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"red": true`, `"verdict": "not_proven"`, `"want": "refused"`, `"not_proven": 1`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("JSON lacks %s:\n%s", want, b.String())
		}
	}
}

func TestReachable(t *testing.T) {
	dir, err := os.MkdirTemp("", "reach")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	mine := &sandbox.Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	other := &sandbox.Identity{UID: mine.UID + 12345, GID: mine.GID + 12345}
	group := &sandbox.Identity{UID: other.UID, GID: mine.GID}
	file := filepath.Join(dir, "open", "file")
	for name, perm := range map[string]os.FileMode{"open": 0o755, "group": 0o710, "closed": 0o700} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), perm); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, path string
		as         *sandbox.Identity
		want       bool
	}{
		{"a directory open to all", "open", other, true},
		{"a closed one", "closed", other, false},
		{"its owner", "closed", mine, true},
		{"what is not there, in an open one", "open/a/b", other, true},
		{"what is not there, in a closed one", "closed/a/b", other, false},
		{"the group's", "group", group, true},
		{"the group's, to others", "group", other, false},
		{"a file of the owner alone", "open/file", other, false},
		{"the same to its owner", "open/file", mine, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := reachable(filepath.Join(dir, tc.path), tc.as); got != tc.want {
				t.Errorf("reachable(%q) = %v, want %v", tc.path, got, tc.want)
			}
		})
	}
}

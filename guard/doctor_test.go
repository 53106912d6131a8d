package guard

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentguard/hooks"
	"agentguard/sandbox"
)

// machine is an examination of files made for it and of a start that met
// support.
func machine(t *testing.T, support sandbox.Support, force int, files map[string]string) *examination {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g := caller(t, t.TempDir())
	delete(g.Env, "container")
	delete(g.Env, "KUBERNETES_SERVICE_HOST")
	return &examination{ctx: t.Context(), g: g, root: root, support: support, force: force}
}

// expected is what a diagnosis has to say.
type expected struct {
	standing Standing
	found    string
	mend     string // in one of the lines, "" for no line at all
}

func (want expected) compare(t *testing.T, got Diagnosis) {
	t.Helper()
	if got.Standing != want.standing || !strings.Contains(got.Found, want.found) {
		t.Errorf("%s, %q; want %s, %q", got.Standing, got.Found, want.standing, want.found)
	}
	mends := strings.Join(got.Mend, "\n")
	if !strings.Contains(mends, want.mend) || want.mend == "" && mends != "" {
		t.Errorf("mends %q, want %q", mends, want.mend)
	}
	if got.Standing > Noted && got.Follows == "" {
		t.Errorf("%s without what follows from it", got.Standing)
	}
}

var (
	noNamespace = &sandbox.UnavailableError{Need: "the system does not let bubblewrap make a user namespace", Why: "No permissions to create new namespace"}
	noProc      = &sandbox.UnavailableError{Need: "bubblewrap failed", Why: "Can't mount proc on /newroot/proc: Operation not permitted"}
	noBwrap     = &sandbox.UnavailableError{Need: "bubblewrap is not installed", Why: "looked for /usr/bin/bwrap"}
)

func works() sandbox.Support {
	return sandbox.Support{Bwrap: "/bin/sh", BwrapVersion: "0.8.0", Landlock: 7, Kernel: "6.18.44"}
}

func failing(err error) sandbox.Support {
	s := works()
	s.Err = err
	if errors.Is(err, noBwrap) {
		s.Bwrap = ""
	}
	return s
}

func TestDoctorMachine(t *testing.T) {
	old, young, noBroker := works(), works(), works()
	old.Kernel, young.Landlock, noBroker.NoBroker = "5.10.0-8-amd64", 4, "user notification of system calls is missing"
	none := works()
	none.Landlock = 0
	others := failing(&sandbox.UnavailableError{Need: "a bubblewrap that only root can change", Why: "/usr/bin/bwrap can be changed by others"})
	others.Bwrap = ""
	broken := failing(noProc)
	broken.Kernel = "5.4.0"
	for _, tc := range []struct {
		name    string
		look    func(*examination) Diagnosis
		support sandbox.Support
		force   int
		files   map[string]string
		want    expected
	}{
		{"a sandbox starts", lookSandbox, works(), 7, nil, expected{Fine, "", ""}},
		{"none starts", lookSandbox, failing(noProc), 0, nil, expected{Missing, "Can't mount proc", "bin/sh --unshare-user"}},
		{"none starts in Docker", lookSandbox, failing(noProc), 0, map[string]string{".dockerenv": ""}, expected{Missing, "Can't mount proc", "systempaths=unconfined"}},
		{"none starts in Podman", lookSandbox, failing(noNamespace), 0, map[string]string{"run/.containerenv": ""}, expected{Missing, "", "unmask=ALL"}},
		{"bubblewrap", lookBubblewrap, works(), 7, nil, expected{Fine, "version 0.8.0, owned by root", ""}},
		{"no bubblewrap on Debian", lookBubblewrap, failing(noBwrap), 0, map[string]string{"usr/bin/apt-get": ""}, expected{Missing, "not installed", "sudo apt-get install bubblewrap"}},
		{"no bubblewrap on Fedora", lookBubblewrap, failing(noBwrap), 0, map[string]string{"usr/bin/dnf": ""}, expected{Missing, "not installed", "sudo dnf install bubblewrap"}},
		{"a bubblewrap of others", lookBubblewrap, others, 0, map[string]string{"proc/self/uid_map": "0 0 4294967295"}, expected{Missing, "can be changed", "sudo chown root:root"}},
		{"no root to own bubblewrap", lookBubblewrap, others, 0, map[string]string{"proc/self/uid_map": "1000 1000 1"}, expected{Missing, "root does not exist", "outside of this sandbox"}},
		{"no bubblewrap elsewhere", lookBubblewrap, failing(noBwrap), 0, nil, expected{Missing, "not installed", "install bubblewrap"}},
		{"namespaces", lookNamespaces, works(), 7, map[string]string{"proc/sys/user/max_user_namespaces": "100"}, expected{Fine, "user.max_user_namespaces=100", ""}},
		{"AppArmor, and bubblewrap exempt", lookNamespaces, works(), 7, map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, expected{Fine, "kernel.apparmor_restrict_unprivileged_userns=1", ""}},
		{"AppArmor", lookNamespaces, failing(noNamespace), 0, map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, expected{Missing, "restrict_unprivileged_userns=1", "/etc/apparmor.d/bwrap"}},
		{"Debian's switch", lookNamespaces, failing(noNamespace), 0, map[string]string{"proc/sys/kernel/unprivileged_userns_clone": "0"}, expected{Missing, "userns_clone=0", "unprivileged_userns_clone=1"}},
		{"the limit", lookNamespaces, failing(noNamespace), 0, map[string]string{"proc/sys/user/max_user_namespaces": "0"}, expected{Missing, "namespaces=0", "max_user_namespaces=15000"}},
		{"a container's filter", lookNamespaces, failing(noNamespace), 0, map[string]string{".dockerenv": ""}, expected{Missing, "gets none", "docker run --security-opt seccomp=unconfined"}},
		{"another way", lookNamespaces, failing(noNamespace), 0, nil, expected{Missing, "gets none", "administrator"}},
		{"a kernel", lookKernel, works(), 7, nil, expected{Fine, "6.18.44", ""}},
		{"an old kernel that works", lookKernel, old, 0, nil, expected{Noted, "5.10.0", ""}},
		{"an old kernel", lookKernel, broken, 0, nil, expected{Missing, "5.4.0", "5.12 or later"}},
		{"Landlock", lookLandlock, works(), 7, nil, expected{Fine, "version 7 in force, scopes", ""}},
		{"Landlock without scopes", lookLandlock, young, 4, nil, expected{Noted, "version 4 in force, without scopes", ""}},
		{"no Landlock", lookLandlock, none, 0, map[string]string{"sys/kernel/security/lsm": "capability,yama"}, expected{Finding, "capability,yama", "lsm="}},
		{"Landlock that is not in force", lookLandlock, works(), 0, nil, expected{Finding, "0 is in force", "selftest"}},
		{"Landlock without a sandbox", lookLandlock, failing(noBwrap), 0, nil, expected{Noted, "not in force", ""}},
		{"a filter", lookSeccomp, works(), 7, nil, expected{Fine, "in force", ""}},
		{"no filter", lookSeccomp, failing(noProc), 0, map[string]string{"proc/sys/kernel/seccomp/actions_avail": "allow"}, expected{Missing, "allow", "CONFIG_SECCOMP_FILTER"}},
		{"a broker", lookBroker, works(), 7, nil, expected{Fine, "in force", ""}},
		{"no broker", lookBroker, noBroker, 7, nil, expected{Finding, "user notification", "5.19"}},
		{"a broker without a sandbox", lookBroker, failing(noBwrap), 7, nil, expected{Noted, "not known", ""}},
		{"watches", lookInotify, works(), 7, map[string]string{"proc/sys/fs/inotify/max_user_watches": "65536", "proc/sys/fs/inotify/max_user_instances": "128"}, expected{Fine, "65536 watches", ""}},
		{"few watches", lookInotify, works(), 7, map[string]string{"proc/sys/fs/inotify/max_user_watches": "100", "proc/sys/fs/inotify/max_user_instances": "128"}, expected{Finding, "100 watches", "max_user_watches=524288"}},
		{"few instances", lookInotify, works(), 7, map[string]string{"proc/sys/fs/inotify/max_user_watches": "65536", "proc/sys/fs/inotify/max_user_instances": "2"}, expected{Finding, "2 instances", "max_user_instances=512"}},
		{"the proxy", lookProxy, works(), 7, nil, expected{Fine, "refuses another", ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := tc.look(machine(t, tc.support, tc.force, tc.files))
			tc.want.compare(t, got)
			if got.Standing == Missing && len(got.Mend) == 0 {
				t.Error("nothing mends it")
			}
		})
	}
}

// TestDoctorProgram holds that git is never one that the workspace brings.
func TestDoctorProgram(t *testing.T) {
	e := machine(t, works(), 7, nil)
	inside, outside := filepath.Join(e.g.Dir, "bin"), t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	for _, dir := range []string{inside, outside} {
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(inside, link); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, path, want string
	}{
		{"outside", outside, filepath.Join(outside, "tool")},
		{"inside first", inside + ":" + outside, filepath.Join(outside, "tool")},
		{"a link into it first", link + ":" + outside, filepath.Join(outside, "tool")},
		{"a relative entry first", "bin:" + outside, filepath.Join(outside, "tool")},
		{"inside alone", inside, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e.g.Env["PATH"] = tc.path
			if got := e.program("tool"); got != tc.want {
				t.Errorf("program = %q, want %q", got, tc.want)
			}
		})
	}
	e.g.Env["PATH"] = inside
	expected{Finding, "not on PATH", "git"}.compare(t, lookGit(e))
}

func TestDoctorHooks(t *testing.T) {
	installed := hooks.State{Installed: true, Managed: true, Value: "/state/hooks", Hooks: []string{"pre-commit"}}
	blocked, altered := installed, installed
	blocked.Differs = []hooks.Difference{{Path: "pre-commit", Kind: hooks.Changed}}
	altered.Managed = false
	altered.Conflicts = []hooks.Conflict{{Kind: hooks.Repointed, Detail: "core.hooksPath is .husky"}}
	for _, tc := range []struct {
		name  string
		state hooks.State
		want  expected
	}{
		{"installed", installed, expected{Fine, "approved copies of 1 hook", ""}},
		{"not installed", hooks.State{Path: "/r/.git/hooks"}, expected{Noted, "not set", "agentguard hooks install"}},
		{"waiting", blocked, expected{Finding, "1 file not as approved", "agentguard hooks approve"}},
		{"re-pointed", altered, expected{Finding, "core.hooksPath is .husky", "agentguard hooks install"}},
		{"relative for everything", hooks.State{Value: "hooks", Conflicts: []hooks.Conflict{{Kind: hooks.RelativeGlobal, Detail: "relative"}}}, expected{Finding, "relative", "--unset core.hooksPath"}},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.want.compare(t, diagnoseHooks(tc.state)) })
	}
}

// TestDoctorVerdict holds the exit statuses' reasons and the zero values.
func TestDoctorVerdict(t *testing.T) {
	for _, tc := range []struct {
		name     string
		standing Standing
		possible bool
		findings int
		says     string
	}{
		{"fine", Fine, true, 0, "a run can be in force"},
		{"noted", Noted, true, 0, "a run can be in force"},
		{"finding", Finding, true, 1, "1 finding to mend"},
		{"the zero value", Unknown, true, 1, "1 finding to mend"},
		{"missing", Missing, false, 1, "no sandbox is possible"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Doctor{Checks: []Diagnosis{{Standing: Fine}, {Standing: tc.standing}}}
			var text strings.Builder
			d.Text(&text)
			if d.Possible() != tc.possible || d.Findings() != tc.findings || !strings.Contains(text.String(), tc.says) {
				t.Errorf("possible %v, %d findings: %s", d.Possible(), d.Findings(), text.String())
			}
		})
	}
}

// TestDoctorRegistry holds that every check has a name of its own and answers.
func TestDoctorRegistry(t *testing.T) {
	var codes []string
	d := machine(t, failing(noBwrap), 0, nil)
	d.openErr = &WorkspaceError{"/", "a system directory cannot be a workspace"}
	for _, c := range d.examine().Checks {
		if c.Code == "" || c.Title == "" || c.Found == "" || slices.Contains(codes, c.Code) {
			t.Errorf("check %+v lacks a part or is there twice", c)
		}
		codes = append(codes, c.Code)
	}
	if len(codes) < 13 {
		t.Errorf("%d checks", len(codes))
	}
}

package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// place is a home directory with a workspace in it, for a test of its own.
type place struct {
	home, root, own string
}

func newPlace(t *testing.T) place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	p := place{filepath.Join(dir, "home"), filepath.Join(dir, "home", "src", "repo"), filepath.Join(dir, "home", ".local", "state", "agentguard")}
	for _, d := range []string{p.root, p.own, filepath.Join(p.home, ".ssh"), filepath.Join(p.home, "data"), filepath.Join(p.root, "sub")} {
		mkdir(t, d)
	}
	return p
}

// load loads layers given as texts without the version line; "-" is no file.
func (p place) load(user, repo string, trusted bool, flags Flags) (*Policy, error) {
	src := func(name, text string) *Source {
		if text == "-" {
			return nil
		}
		return &Source{Name: name, Data: []byte("version: 1\n" + text + "\n")}
	}
	return Load(Input{
		Home: p.home, WorkspaceRoot: p.root, Own: []string{p.own},
		User: src("config.yaml", user), Repo: src(FileName, repo), RepoTrusted: trusted, Flags: flags,
	})
}

func TestZeroPolicy(t *testing.T) {
	var p Policy
	if p.Sandbox.Workspace != WorkspaceRead || p.Sandbox.Profile != Strict || p.Sandbox.Broker != BrokerRequire ||
		p.Sandbox.Keys != KeysNone || p.Hooks.Mode != HooksPinned || p.Egress.Ask {
		t.Error("the zero policy is not the tightest")
	}
}

// TestSingles goes through the layers of every single value.
func TestSingles(t *testing.T) {
	show := func(p *Policy) string {
		s := p.Sandbox
		return fmt.Sprintf("%s %s %s", s.Workspace, s.Profile, s.Broker)
	}
	tests := []struct {
		name, user, repo string
		trusted          bool
		flags            Flags
		want             string
		pending          int
		warning          string // part of one
	}{
		{name: "no file", user: "-", repo: "-", want: "read strict auto"},
		{name: "user file alone", user: "", repo: "-", want: "write strict auto"},
		{name: "repository's file alone", user: "-", repo: "", want: "write strict auto"},
		{name: "no file, a flag", user: "-", repo: "-", flags: Flags{Workspace: "write"}, want: "write strict auto"},
		{name: "the repository tightens untrusted", user: "-", repo: "sandbox: {workspace: read, profile: strict, broker: require}", want: "read strict require"},
		{name: "the repository tightens below the user", user: "sandbox: {workspace: write, profile: balanced, broker: off}", repo: "sandbox: {workspace: read, profile: strict, broker: auto}", want: "read strict auto"},
		{name: "the repository widens untrusted", user: "-", repo: "sandbox: {profile: balanced, broker: off}", want: "write strict auto", pending: 2},
		{name: "the repository widens trusted", user: "-", repo: "sandbox: {profile: balanced, broker: off}", trusted: true, want: "write balanced off"},
		{name: "what the user has already is no widening", user: "sandbox: {profile: balanced}", repo: "sandbox: {profile: balanced}", want: "write balanced auto"},
		{name: "the default said aloud is no widening", user: "-", repo: "sandbox: {workspace: write, broker: auto}", want: "write strict auto"},
		{
			name: "the repository cannot lower what the user raised", user: "sandbox: {workspace: read, profile: strict, broker: require}",
			repo: "sandbox: {workspace: write, profile: balanced, broker: off}", trusted: true, want: "read strict require", warning: "has no effect",
		},
		{
			name: "nor untrusted, and nothing waits", user: "sandbox: {workspace: read, profile: strict, broker: require}",
			repo: "sandbox: {workspace: write, profile: balanced, broker: auto}", want: "read strict require", warning: "has no effect",
		},
		{name: "the user may widen", user: "sandbox: {profile: balanced, broker: off}", repo: "-", want: "write balanced off"},
		{
			name: "a flag wins", user: "sandbox: {profile: strict}", repo: "sandbox: {workspace: read, broker: require}",
			flags: Flags{Workspace: "write", Profile: "balanced", Broker: "off"}, want: "write balanced off",
		},
		{name: "a flag tightens", user: "sandbox: {profile: balanced}", repo: "-", flags: Flags{Profile: "strict"}, want: "write strict auto"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := newPlace(t).load(tt.user, tt.repo, tt.trusted, tt.flags)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(p); got != tt.want || len(p.Pending) != tt.pending {
				t.Errorf("got %s with %v waiting, want %s with %d", got, p.Pending, tt.want, tt.pending)
			}
			if !strings.Contains(strings.Join(p.Warnings(), "\n"), tt.warning) {
				t.Errorf("warnings %q, want %q", p.Warnings(), tt.warning)
			}
		})
	}
}

// TestUntrustedWidensNothing holds for each key that can widen: without the
// yes the policy is the same as with an empty file, and the line waits.
func TestUntrustedWidensNothing(t *testing.T) {
	lines := map[string]string{
		"sandbox.profile":      "sandbox: {profile: balanced}",
		"sandbox.broker":       "sandbox: {broker: off}",
		"sandbox.read":         "sandbox: {read: [~/data]}",
		"sandbox.write":        "sandbox: {write: [~/data]}",
		"sandbox.unprotect":    "sandbox: {unprotect: ['*']}",
		"sandbox.env.pass":     "sandbox: {env: {pass: [LANG]}}",
		"sandbox.env.set":      "sandbox: {env: {set: {LANG: C}}}",
		"egress.allow":         "egress: {allow: [{host: a.com, private: [10.0.0.0/8]}]}",
		"egress.allow_private": "egress: {allow_private: [10.0.0.0/8]}",
		"egress.resolve":       "egress: {resolve: {a.com: 127.0.0.1}}",
	}
	place := newPlace(t)
	empty, err := place.load("-", "", false, Flags{})
	must(t, err)
	for key, line := range lines {
		t.Run(key, func(t *testing.T) {
			p, err := place.load("-", line, false, Flags{})
			must(t, err)
			if p.Digest() != empty.Digest() {
				t.Errorf("the policy changed without a yes:\n%s", p)
			}
			if len(p.Pending) != 1 || p.Pending[0].Key != key || p.Pending[0].Pos.Line != 2 || p.Pending[0].Text == "" {
				t.Errorf("waiting: %v, want %s on line 2", p.Pending, key)
			}
			trusted, err := place.load("-", line, true, Flags{})
			must(t, err)
			if trusted.Digest() == empty.Digest() || len(trusted.Pending) != 0 {
				t.Errorf("with a yes nothing changed:\n%s", trusted)
			}
			user, err := place.load(line, "-", false, Flags{})
			must(t, err)
			if user.Digest() != trusted.Digest() {
				t.Errorf("the user's file means something else:\n%s\n%s", user, trusted)
			}
		})
	}
}

func TestUntrustedTightens(t *testing.T) {
	place := newPlace(t)
	for _, line := range []string{
		"sandbox: {protect: [infra]}", "egress: {deny: [{host: a.com}]}", "sandbox: {workspace: read}", "sandbox: {broker: require}", "hooks: {path: hooks}",
	} {
		empty, err := place.load("-", "", false, Flags{})
		must(t, err)
		p, err := place.load("-", line, false, Flags{})
		must(t, err)
		if p.Digest() == empty.Digest() || len(p.Pending) > 0 {
			t.Errorf("%s: does not count at once: %v", line, p.Pending)
		}
	}
}

// TestRepoOpensHome is the file of a repository that asks for everything.
func TestRepoOpensHome(t *testing.T) {
	place := newPlace(t)
	text := fmt.Sprintf("sandbox:\n  read: [\"%s/.ssh\", \"/\"]\n  write: [\"%s\", \"/\"]\n  unprotect: [\".git/hooks\", \".git/config\", \"*\"]", place.home, place.home)
	p, err := place.load("-", text, false, Flags{})
	must(t, err)
	if len(p.Sandbox.Read)+len(p.Sandbox.Write)+len(p.Sandbox.Unprotect) != 0 {
		t.Errorf("granted without a yes:\n%s", p)
	}
	if len(p.Pending) != 7 {
		t.Errorf("waiting: %v, want seven lines", p.Pending)
	}
	refused := 0
	for _, w := range p.Pending {
		if w.Err != nil {
			refused++
		}
	}
	if refused != 4 {
		t.Errorf("%d lines are told to be refused in any case, want 4", refused)
	}
	_, err = place.load("-", text, true, Flags{})
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != 4 {
		t.Errorf("with a yes: %v, want four errors", err)
	}
	one, ok := errors.AsType[*Error](err)
	if !ok || one.File != FileName || one.Line != 3 || one.Key != "sandbox.read" {
		t.Errorf("the first error is %+v", one)
	}
}

// TestAlreadyGranted holds that the repository's file may ask for what the
// user's file grants: nothing waits and nothing changes.
func TestAlreadyGranted(t *testing.T) {
	place := newPlace(t)
	user := "sandbox: {read: [~/data], write: [~/data], env: {pass: [LANG]}}\negress: {allow: [{host: '*.a.com', private: [10.0.0.0/8]}], allow_private: [10.0.0.0/8]}"
	repo := "sandbox: {read: [../../data], write: [~/data/], env: {pass: [LANG]}}\negress: {allow: [{host: x.a.com, methods: [GET]}, {host: b.a.com, private: [10.0.0.0/8]}], allow_private: [10.0.0.0/8]}"
	want, err := place.load(user, "", false, Flags{})
	must(t, err)
	for _, trusted := range []bool{false, true} {
		got, err := place.load(user, repo, trusted, Flags{})
		must(t, err)
		if len(got.Pending) != 0 || got.Digest() != want.Digest() {
			t.Errorf("trusted %v: waiting %v\n%s", trusted, got.Pending, got)
		}
	}
	more, err := place.load(user, "egress: {allow: [{host: x.a.com, private: [127.0.0.0/8]}, {host: x.a.com, ports: [22]}]}", false, Flags{})
	must(t, err)
	if len(more.Pending) != 2 || more.Digest() != want.Digest() {
		t.Errorf("waiting %v, want both rules", more.Pending)
	}
}

func TestListsJoin(t *testing.T) {
	place := newPlace(t)
	mkdir(t, place.home, "one")
	p, err := place.load(
		"sandbox: {read: [~/one], protect: [a], env: {set: {A: user, B: user}}}\negress: {allow: [{host: a.com}], deny: [{host: b.com}], resolve: {a.com: 10.0.0.1}}",
		"sandbox: {read: [~/data, ~/one], protect: [b], env: {set: {A: repo}}}\negress: {allow: [{host: b.com}, {host: c.com}], deny: [{host: a.com, ports: [80, 443, 8080]}], resolve: {a.com: 10.0.0.2}}",
		true, Flags{Read: []string{"sub"}, Protect: []string{"c"}, Allow: []string{"d.com", "e.com:8443", "[::1]:80"}, EnvPass: []string{"LANG"}},
	)
	must(t, err)
	var got []string
	for _, g := range p.Sandbox.Read {
		got = append(got, g.Path)
	}
	if want := []string{place.home + "/one", place.home + "/data", place.root + "/sub"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	if got := texts(p.Sandbox.Protect); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("protect %q", got)
	}
	if s := p.Sandbox.Env.Set; s["A"] != "repo" || s["B"] != "user" {
		t.Errorf("set %q: the later layer does not win", s)
	}
	got = nil
	for _, r := range p.Egress.Allow {
		got = append(got, fmt.Sprintf("%s%v", r.Host, r.Ports))
	}
	if want := []string{"a.com[80 443]", "b.com[80 443]", "c.com[80 443]", "d.com[80 443]", "e.com[8443]", "::1[80]"}; !slices.Equal(got, want) {
		t.Errorf("allow %q, want %q", got, want)
	}
	if p.Egress.Resolve["a.com"].Addr.String() != "10.0.0.2" {
		t.Errorf("resolve %v: the later layer does not win", p.Egress.Resolve)
	}
	// The repository's deny stops the user's allow: told, not an error.
	all := strings.Join(p.Warnings(), "\n")
	for _, host := range []string{"a.com", "b.com"} {
		if !strings.Contains(all, "the rule for "+host+" never decides") {
			t.Errorf("nothing tells that %s is denied:\n%s", host, all)
		}
	}
	if !p.Egress.Deny[0].AnyPort || p.Egress.Deny[1].AnyPort || !p.Egress.Deny[0].MatchPort(1) {
		t.Error("a deny rule without ports is not about every port")
	}
}

func TestFlagErrors(t *testing.T) {
	place := newPlace(t)
	for _, tt := range []struct {
		name  string
		flags Flags
		want  string
	}{
		{"profile", Flags{Profile: "strct"}, `--profile: sandbox.profile: unknown value "strct": did you mean "strict"?`},
		{"not built", Flags{Workspace: "clone"}, "--workspace: sandbox.workspace: clone is not built yet"},
		{"home", Flags{Write: []string{"~"}}, "--write: sandbox.write: "},
		{"empty", Flags{Read: []string{""}}, "--read: sandbox.read: is empty"},
		{"host", Flags{Allow: []string{"*"}}, "--allow: egress.allow: "},
		{"port", Flags{Allow: []string{"a.com:0"}}, "--allow: egress.allow: the port"},
		{"metadata", Flags{Allow: []string{"169.254.169.254:80"}}, "--allow: egress.allow: 169.254.169.254"},
		{"glob", Flags{Protect: []string{"a["}}, "--protect: sandbox.protect: "},
		{"name", Flags{EnvPass: []string{"HTTPS_PROXY"}}, "--env: sandbox.env.pass: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := place.load("-", "-", false, tt.flags)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("Load() = %v, want %q", err, tt.want)
			}
		})
	}
}

// TestDigest holds that the digest is about what is granted and not about how
// it is written.
func TestDigest(t *testing.T) {
	place := newPlace(t)
	digest := func(repo string) string {
		t.Helper()
		p, err := place.load("-", repo, true, Flags{})
		must(t, err)
		return p.Digest()
	}
	base := "sandbox: {read: [~/data, sub], protect: [a, b]}\negress: {allow: [{host: a.com, methods: [GET, HEAD]}, {host: b.com}]}"
	same := "# a comment\negress:\n  allow:\n    - {host: A.com., methods: [HEAD, GET], ports: [443, 80]}\n    - host: b.com\nsandbox:\n  protect: [b, a]\n  read: [sub/, ~/data]"
	if digest(base) != digest(same) {
		t.Error("the same policy, written differently, has another digest")
	}
	seen := map[string]string{digest(base): base}
	for _, other := range []string{
		"", "sandbox: {env: {set: {A: x}}}", "sandbox: {env: {set: {A: y}}}", "sandbox: {read: [sub]}", "sandbox: {write: [~/data]}",
		"egress: {allow: [{host: a.com}]}", "egress: {allow: [{host: a.com, ports: [443]}]}", "egress: {deny: [{host: a.com}]}",
		"egress: {allow: [{host: a.com, query: {a: b}}]}", "egress: {allow: [{host: a.com, private: [10.0.0.0/8]}]}",
		"egress: {allow: [{host: b.com}, {host: a.com, methods: [GET, HEAD]}]}", "egress: {allow: [{host: a.com, methods: [GET, HEAD]}, {host: b.com}]}",
		"egress: {resolve: {a.com: 127.0.0.1}}", "egress: {resolve: {a.com: '127.0.0.1:80'}}", "hooks: {path: x}",
	} {
		d := digest(other)
		if have, dup := seen[d]; dup {
			t.Errorf("%q and %q have one digest", other, have)
		}
		seen[d] = other
	}
}

func TestLoadNeedsAbsolutePaths(t *testing.T) {
	for _, in := range []Input{{Home: "home"}, {WorkspaceRoot: "."}, {Own: []string{"state"}}} {
		if _, err := Load(in); err == nil {
			t.Errorf("Load(%+v) takes a relative path", in)
		}
	}
}

// TestLongLine holds that nothing is read again for each value of a line: with
// that this takes minutes.
func TestLongLine(t *testing.T) {
	text := "version: 1\negress: {allow: [" + strings.Repeat("{host: a.com}, ", 60000) + "]}\n"
	_, err := Load(goldenInput([]byte(text)))
	if err == nil || !strings.Contains(err.Error(), "more than 1000 entries") {
		t.Errorf("Load() = %v", err)
	}
}

//go:build amd64 || arm64

package broker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestConformance compares every operation on every kind of name with what the
// kernel does by itself.
func TestConformance(t *testing.T) {
	users(t, func(t *testing.T, w *world) {
		var out [2][]string
		for i, without := range []bool{true, false} {
			o := newWorld(t, w.uid).run(t, setup{Role: "conformance", NoBroker: without})
			if o.Status != 0 {
				t.Fatalf("status %d: %.2000s", o.Status, o.Stdout)
			}
			out[i] = strings.Split(o.Stdout, "\n")
			t.Logf("%d lines, %v", len(out[i]), o.Counts)
		}
		wrong := 0
		for i, want := range out[0] {
			if i < len(out[1]) && (out[1][i] == want || knownDifference(want)) {
				continue
			}
			if wrong++; wrong <= 40 {
				got := "nothing"
				if i < len(out[1]) {
					got = out[1][i]
				}
				at := 0
				for at < min(len(got), len(want)) && got[at] == want[at] {
					at++
				}
				t.Errorf("%.100s\nkernel: ...%.60s\nbroker: ...%.60s", want, want[max(0, at-20):], got[max(0, at-20):])
			}
		}
		if wrong > 0 {
			t.Errorf("%d of %d differ", wrong, len(out[0]))
		}
	})
}

// knownDifference names what is not the same. The broker is another process
// than the caller, and /proc shows it the caller's descriptor directory less
// willingly. Where two errors are true at once it may tell the other one.
func knownDifference(line string) bool {
	op, rest, _ := strings.Cut(line, " ")
	switch {
	case strings.HasPrefix(rest, `"/proc/self/fd/`), strings.HasPrefix(rest, `"/dev/fd/`):
		return strings.HasPrefix(op, "unlinkat") || op == "rmdir" || strings.HasPrefix(op, "open(020")
	case strings.HasPrefix(op, "rename-from-absent2"), strings.HasPrefix(op, "rename-from-dlink/new2"):
		return strings.HasPrefix(rest, `"closed/`)
	case strings.HasPrefix(op, "link-from-") || strings.HasPrefix(op, "link-follow-to-"):
		return strings.HasPrefix(rest, `"./././`)
	}
	return false
}

// TestCorners runs one payload per hard corner; each checks itself.
func TestCorners(t *testing.T) {
	users(t, func(t *testing.T, w *world) {
		for _, role := range cornerNames() {
			t.Run(role, func(t *testing.T) {
				w := newWorld(t, w.uid)
				o := w.run(t, setup{Role: role})
				if o.Status != 0 {
					t.Errorf("status %d, %v\n%.3000s", o.Status, o.Counts, o.Stdout)
				}
				if grown := o.FDs[1] - o.FDs[0]; grown > 2 { // two are the poller's of Go's runtime
					t.Errorf("process 1 has %d descriptors more than before", grown)
				}
				if o.Counts["gone"] > 0 && !strings.HasPrefix(role, "killed") && !strings.HasPrefix(role, "fifo") {
					t.Errorf("%d answers found nobody", o.Counts["gone"])
				}
			})
		}
	})
}

// TestNested asks for a second listener below the first.
func TestNested(t *testing.T) {
	o := newWorld(t, os.Getuid()).run(t, setup{Role: "nested"})
	if o.Status != 0 {
		t.Errorf("status %d\n%s", o.Status, o.Stdout)
	}
}

// TestExecFails tells why a command could not be executed.
func TestExecFails(t *testing.T) {
	_, err := newWorld(t, os.Getuid()).try(setup{Args: []string{"/nonexistent"}})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("executing /nonexistent: %v, want no such file", err)
	}
}

// TestRefusals looks at the reports of refused calls.
func TestRefusals(t *testing.T) {
	o := newWorld(t, os.Getuid()).sh(t, "mkdir -p d/.vscode; echo x >d/.vscode/tasks.json; mv host elsewhere; ln -s x .git/y; mkdir .git; ln -s x .git/y; exit 5")
	if o.Status != 5 {
		t.Errorf("status %d, want 5", o.Status)
	}
	want := []string{"create openat tasks.json tasks sh", "leave rename frozen.txt name mv"}
	var got []string
	for _, r := range o.Refusals {
		call := strings.TrimSuffix(strings.TrimSuffix(r.Call, "2"), "at")
		if r.Op == OpCreate {
			call = r.Call
		}
		got = append(got, fmt.Sprintf("%s %s %s %s %s", r.Op, call, filepath.Base(r.Path), r.Rule, r.Comm))
		if r.PID < 2 {
			t.Errorf("refusal %v without a process", r)
		}
	}
	if !slices.Equal(got, want) && !slices.Equal(got, []string{want[0], "leave rename conftest.py name mv"}) {
		t.Errorf("refusals %q, want %q", got, want)
	}
	if o.Counts["refused"] != 3 { // the link in .git is refused quietly
		t.Errorf("%d refused, want 3", o.Counts["refused"])
	}
}

// TestServeRefuses starts brokers that may not serve.
func TestServeRefuses(t *testing.T) {
	keep := func() error { return nil }
	for _, c := range []struct {
		name, want string
		cfg        Config
	}{
		{"no rules", "needs rules", Config{Listener: -1, Restrict: keep}},
		{"no restriction", "needs rules", Config{Listener: -1, Rules: testRules{}}},
		{"restriction that fails", "no landlock", Config{Listener: -1, Rules: testRules{}, Restrict: func() error { return errors.New("no landlock") }}},
		{"capabilities left", "are left", Config{Listener: -1, Rules: testRules{}, Restrict: keep}},
		{"command that cannot be named", "the command", Config{Rules: testRules{}, Restrict: restrictNothing, Command: &Command{Path: "/bin/true\x00", Args: []string{"true"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "capabilities left" && os.Geteuid() != 0 {
				t.Skip("there are none")
			}
			served := make(chan error)
			go func() { served <- Serve(t.Context(), c.cfg, nil) }() // its thread ends with it
			if err := <-served; err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Serve = %v, want %q in it", err, c.want)
			}
		})
	}
}

// restrictNothing gives up capabilities only.
func restrictNothing() error { return setCapabilities(0, 0) }

// TestBwrap serves as process 1 of bubblewrap, started by an ordinary user,
// with CAP_SYS_PTRACE and nothing else.
func TestBwrap(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		if strings.Contains(os.Getenv("AGENTGUARD_REQUIRE"), "bwrap") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	users(t, func(t *testing.T, w *world) {
		for _, role := range []string{"frozen-absent", "frozen-present", "not-dumpable", "proc-one", "magic-links", "umasks", "fifo-opens"} {
			t.Run(role, func(t *testing.T) {
				o := newWorld(t, w.uid).run(t, setup{Role: role, Bwrap: true})
				if o.Status != 0 {
					t.Errorf("status %d, %v\n%.3000s", o.Status, o.Counts, o.Stdout)
				}
			})
		}
	})
}

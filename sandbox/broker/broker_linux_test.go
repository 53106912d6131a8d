//go:build amd64 || arm64

package broker

import (
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

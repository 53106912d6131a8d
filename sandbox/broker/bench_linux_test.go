//go:build amd64 || arm64

package broker

import (
	"fmt"
	"os"
	"testing"
)

// TestFloor runs the shell command in BROKER_FLOOR inside runs with and
// without a broker, in turn, and prints what it says: a loop that times its
// opens, to compare with the same loop under a minimal broker in C, or a git
// checkout that times itself.
func TestFloor(t *testing.T) {
	cmd := os.Getenv("BROKER_FLOOR")
	if cmd == "" {
		t.Skip("BROKER_FLOOR is not set")
	}
	for _, s := range []setup{{NoBroker: true}, {}, {Split: true}} {
		s.Args = []string{"/bin/sh", "-c", cmd}
		for range 3 {
			w := newWorld(t, 0)
			o := w.run(t, s)
			fmt.Printf("broker=%v split=%v calls=%d: %s", !s.NoBroker, s.Split, o.Counts["calls"], o.Stdout)
		}
	}
}

// BenchmarkOpen measures one create and one rewrite inside a run, as the
// payload sees them.
func BenchmarkOpen(b *testing.B) {
	for _, s := range []setup{{NoBroker: true}, {}, {Split: true}} {
		b.Run(fmt.Sprintf("broker=%v/split=%v", !s.NoBroker, s.Split), func(b *testing.B) {
			s.Role, s.Args = "bench-open", []string{fmt.Sprint(b.N)}
			o := newWorld(b, os.Getuid()).run(b, s)
			var create, rewrite, unlink float64
			if _, err := fmt.Sscan(o.Stdout, &create, &rewrite, &unlink); err != nil {
				b.Fatalf("%v: %q", err, o.Stdout)
			}
			b.ReportMetric(create, "ns/create")
			b.ReportMetric(rewrite, "ns/rewrite")
			b.ReportMetric(unlink, "ns/unlink")
		})
	}
}

// BenchmarkStart measures a whole run of true, namespaces included.
func BenchmarkStart(b *testing.B) {
	for _, s := range []setup{{NoBroker: true}, {}} {
		b.Run(fmt.Sprintf("broker=%v", !s.NoBroker), func(b *testing.B) {
			w := newWorld(b, os.Getuid())
			s.Args = []string{"/bin/true"}
			for b.Loop() {
				w.run(b, s)
			}
		})
	}
}

package integrity

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentguard/guard/surface"
)

// BenchmarkSnapshot hashes forty surfaces.
func BenchmarkSnapshot(b *testing.B) {
	root := b.TempDir()
	for i := range 40 {
		dir := filepath.Join(root, fmt.Sprintf("d%d", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		name := []string{"Makefile", "package.json"}[i%2]
		body := fmt.Sprintf(`{"name":"p%d","scripts":{"a":"b"},"deps":%q}`, i, strings.Repeat("x", 1000))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	tree, err := surface.WorkTree(root)
	if err != nil {
		b.Fatal(err)
	}
	set, err := surface.Resolve(tree, testMatcher(b))
	if err != nil {
		b.Fatal(err)
	}
	backup := Backup{Dir: filepath.Join(b.TempDir(), "b")}
	m, err := Snapshot(tree, set)
	if err != nil || len(m.Files()) != 40 {
		b.Fatal(len(m.Files()), err)
	}
	b.Run("hash", func(b *testing.B) {
		cpu, best := cpuTime(b), time.Hour
		for b.Loop() {
			began := time.Now()
			if _, err := Snapshot(tree, set); err != nil {
				b.Fatal(err)
			}
			best = min(best, time.Since(began))
		}
		// On a busy machine these are the figures that mean something.
		b.ReportMetric(float64(best.Nanoseconds()), "best-ns/op")
		b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
	})
	b.Run("floor: open, read, hash", func(b *testing.B) {
		cpu := cpuTime(b)
		for b.Loop() {
			for _, m := range set.Members {
				data, err := os.ReadFile(filepath.Join(root, m.Path))
				if err != nil || len(data) == 0 || sha256.Sum256(data) == (Sum{}) {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
	})
	b.Run("keep again", func(b *testing.B) {
		for b.Loop() {
			if _, err := backup.Keep(tree, m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compare", func(b *testing.B) {
		s := State{WorkTree: m, Index: m, Trees: map[string]*Manifest{"HEAD": m}}
		for b.Loop() {
			if f := Compare(s, s); len(f) != 0 {
				b.Fatal(f)
			}
		}
	})
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

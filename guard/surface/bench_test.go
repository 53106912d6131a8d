package surface

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// realisticPaths is shaped like a checkout of a web project with a service
// beside it: mostly source, some generated trees, git's own files, few hits.
func realisticPaths() []string {
	dirs := []string{
		"src/components/dialog", "src/lib/http/client", "src/pages/account/settings", "internal/store/postgres",
		"cmd/server", "docs/guide/images", "test/integration/fixtures", "web/assets/icons/flat",
		"node_modules/lodash/fp", "node_modules/@types/node/fs", "vendor/github.com/some/module/v2/internal",
		".git/refs/heads/feature", ".git/logs/refs/remotes/origin", ".github/workflows", "scripts", "packages/core/src",
	}
	names := []string{
		"index.ts", "dialog.tsx", "dialog.test.tsx", "http_client.go", "http_client_test.go", "readme.md",
		"styles.module.css", "logo.svg", "schema.sql", "types.d.ts", "utils.py", "data.json", "query.graphql",
		"main.go", "package.json", "handler.rs", "some-quite-long-file-name-for-a-component.stories.tsx",
	}
	var all []string
	for i, d := range dirs {
		for j, n := range names {
			if n == "package.json" && i%5 != 0 {
				n = "constants.ts"
			}
			all = append(all, fmt.Sprintf("%s/m%d/%s", d, j, n))
		}
	}
	return all
}

// cpuTime reports what the loop cost in processor time, which a busy machine
// blurs less than the clock.
func cpuTime(b *testing.B) (stop func()) {
	used := func() int64 {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return unix.TimevalToNsec(u.Utime) + unix.TimevalToNsec(u.Stime)
	}
	start := used()
	return func() { b.ReportMetric(float64(used()-start)/float64(b.N), "cpu-ns/op") }
}

func BenchmarkMatch(b *testing.B) {
	m := mustMatcher(b, Rules{Protect: []string{"data/**", "*.lock"}})
	paths := realisticPaths()
	b.ReportAllocs()
	defer cpuTime(b)()
	hits := 0
	for i := 0; b.Loop(); i++ {
		if _, ok := m.Match(paths[i%len(paths)], Regular); ok {
			hits++
		}
	}
	_ = hits // keeps the calls
}

func BenchmarkMatchUpperCase(b *testing.B) {
	m := mustMatcher(b, Rules{})
	b.ReportAllocs()
	for b.Loop() {
		m.Match("src/Components/Dialog/README.md", Regular)
	}
}

func BenchmarkNewMatcher(b *testing.B) {
	b.ReportAllocs()
	defer cpuTime(b)()
	for b.Loop() {
		mustMatcher(b, Rules{})
	}
}

// bigTree makes n small files, 20 to a directory, once for all benchmarks of
// a run.
func bigTree(b *testing.B, n int) string {
	b.Helper()
	root := b.TempDir()
	for i := range n {
		dir := filepath.Join(root, fmt.Sprintf("d%d/e%d/f%d", i/2000, i/200%10, i/20%10))
		if i%20 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%d.go", i)), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return root
}

func BenchmarkWalk(b *testing.B) {
	root := bigTree(b, 20000)
	t, err := WorkTree(root)
	if err != nil {
		b.Fatal(err)
	}
	m := mustMatcher(b, Rules{})
	b.Run("bare getdents", func(b *testing.B) {
		defer cpuTime(b)()
		for b.Loop() {
			bareWalk(b, root)
		}
	})
	b.Run("WorkTree", func(b *testing.B) {
		defer cpuTime(b)()
		for b.Loop() {
			if err := t.Walk(func(WalkEntry) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Resolve", func(b *testing.B) {
		defer cpuTime(b)()
		for b.Loop() {
			if _, err := Resolve(t, m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("filepath.WalkDir", func(b *testing.B) {
		defer cpuTime(b)()
		for b.Loop() {
			err := filepath.WalkDir(root, func(string, os.DirEntry, error) error { return nil })
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

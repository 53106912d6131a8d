package watch

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentguard/guard/event"
	"agentguard/guard/surface"
)

// tree makes a work tree of dirs directories with each files, a package.json
// in every fiftieth.
func tree(b *testing.B, dirs, each int) (root string, names []string) {
	root = files(b, "Makefile", "package.json")
	for d := range dirs {
		dir := fmt.Sprintf("d%d/e%d", d%30, d)
		for f := range each {
			write(b, root, fmt.Sprintf("%s/file%d.go", dir, f), "x")
		}
		if d%50 == 0 {
			write(b, root, dir+"/package.json", "{}")
		}
	}
	must(b, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			rel, _ := filepath.Rel(root, p)
			names = append(names, rel)
		}
		return err
	}))
	return root, names
}

// BenchmarkNew is what a run waits for before its command starts.
func BenchmarkNew(b *testing.B) {
	for _, size := range []struct{ dirs, each int }{{10, 10}, {1000, 20}} {
		root, dirs := tree(b, size.dirs, size.each)
		m := matcher(b)
		t, err := surface.WorkTree(root)
		must(b, err)
		set, err := surface.Resolve(t, m)
		must(b, err)
		for _, row := range []struct {
			name string
			opts Options
		}{{"dirs given", Options{Dirs: dirs, Set: set}}, {"walk", Options{}}} {
			b.Run(fmt.Sprintf("%d files, %s", size.dirs*size.each, row.name), func(b *testing.B) {
				best := time.Hour // the figure that means something on a busy machine
				for b.Loop() {
					began := time.Now()
					w, err := New(root, m, event.Discard, row.opts)
					best = min(best, time.Since(began))
					must(b, err)
					must(b, w.Close())
				}
				b.ReportMetric(float64(best.Nanoseconds()), "best-ns/op")
			})
		}
	}
}

// BenchmarkNotice is the time from a rename to its event.
func BenchmarkNotice(b *testing.B) {
	root, _ := tree(b, 10, 10)
	r := begin(b, root, Options{Interval: time.Hour})
	from, to := filepath.Join(root, "Makefile"), filepath.Join(root, "moved")
	best := time.Hour
	for b.Loop() {
		began := time.Now()
		must(b, os.Rename(from, to))
		<-r.events
		best = min(best, time.Since(began))
		from, to = to, from
	}
	b.ReportMetric(float64(best.Nanoseconds()), "best-ns/op")
}

// BenchmarkEnd is what the end of a run waits for.
func BenchmarkEnd(b *testing.B) {
	root, dirs := tree(b, 1000, 20)
	for b.Loop() {
		b.StopTimer()
		r := begin(b, root, Options{Dirs: dirs})
		b.StartTimer()
		r.stop()
	}
}

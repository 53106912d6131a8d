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
				for b.Loop() {
					w, err := New(root, m, event.Discard, row.opts)
					must(b, err)
					b.StopTimer()
					must(b, w.Close())
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkNotice is the time from a write to its event.
func BenchmarkNotice(b *testing.B) {
	root, _ := tree(b, 10, 10)
	r := begin(b, root, Options{Interval: time.Hour})
	p := filepath.Join(root, "Makefile")
	n := 0
	for b.Loop() {
		n++
		must(b, os.Rename(filepath.Join(root, []string{"Makefile", "moved"}[(n+1)%2]), filepath.Join(root, []string{"Makefile", "moved"}[n%2])))
		<-r.events
	}
	_ = p
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

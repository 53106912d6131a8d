package hooks

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkShim is what a hook costs through its shim, beside the hook alone.
func BenchmarkShim(b *testing.B) {
	dir := b.TempDir()
	approved, work := filepath.Join(dir, "copy"), filepath.Join(dir, "work")
	source := filepath.Join(work, DefaultSource)
	script := filepath.Join(dir, "shim")
	for _, d := range []string{approved, source} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"pre-commit", "commit-msg", "lib.sh", "pre-push"} {
			if err := os.WriteFile(filepath.Join(d, name), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(script, shim("pre-commit", approved, DefaultSource), 0o755); err != nil {
		b.Fatal(err)
	}
	for _, bm := range []struct{ name, program string }{{"alone", filepath.Join(approved, "pre-commit")}, {"shim", script}} {
		b.Run(bm.name, func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command(bm.program)
				cmd.Dir = work
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

//go:build !linux

package surface

import (
	"os"
	"path/filepath"
	"testing"
)

func bareWalk(b *testing.B, root string) {
	if err := filepath.WalkDir(root, func(string, os.DirEntry, error) error { return nil }); err != nil {
		b.Fatal(err)
	}
}

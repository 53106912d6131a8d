package watch

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"agentguard/guard/event"
)

func TestEachKindOfChange(t *testing.T) {
	rename := func(root, from, to string) error {
		return os.Rename(filepath.Join(root, from), filepath.Join(root, to))
	}
	rows := []struct {
		name   string
		path   string
		change string
		do     func(root string) error
	}{
		{"create by write", "sub/Makefile", "created", func(root string) error {
			return os.WriteFile(filepath.Join(root, "sub/Makefile"), nil, 0o644)
		}},
		{"write", "Makefile", "changed", func(root string) error {
			return os.WriteFile(filepath.Join(root, "Makefile"), []byte("new"), 0o644)
		}},
		{"append", "Makefile", "changed", func(root string) error {
			f, err := os.OpenFile(filepath.Join(root, "Makefile"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("x")
			return err
		}},
		{"truncate", "Makefile", "changed", func(root string) error { return os.Truncate(filepath.Join(root, "Makefile"), 0) }},
		{"write the same", "Makefile", "written with the same content", func(root string) error {
			f, err := os.OpenFile(filepath.Join(root, "Makefile"), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("old")
			return err
		}},
		{"rename over", "Makefile", "replaced", func(root string) error { return rename(root, "other", "Makefile") }},
		{"rename in", "sub/Makefile", "created", func(root string) error { return rename(root, "other", "sub/Makefile") }},
		{"rename in from outside", "sub/Makefile", "created", func(root string) error {
			if err := os.WriteFile(root+"-aside", nil, 0o644); err != nil {
				return err
			}
			return os.Rename(root+"-aside", filepath.Join(root, "sub/Makefile"))
		}},
		{"rename away", "Makefile", "moved away", func(root string) error { return rename(root, "Makefile", "x") }},
		{"remove", "Makefile", "removed", func(root string) error { return os.Remove(filepath.Join(root, "Makefile")) }},
		{"chmod", "Makefile", "mode changed", func(root string) error { return os.Chmod(filepath.Join(root, "Makefile"), 0o755) }},
		{"hard link to a surface's name", "sub/Makefile", "created", func(root string) error {
			return os.Link(filepath.Join(root, "other"), filepath.Join(root, "sub/Makefile"))
		}},
		{"hard link away", "Makefile", "hard-linked", func(root string) error {
			return os.Link(filepath.Join(root, "Makefile"), filepath.Join(root, "second"))
		}},
		{"symbolic link", "sub/Makefile", "created", func(root string) error {
			return os.Symlink("/etc/passwd", filepath.Join(root, "sub/Makefile"))
		}},
		{"becomes a link", "Makefile", "type changed", func(root string) error {
			if err := os.Symlink("/etc/passwd", filepath.Join(root, "tmp")); err != nil {
				return err
			}
			return rename(root, "tmp", "Makefile")
		}},
		{"FIFO", "sub/Makefile", "created", func(root string) error {
			return syscall.Mkfifo(filepath.Join(root, "sub/Makefile"), 0o644)
		}},
		{"a hook", ".git/hooks/pre-commit", "created", func(root string) error {
			return os.WriteFile(filepath.Join(root, ".git/hooks/pre-commit"), nil, 0o755)
		}},
		{"mkdir -p and write", "a/b/c/d/e/Makefile", "created", func(root string) error {
			if err := os.MkdirAll(filepath.Join(root, "a/b/c/d/e"), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(root, "a/b/c/d/e/Makefile"), nil, 0o644)
		}},
		{"a directory renamed in", "new/deep/Makefile", "created", func(root string) error { return rename(root, "dir", "new") }},
		{"a directory renamed away", "dir/deep/Makefile", "removed", func(root string) error { return rename(root, "dir", "new") }},
		{"a directory's name completes a surface", ".vscode/tasks.json", "created", func(root string) error {
			return rename(root, "editor", ".vscode")
		}},
		{"a directory swapped for a link", "dir/deep/Makefile", "removed", func(root string) error {
			if err := rename(root, "dir", "aside"); err != nil {
				return err
			}
			return os.Symlink("aside", filepath.Join(root, "dir"))
		}},
		{"a directory removed", "dir/deep/Makefile", "removed", func(root string) error { return os.RemoveAll(filepath.Join(root, "dir")) }},
		{"hooks directory replaced", ".git/hooks/post-checkout", "created", func(root string) error {
			if err := os.RemoveAll(filepath.Join(root, ".git/hooks")); err != nil {
				return err
			}
			if err := os.Mkdir(filepath.Join(root, ".git/hooks"), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(root, ".git/hooks/post-checkout"), nil, 0o755)
		}},
		{"in a frozen generated tree", "dist/frozen/new/x", "created", func(root string) error {
			if err := os.Mkdir(filepath.Join(root, "dist/frozen/new"), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(root, "dist/frozen/new/x"), nil, 0o644)
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			root := files(t, "Makefile", "other", "sub/", "dir/deep/Makefile", "editor/tasks.json", "dist/frozen/a")
			r := begin(t, root, Options{Interval: time.Hour})
			must(t, row.do(root))
			e := r.wait(row.path, row.change)
			if e.Rule == "" || e.Detail["trigger"] == "" || e.Hint == "" || e.Verdict != event.Denied {
				t.Errorf("event is not complete: %+v", e)
			}
		})
	}
}

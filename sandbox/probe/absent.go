package probe

import (
	"os"
	"path/filepath"
)

// absentAttempts bring frozen names into being that are not there, by each way
// a name comes into being. No mount can hold a name that does not exist.
func absentAttempts() []attempt {
	const brokered = "a frozen name cannot come into being"
	row := func(id, title string, do func(ws string) (made string, err error)) attempt {
		return attempt{Attempt{id, title, brokered, Refused}, func(env Env) error {
			made, err := do(env.Workspace)
			if err != nil {
				return err
			}
			return os.RemoveAll(made)
		}}
	}
	return []attempt{
		row("names.file", "create a file that a test runner executes", func(ws string) (string, error) {
			path := filepath.Join(ws, "web", "conftest.py")
			return path, os.WriteFile(path, []byte("pass\n"), 0o644)
		}),
		row("names.directory", "make the directory of an editor's tasks", func(ws string) (string, error) {
			path := filepath.Join(ws, ".vscode")
			return path, os.Mkdir(path, 0o755)
		}),
		row("names.rename", "rename a directory so that a file in it becomes an editor's tasks", func(ws string) (string, error) {
			plain, path := filepath.Join(ws, "plain-directory"), filepath.Join(ws, ".vscode")
			if err := os.Mkdir(plain, 0o755); err != nil {
				return "", &brokenPlant{plain, err}
			}
			defer os.RemoveAll(plain) // gone already when renamed
			if err := os.WriteFile(filepath.Join(plain, "tasks.json"), []byte("{}"), 0o644); err != nil {
				return "", &brokenPlant{plain, err}
			}
			return path, os.Rename(plain, path)
		}),
		row("names.link", "link a file to the name that a shell hook reads", func(ws string) (string, error) {
			plain, path := filepath.Join(ws, "plain-file"), filepath.Join(ws, ".envrc")
			if err := os.WriteFile(plain, []byte("\n"), 0o644); err != nil {
				return "", &brokenPlant{plain, err}
			}
			defer os.Remove(plain) // a file of this attempt's own
			return path, os.Link(plain, path)
		}),
		row("names.spelling", "create a frozen name in capitals", func(ws string) (string, error) {
			path := filepath.Join(ws, "web", "CONFTEST.PY")
			return path, os.WriteFile(path, []byte("pass\n"), 0o644)
		}),
		row("git.commondir", "point git at another repository", func(ws string) (string, error) {
			path := filepath.Join(ws, ".git", "commondir")
			return path, os.WriteFile(path, []byte(".\n"), 0o644)
		}),
	}
}

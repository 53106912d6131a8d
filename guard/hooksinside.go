package guard

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"agentguard/sandbox"
)

// longestHooks bounds what is carried into a run; package hooks approves no
// more.
const longestHooks = 20 << 20 // bytes, shims included

// hooksInside decides how the hooks directories appear in the sandbox: as they
// are, or as copies where root keeps them for a command that runs as somebody
// who cannot look there. A hook that is missing is one that refuses nothing.
func (p *plan) hooksInside(w *Workspace, dirs []string, as *sandbox.Identity) error {
	for _, dir := range dirs {
		switch {
		case as == nil || reachable(dir, as):
			p.hooks = append(p.hooks, dir)
		case within(dir, w.dirs.state):
			copies, err := copiesOf(dir)
			if err != nil {
				return fmt.Errorf("showing the approved hooks to user %d: %w", as.UID, err)
			}
			p.copies = append(p.copies, copies...)
		default:
			p.weak = append(p.weak, fmt.Sprintf("hooks do not run inside: user %d cannot look into %s", as.UID, dir))
		}
	}
	return nil
}

// copiesOf is a directory as a private one with the same content, read-only.
func copiesOf(dir string) ([]sandbox.Mount, error) {
	out := []sandbox.Mount{{Kind: sandbox.Tmpfs, Target: dir, Perm: 0o755}}
	left := int64(longestHooks)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == dir:
			return nil
		case d.IsDir():
			out = append(out, sandbox.Mount{Kind: sandbox.Dir, Target: path, Perm: 0o755})
		case d.Type() == fs.ModeSymlink:
			text, err := os.Readlink(path)
			if err != nil {
				return err
			}
			out = append(out, sandbox.Mount{Kind: sandbox.Link, Source: text, Target: path})
		case d.Type().IsRegular():
			m, err := copyOf(path, left)
			if err != nil {
				return err
			}
			left -= int64(len(m.Data))
			out = append(out, m)
		}
		return nil
	})
	return append(out, sandbox.Mount{Kind: sandbox.Seal, Target: dir}), err
}

func copyOf(path string, limit int64) (sandbox.Mount, error) {
	f, err := os.Open(path)
	if err != nil {
		return sandbox.Mount{}, err
	}
	defer f.Close() // read only: nothing is lost
	info, err := f.Stat()
	if err != nil {
		return sandbox.Mount{}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%q: larger than %d bytes with the others", path, longestHooks)
	}
	return sandbox.Mount{Kind: sandbox.File, Target: path, Data: data, Perm: uint32(info.Mode().Perm())}, err
}

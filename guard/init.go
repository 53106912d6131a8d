package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentguard/guard/policy"
	"agentguard/hooks"
	"agentguard/integrity"
)

// InitOptions is what init is asked to do.
type InitOptions struct {
	DryRun bool
	Hooks  bool
}

// Init sets a repository up: its policy file, the record that the user wrote
// it, agentguard's own directories and the first copies of the surfaces. It
// may be repeated; what is there is left as it is. It returns what it did, or
// would do, one sentence each.
func (g *Guard) Init(o InitOptions) ([]string, error) {
	w, err := g.Open()
	if err != nil {
		return nil, err
	}
	if err := w.needRepo(); err != nil {
		return nil, err
	}
	if err := g.settle(w); err != nil {
		return nil, err
	}
	if o.Hooks { // before anything is written
		if _, err := g.hooksSource(w); err != nil {
			return nil, err
		}
	}
	var did []string
	name := filepath.Join(w.Root, policy.FileName)
	_, err = os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		did = append(did, "wrote "+policy.FileName+", which widens nothing")
	case err != nil:
		return nil, fmt.Errorf("looking for %s: %w", policy.FileName, err)
	default:
		did = append(did, policy.FileName+" is there and stays as it is")
	}
	first := err != nil // the policy file is ours
	if o.DryRun {
		if !exists(filepath.Join(w.Root, integrity.FileName)) {
			did = append(did, wroteManifest)
		}
		return append(did, "nothing was done (--dry-run)"), nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := createFile(name, policy.InitTemplate()); err != nil {
			return nil, err
		}
		src, err := policy.ReadSource(name, policy.FileName)
		if err != nil {
			return nil, err
		}
		if err := w.stateDirs(); err != nil {
			return nil, err
		}
		if err := w.trust().Record(w.ID, src); err != nil {
			return nil, fmt.Errorf("recording that you wrote it: %w", err)
		}
	}
	if err := w.stateDirs(); err != nil {
		return nil, err
	}
	wrote, err := g.firstManifest(w, first)
	if err != nil {
		return did, err
	}
	// After the manifest, which is a surface itself.
	if err := g.firstCopies(w); err != nil {
		return did, err
	}
	did = append(did, "kept a copy of every surface, for agentguard restore")
	if wrote {
		did = append(did, wroteManifest)
	}
	if !o.Hooks {
		return did, nil
	}
	return g.initHooks(w, did)
}

// initHooks installs what hooks install does.
func (g *Guard) initHooks(w *Workspace, did []string) ([]string, error) {
	ho, err := g.hooksOptionsOf(w, HooksOptions{})
	if err != nil {
		return did, err
	}
	s, err := hooks.Install(ho)
	if err != nil {
		return did, err
	}
	var b strings.Builder
	hooksReport(ho, s).Text(&b)
	return append(did, "hooks: "+strings.TrimSuffix(b.String(), "\n")), nil
}

// createFile makes a file that must not exist; nothing is followed or replaced.
func createFile(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	return nil
}

// firstCopies keeps the surfaces of today and makes the caches, so that a run
// finds all of agentguard's own files there.
func (g *Guard) firstCopies(w *Workspace) error {
	p, err := g.loadPolicy(w, policy.Flags{})
	if err != nil {
		return err
	}
	s, err := g.look(w, p)
	if err != nil {
		return err
	}
	if _, err := w.keep(s.areas); err != nil {
		return err
	}
	return w.makeCaches(g.identity(w))
}

// look resolves and hashes everything that a run under p could write.
func (g *Guard) look(w *Workspace, p *policy.Policy) (*start, error) {
	found, err := g.resolved(w, p)
	if err != nil {
		return nil, err
	}
	return w.takeStart(found.areas)
}

// TrustState is how the repository's policy file stands with the user.
type TrustState struct {
	File    string   `json:"file"`
	SHA256  string   `json:"sha256"`
	Trusted bool     `json:"trusted"`
	Waits   []string `json:"waits,omitempty"` // what a yes would open
}

// TrustState says how the repository's policy file stands.
func (g *Guard) TrustState() (*Workspace, TrustState, error) {
	w, err := g.Open()
	if err != nil {
		return nil, TrustState{}, err
	}
	src, err := policy.ReadSource(filepath.Join(w.Root, policy.FileName), policy.FileName)
	if err != nil {
		return nil, TrustState{}, err
	}
	if src == nil {
		return w, TrustState{}, &WorkspaceError{w.Root, "there is no " + policy.FileName + " to trust"}
	}
	st := TrustState{File: filepath.Join(w.Root, policy.FileName), SHA256: src.SHA256()}
	if st.Trusted, err = w.trust().Trusted(w.ID, src); err != nil {
		return nil, st, err
	}
	p, err := g.loadPolicy(w, policy.Flags{})
	if err != nil {
		return nil, st, err
	}
	for _, line := range p.Pending {
		st.Waits = append(st.Waits, line.String())
	}
	return w, st, nil
}

// Trust records the user's yes to exactly the bytes that st was made from.
func (g *Guard) Trust(w *Workspace, st TrustState) error {
	src, err := policy.ReadSource(filepath.Join(w.Root, policy.FileName), policy.FileName)
	if err != nil {
		return err
	}
	if src == nil || src.SHA256() != st.SHA256 {
		return &WorkspaceError{w.Root, policy.FileName + " changed while you were asked"}
	}
	if err := privateDir(w.trust().Dir); err != nil {
		return err
	}
	return w.trust().Record(w.ID, src)
}

// Distrust takes every yes for this repository back.
func (g *Guard) Distrust(w *Workspace) (int, error) { return w.trust().Revoke(w.ID) }

package guard

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"agentguard/guard/policy"
	"agentguard/guard/surface"
	"agentguard/integrity"
)

// anchorMatcher is how a tree is judged where only what it holds itself
// counts: the strict catalogue and what its policy file tightens. Neither the
// user's own configuration nor a yes to the file plays a part, so everybody
// who has the tree judges alike.
func anchorMatcher(policyFile []byte) (*surface.Matcher, error) {
	rules := surface.Rules{Profile: surface.Strict}
	if policyFile != nil {
		p, err := policy.Load(policy.Input{
			Home: "/nonexistent/home", WorkspaceRoot: "/nonexistent/workspace", // grants do not matter here
			Repo: &policy.Source{Name: policy.FileName, Data: policyFile},
		})
		if err != nil {
			return nil, err
		}
		for _, v := range p.Sandbox.Protect {
			rules.Protect = append(rules.Protect, v.Text)
		}
		if dir := filepath.Clean(p.Hooks.Path); filepath.IsLocal(dir) && dir != "." {
			rules.Protect = append(rules.Protect, "/"+literalGlob(dir))
		}
	}
	return surface.NewMatcher(surface.Catalogue(), rules)
}

// inManifest says what has a line in a repository's manifest: what git can
// hold and somebody would have to approve. The manifest itself cannot.
func inManifest(f integrity.File) bool {
	return integrity.Tracked(f) && f.Protection != surface.Note && f.Path != integrity.FileName
}

const wroteManifest = "wrote " + integrity.FileName + ", the hashes of what is accepted here: commit it with " + policy.FileName

// firstManifest writes the repository's manifest where there is none: the
// surfaces of what is in git (all of the work tree, before anything was added)
// and the policy file. Two clones of the same content write the same bytes.
// own says that the policy file is init's and needs nobody's approval.
func (g *Guard) firstManifest(w *Workspace, own bool) (wrote bool, err error) {
	name := filepath.Join(w.Root, integrity.FileName)
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return false, err // it is there, or cannot be looked for
	}
	disk, err := surface.WorkTree(w.Root)
	if err != nil {
		return false, err
	}
	policyFile, err := readFrom(disk, policy.FileName)
	if err != nil {
		return false, err
	}
	m, err := anchorMatcher(policyFile)
	if err != nil {
		return false, err
	}
	x, err := w.Repo.Index()
	if err != nil {
		return false, fmt.Errorf("reading the index: %w", err)
	}
	tree := disk
	if len(x.Entries) > 0 {
		tree = x.Tree(w.Repo)
	}
	set, err := surface.Resolve(tree, m)
	if err != nil {
		return false, err
	}
	all, err := integrity.Snapshot(tree, set)
	if err != nil {
		return false, err
	}
	yaml, err := judged(disk, m, map[string]bool{policy.FileName: true})
	if err != nil {
		return false, err
	}
	lines := integrity.NewManifest(slices.Concat(all.Files(), yaml.Files())).Select(inManifest)
	if err := g.writeManifest(w, lines, true); err != nil {
		return false, err
	}
	if own {
		err = w.approvals().Approve(repoName(w.ID), yaml.Get(policy.FileName), g.Now())
	}
	return true, err
}

// writeManifest puts a manifest in place, as a file of the work tree's owner.
// approve says that what it replaces was approved too, so that the new one is.
func (g *Guard) writeManifest(w *Workspace, lines *integrity.Manifest, approve bool) error {
	var b bytes.Buffer
	if _, err := lines.WriteTo(&b); err != nil {
		return err
	}
	if err := w.writeTracked(integrity.FileName, b.Bytes()); err != nil {
		return err
	}
	if !approve {
		return nil
	}
	f := integrity.File{Path: integrity.FileName, Kind: integrity.Regular, Mode: 0o100644, Protection: surface.Freeze}
	f.Whole = sha256.Sum256(b.Bytes())
	f.Part = f.Whole
	return w.approvals().Approve(repoName(w.ID), f, g.Now())
}

// writeTracked puts a file at the top of the work tree whole or not at all; a
// link there is replaced and not followed.
func (w *Workspace) writeTracked(base string, data []byte) error {
	f, err := os.CreateTemp(w.Root, ".agentguard-tmp-*")
	if err != nil {
		return fmt.Errorf("writing %q: %w", base, err)
	}
	defer os.Remove(f.Name()) // gone already once renamed
	_, err = f.Write(data)
	if err == nil && os.Geteuid() == 0 {
		err = f.Chown(int(w.UID), int(w.GID))
	}
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(w.Root, base))
	}
	if err != nil {
		return fmt.Errorf("writing %q: %w", base, err)
	}
	return nil
}

// approveInManifest gives every approved state its line. A manifest that
// itself is not as HEAD has it and not approved stays unapproved: whoever
// wrote into it must not have it accepted in passing.
func (g *Guard) approveInManifest(w *Workspace, list []Proposal) (updated bool, err error) {
	disk, err := surface.WorkTree(w.Root)
	if err != nil {
		return false, err
	}
	data, err := readFrom(disk, integrity.FileName)
	if data == nil || err != nil {
		return false, err // the repository keeps none
	}
	old, err := integrity.Read(bytes.NewReader(data))
	if err != nil {
		return false, fmt.Errorf("%s: %w", integrity.FileName, err)
	}
	good, err := g.manifestApproved(w, disk)
	if err != nil {
		return false, err
	}
	lines := slices.Clone(old.Files())
	for _, p := range list {
		if f := p.file; f.Kind == integrity.Absent || inManifest(f) && !filepath.IsAbs(f.Path) {
			lines = append(lines, f)
		}
	}
	now := integrity.NewManifest(lines)
	if now.Digest() == old.Digest() {
		return false, nil
	}
	return true, g.writeManifest(w, now, good)
}

// manifestApproved says whether the manifest on disk is HEAD's or approved.
func (g *Guard) manifestApproved(w *Workspace, disk surface.Tree) (bool, error) {
	head, err := headOf(w.Repo)
	if err != nil {
		return false, err
	}
	m, err := anchorMatcher(nil)
	if err != nil {
		return false, err
	}
	c := &comparison{now: disk, matcher: m, paths: map[string]bool{integrity.FileName: true}}
	if c.old, err = w.Repo.TreeOf(head); err != nil {
		return false, err
	}
	changes, err := w.undecided(c)
	return len(changes) == 0, err
}

// readFrom returns the content of a regular file of a tree, nil when there is
// none.
func readFrom(t surface.Tree, path string) ([]byte, error) {
	e, err := t.Lstat(path)
	if errors.Is(err, surface.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if e.Type != surface.Regular {
		return nil, fmt.Errorf("%q is no file", path)
	}
	return readWhole(t, path)
}

// maxTracked bounds a manifest or policy file that is read from a tree.
const maxTracked = 64 << 20

func readWhole(t surface.Tree, path string) ([]byte, error) {
	r, _, err := t.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close() // read only: nothing is lost
	data, err := io.ReadAll(io.LimitReader(r, maxTracked+1))
	if err == nil && len(data) > maxTracked {
		err = fmt.Errorf("%q is longer than %d bytes", path, maxTracked)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, err)
	}
	return append([]byte{}, data...), nil
}

package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"agentguard/guard/git"
)

// key is the setting that this package owns.
const key = "core.hooksPath"

func install(o Options) (State, error) {
	p, err := propose(o)
	if err != nil {
		return State{}, err
	}
	return p.install()
}

func (p *Proposal) install() (State, error) {
	found, err := look(p.o)
	if err != nil {
		return State{}, err
	}
	if err := p.mayInstall(found); err != nil {
		return State{}, err
	}
	unlock, rec, err := p.begin()
	if err != nil {
		return State{}, err
	}
	defer unlock()

	adopted, err := p.writeAdopted()
	if err == nil {
		err = p.putInForce(found, rec)
	}
	if err != nil {
		return State{}, errors.Join(err, p.undo(adopted, rec == nil))
	}
	s, err := status(p.o)
	s.Adopted = adopted
	return s, err
}

// mayInstall refuses what would leave somebody with less than they have.
func (p *Proposal) mayInstall(found setting) error {
	if v := found.relativeGlobal(); v != nil {
		return &RelativeGlobalError{Value: v.Value, Origin: v.Origin}
	}
	if found.path.Scope == git.ScopeWorktree && found.path.Value != p.st.hooksPath() {
		return &ConflictError{[]Conflict{worktreeConflict(found.path)}}
	}
	if p.o.Replace || p.o.Adopt || !found.path.Set || p.ours(found.path.Dir) {
		return nil
	}
	others, err := otherHooks(found.path.Dir, p.now)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return &ConflictError{others}
	}
	return nil
}

// ours tells whether a hooks directory is the source or the shims.
func (p *Proposal) ours(dir string) bool {
	return dir == filepath.Join(p.o.Repo.Root, p.o.Source) || within(p.st.dir, dir)
}

// putInForce writes, in an order in which each step makes sense alone: the
// record of what was there, the version, and last the setting that git reads.
func (p *Proposal) putInForce(found setting, rec *record) error {
	approved := p.approved
	if p.base == "" {
		approved = p.now
	} else if _, err := p.st.approved(p.base); err != nil {
		return &ConflictError{[]Conflict{{Kind: Altered, Path: p.st.dir, Detail: err.Error()}}}
	}
	if rec == nil {
		rec = &record{Version: 1, CommonDir: p.o.Repo.CommonDir, Ino: p.o.Repo.Ino, Previous: found.previous(p.st)}
	}
	rec.Source = p.o.Source
	if err := p.st.save(*rec); err != nil {
		return err
	}
	if err := p.st.write(approved, p.o.Source); err != nil {
		return err
	}
	if found.path.Value == p.st.hooksPath() {
		return nil
	}
	if err := setLocal(p.o.Repo, found.local, p.st.hooksPath()); err != nil {
		return err
	}
	after, err := look(p.o)
	if err == nil && after.path.Value != p.st.hooksPath() {
		err = fmt.Errorf("%s is %q from %s, whatever %s says", key, after.path.Value, after.path.Origin, configFile(p.o.Repo))
	}
	if err != nil {
		return errors.Join(err, restore(p.o.Repo, found.local))
	}
	return nil
}

// undo takes back what a failed install made.
func (p *Proposal) undo(adopted []string, fresh bool) error {
	var errs []error
	for _, name := range adopted {
		if err := os.Remove(filepath.Join(p.o.Repo.Root, name)); err != nil {
			errs = append(errs, fmt.Errorf("taking back: %w", err))
		}
	}
	if fresh {
		errs = append(errs, p.st.remove())
	}
	return errors.Join(errs...)
}

func uninstall(o Options) (State, error) {
	o, err := o.normal()
	if err != nil {
		return State{}, err
	}
	st := o.store()
	if _, err := os.Lstat(st.dir); errors.Is(err, fs.ErrNotExist) {
		return status(o)
	}
	unlock, err := st.lock()
	if err != nil {
		return State{}, err
	}
	defer unlock()
	rec, err := st.load(o.Repo.Ino)
	if err != nil {
		return State{}, err
	}
	found, err := look(o)
	if err != nil {
		return State{}, err
	}
	// Whoever changed the setting since keeps it.
	if found.local != nil && within(st.dir, *found.local) {
		var previous *string
		if rec != nil {
			previous = rec.Previous
		}
		if err := restore(o.Repo, previous); err != nil {
			return State{}, err
		}
	}
	if err := st.remove(); err != nil {
		return State{}, err
	}
	return status(o)
}

func configFile(r *git.Repo) string { return filepath.Join(r.CommonDir, "config") }

// setLocal sets the key in the repository's own configuration.
func setLocal(r *git.Repo, was *string, value string) error {
	if was != nil && *was == value {
		return nil
	}
	name := configFile(r)
	info, err := os.Lstat(name)
	if err != nil {
		return fmt.Errorf("setting %s: %w", key, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("setting %s: %q is %s", key, name, kindOf(info))
	}
	if err := git.SetConfig(key, value, name); err != nil {
		return fmt.Errorf("setting %s: %w", key, err)
	}
	return nil
}

// restore gives the repository's configuration its earlier value.
func restore(r *git.Repo, previous *string) error {
	if previous != nil {
		return setLocal(r, nil, *previous)
	}
	if err := git.UnsetConfig(key, configFile(r)); err != nil {
		return fmt.Errorf("unsetting %s: %w", key, err)
	}
	return nil
}

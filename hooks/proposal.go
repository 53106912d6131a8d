package hooks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Proposal is the source as it was read once, beside what is approved. What is
// shown from it is what is approved with it, whatever happens to the files
// meanwhile.
type Proposal struct {
	o        Options
	st       store
	now      tree   // the source, with what is adopted
	adopt    tree   // hooks git runs now that Install writes into the source
	base     string // version in force when it was read, empty for none
	approved tree   // its content, empty where it is not to be trusted
}

// normal returns o with its defaults, or why it cannot be served.
func (o Options) normal() (Options, error) {
	if o.Repo == nil || o.Repo.Bare || o.Repo.Root == "" {
		return o, errors.New("hooks: the repository has no work tree that could hold their source")
	}
	if o.Source == "" {
		o.Source = DefaultSource
	}
	o.Source = filepath.Clean(o.Source)
	if !filepath.IsLocal(o.Source) || o.Source == "." {
		return o, &SourceError{Path: o.Source, Why: "not a directory below the top of the work tree"}
	}
	if why := oddName(o.Source); why != "" {
		return o, &SourceError{Path: o.Source, Why: why}
	}
	if first, _, _ := strings.Cut(o.Source, "/"); strings.EqualFold(first, ".git") {
		return o, &SourceError{Path: o.Source, Why: "in the git directory, where nothing is reviewed"}
	}
	if !filepath.IsAbs(o.StateDir) {
		return o, fmt.Errorf("hooks: the state directory %q is not an absolute path", o.StateDir)
	}
	o.StateDir = resolve(filepath.Clean(o.StateDir))
	return o, o.outside()
}

// resolve follows the symbolic links of a path as far as it exists, so that
// git, the sandbox's mounts and the comparison below mean one place.
func resolve(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	dir := filepath.Dir(name)
	if dir == name {
		return name
	}
	return filepath.Join(resolve(dir), filepath.Base(name))
}

// outside refuses a state directory in a work tree or git directory, where an
// agent or a checkout could write.
func (o Options) outside() error {
	dirs := []string{o.Repo.Root, o.Repo.GitDir, o.Repo.CommonDir}
	worktrees, err := o.Repo.Worktrees()
	if err != nil {
		return fmt.Errorf("hooks: listing worktrees: %w", err)
	}
	for _, w := range worktrees {
		dirs = append(dirs, w.Path)
	}
	for _, dir := range dirs {
		if dir != "" && within(resolve(dir), o.StateDir) {
			return fmt.Errorf("hooks: the state directory %q is inside the repository's %q", o.StateDir, dir)
		}
	}
	return nil
}

func (o Options) store() store { return storeOf(o.StateDir, o.Repo.CommonDir) }

func propose(o Options) (*Proposal, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	p := &Proposal{o: o, st: o.store()}
	if p.now, err = readTree(o.Repo.Root, o.Source); err != nil {
		var se *SourceError
		if !o.Adopt || !errors.As(err, &se) || !se.Missing {
			return nil, err
		}
	}
	if o.Adopt {
		if err := p.addAdopted(); err != nil {
			return nil, err
		}
	}
	rec, err := p.st.load(o.Repo.Ino)
	if err != nil || rec == nil {
		return p, err
	}
	if p.base, err = p.st.current(); err != nil || p.base == "" {
		return p, err
	}
	// A copy that is not as approved counts as nothing, so that all is shown.
	if t, err := p.st.approved(p.base); err == nil {
		p.approved = t
	}
	return p, nil
}

// Differs lists what approving would change, by path.
func (p *Proposal) Differs() []Difference { return compare(p.approved, p.now) }

// Diff returns the same as a unified difference, safe to print on a terminal;
// empty when nothing differs.
func (p *Proposal) Diff() string { return unified(p.approved, p.now, p.o.Source) }

// Install installs as [Install] does, approving the proposal where nothing is
// approved yet.
func (p *Proposal) Install() (State, error) { return p.install() }

// Approve makes what the proposal read the hooks that run. Failures:
// *NotInstalledError, *StaleError.
func (p *Proposal) Approve() (State, error) {
	if rec, err := p.st.load(p.o.Repo.Ino); err != nil || rec == nil {
		return State{}, errors.Join(err, &NotInstalledError{Repo: p.o.Repo.Root})
	}
	unlock, rec, err := p.begin()
	if err != nil {
		return State{}, err
	}
	defer unlock()
	if rec == nil {
		return State{}, &NotInstalledError{Repo: p.o.Repo.Root}
	}
	if err := p.st.write(p.now, p.o.Source); err != nil {
		return State{}, err
	}
	if rec.Source != p.o.Source {
		rec.Source = p.o.Source
		if err := p.st.save(*rec); err != nil {
			return State{}, err
		}
	}
	return status(p.o)
}

// begin locks the store and makes sure that what is in force is what the
// proposal was compared with.
func (p *Proposal) begin() (unlock func(), rec *record, err error) {
	if _, err := os.Lstat(p.st.dir); errors.Is(err, os.ErrNotExist) && p.base != "" {
		return nil, nil, &StaleError{Dir: p.st.dir}
	}
	if unlock, err = p.st.lock(); err != nil {
		return nil, nil, err
	}
	rec, err = p.st.load(p.o.Repo.Ino)
	base := ""
	if err == nil && rec != nil {
		base, err = p.st.current()
	}
	if err == nil && base != p.base {
		err = &StaleError{Dir: p.st.dir}
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return unlock, rec, nil
}

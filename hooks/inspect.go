package hooks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agentguard/guard/git"
)

// setting is what git's configuration says about hooks.
type setting struct {
	path   git.HooksPath
	values []git.ConfigValue
	local  *string // last value in the repository's own file, nil for none
}

func look(o Options) (setting, error) {
	var s setting
	var err error
	if s.values, err = o.Repo.Config(o.Home, o.XDG); err != nil {
		return s, fmt.Errorf("reading git's configuration: %w", err)
	}
	if s.path, err = o.Repo.HooksPath(o.Home, o.XDG); err != nil {
		return s, fmt.Errorf("reading %s: %w", key, err)
	}
	for _, v := range s.values {
		if v.Key == "core.hookspath" && v.Scope == git.ScopeLocal && v.Origin == configFile(o.Repo) {
			value := v.Value
			s.local = &value
		}
	}
	return s, nil
}

// relativeGlobal returns a value that makes every clone's own files its hooks.
func (s setting) relativeGlobal() *git.ConfigValue {
	for _, v := range s.values {
		everywhere := v.Scope == git.ScopeSystem || v.Scope == git.ScopeGlobal
		if v.Key == "core.hookspath" && everywhere && v.Value != "" && relativePath(v.Value) {
			return &v
		}
	}
	return nil
}

// relativePath tells whether git takes a path value as relative: it knows
// "~/", "~user/" and "%(prefix)/" at the beginning.
func relativePath(value string) bool {
	return !filepath.IsAbs(value) && !strings.HasPrefix(value, "~") && !strings.HasPrefix(value, "%(prefix)/")
}

// previous returns what Uninstall is to restore.
func (s setting) previous(st store) *string {
	if s.local == nil || within(st.dir, *s.local) {
		return nil // left over from an install whose record is gone
	}
	return s.local
}

func status(o Options) (State, error) {
	o, err := o.normal()
	if err != nil {
		return State{}, err
	}
	st := o.store()
	found, err := look(o)
	if err != nil {
		return State{}, err
	}
	s := State{
		Dir: st.dir, Expected: st.hooksPath(),
		Value: found.path.Value, Path: found.path.Dir, Scope: found.path.Scope, Origin: found.path.Origin,
	}
	rec, err := st.load(o.Repo.Ino)
	if err != nil {
		return s, err
	}
	s.Installed = rec != nil
	if v := found.relativeGlobal(); v != nil {
		s.Conflicts = append(s.Conflicts, Conflict{
			Kind: RelativeGlobal, Path: v.Origin, Detail: (&RelativeGlobalError{v.Value, v.Origin}).Error(),
		})
	}
	approved, err := s.judgeCopies(st, o.Source, rec)
	if err != nil {
		return s, err
	}
	s.judgeSetting(found)
	s.Managed = s.Installed && s.Value == s.Expected && !s.has(Altered)
	return s, s.judgeRest(o, found, rec, approved)
}

func (s *State) has(kind ConflictKind) bool {
	for _, c := range s.Conflicts {
		if c.Kind == kind {
			return true
		}
	}
	return false
}

// judgeCopies checks what would run against what was written, and returns the
// approved tree.
func (s *State) judgeCopies(st store, source string, rec *record) (tree, error) {
	if rec == nil {
		return nil, nil
	}
	altered := func(why string) {
		s.Conflicts = append(s.Conflicts, Conflict{Kind: Altered, Path: st.dir, Detail: why})
	}
	version, err := st.current()
	if err != nil {
		altered(err.Error())
		return nil, nil
	}
	if version == "" {
		altered("there are no approved copies in " + st.dir)
		return nil, nil
	}
	approved, err := st.approved(version)
	if err != nil {
		altered(err.Error())
		return nil, nil
	}
	if why := st.checkShims(version, approved, source); why != "" {
		altered(why)
	}
	s.Hooks = approved.hooks()
	return approved, nil
}

// judgeSetting tells when git does not take its hooks from the shims.
func (s *State) judgeSetting(found setting) {
	if !s.Installed || s.Value == s.Expected {
		return
	}
	if found.path.Scope == git.ScopeWorktree {
		s.Conflicts = append(s.Conflicts, worktreeConflict(found.path))
		return
	}
	detail := key + " is no longer set, so the approved hooks do not run"
	if found.path.Set {
		detail = fmt.Sprintf("%s is %q from %s, so the approved hooks do not run", key, found.path.Value, found.path.Origin)
	}
	s.Conflicts = append(s.Conflicts, Conflict{
		Kind: Repointed, Path: found.path.Dir, Manager: managerOfDir(found.path.Dir), Detail: detail,
	})
}

func worktreeConflict(p git.HooksPath) Conflict {
	return Conflict{
		Kind: WorktreeScope, Path: p.Origin, Manager: managerOfDir(p.Dir),
		Detail: fmt.Sprintf("%s is %q in %s, which decides in this work tree", key, p.Value, p.Origin),
	}
}

// judgeRest compares the source and looks for hooks that do not run.
func (s *State) judgeRest(o Options, found setting, rec *record, approved tree) error {
	now, err := readTree(o.Repo.Root, o.Source)
	var se *SourceError
	switch {
	case errors.As(err, &se) && se.Missing:
		if rec != nil {
			s.Differs = []Difference{{Kind: Removed}}
		}
	case errors.As(err, &se):
		rel, rerr := filepath.Rel(filepath.Join(o.Repo.Root, o.Source), se.Path)
		if rerr != nil || rel == "." {
			rel = ""
		}
		s.Differs = []Difference{{Path: rel, Kind: Unreadable, Why: se.Why}}
	case err != nil:
		return err
	case rec != nil:
		s.Differs = compare(approved, now)
	}
	for _, f := range now {
		if known(f.path) && !f.dir && !f.exec {
			s.Conflicts = append(s.Conflicts, Conflict{
				Kind: NotExecutable, Path: filepath.Join(o.Source, f.path),
				Detail: fmt.Sprintf("%s is not executable, so git ignores it", filepath.Join(o.Source, f.path)),
			})
		}
	}
	s.judgeConfigHooks(found)
	for _, dir := range s.sleepingDirs(o, rec) {
		others, err := otherHooks(dir, approved)
		if err != nil {
			return err
		}
		s.Conflicts = append(s.Conflicts, others...)
	}
	return nil
}

// judgeConfigHooks tells of hooks in the repository's configuration, which run
// whatever the hooks directory holds and can switch the others off.
func (s *State) judgeConfigHooks(found setting) {
	for _, v := range found.values {
		local := v.Scope == git.ScopeLocal || v.Scope == git.ScopeWorktree
		if local && strings.HasPrefix(v.Key, "hook.") {
			s.Conflicts = append(s.Conflicts, Conflict{
				Kind: ConfigHook, Path: v.Origin,
				Detail: fmt.Sprintf("%s is set in %s:%d", visible(v.Key), v.Origin, v.Line),
			})
		}
	}
}

// sleepingDirs are the directories whose hooks do not run because of the
// shims: the default one and the one that was set before.
func (s *State) sleepingDirs(o Options, rec *record) []string {
	if rec == nil || !s.Managed {
		return nil
	}
	dirs := []string{filepath.Join(o.Repo.CommonDir, "hooks")}
	source := filepath.Join(o.Repo.Root, o.Source)
	if rec.Previous != nil && *rec.Previous != "" {
		dir := *rec.Previous
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(o.Repo.Root, dir)
		}
		if dir = filepath.Clean(dir); dir != source && dir != dirs[0] {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// otherHooks lists the hooks in dir that are not, word for word, in t.
func otherHooks(dir string, t tree) ([]Conflict, error) {
	names, err := hookFiles(dir)
	if err != nil {
		return nil, err
	}
	var list []Conflict
	for _, name := range names {
		at := filepath.Join(dir, name)
		data, err := readSmall(at)
		if mine, ok := t.find(name); ok && err == nil && string(mine.data) == string(data) {
			continue
		}
		list = append(list, Conflict{
			Kind: OtherHooks, Path: at, Manager: managerOf(data),
			Detail: fmt.Sprintf("%s does not run when git takes its hooks from agentguard's", at),
		})
	}
	return list, nil
}

// hookFiles lists the executable files in dir that git would run as hooks. A
// directory that is not there holds none.
func hookFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing hooks: %w", err)
	}
	var names []string
	for _, e := range entries {
		// A hook may well be a link: git follows it.
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err == nil && known(e.Name()) && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

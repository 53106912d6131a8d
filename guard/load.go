package guard

import (
	"fmt"
	"path/filepath"

	"agentguard/guard/policy"
	"agentguard/guard/surface"
)

// loadPolicy reads the user's and the repository's policy for w. The
// repository's file widens only what the user said yes to.
func (g *Guard) loadPolicy(w *Workspace, flags policy.Flags) (*policy.Policy, error) {
	user, err := policy.ReadSource(filepath.Join(w.dirs.config, "config.yaml"), "config.yaml")
	if err != nil {
		return nil, err
	}
	repo, err := policy.ReadSource(filepath.Join(w.Root, policy.FileName), policy.FileName)
	if err != nil {
		return nil, err
	}
	trusted := false
	if repo != nil {
		if trusted, err = w.trust().Trusted(w.ID, repo); err != nil {
			return nil, err
		}
	}
	return policy.Load(policy.Input{
		Home: g.home(), WorkspaceRoot: w.Root, Own: w.dirs.own(),
		User: user, Repo: repo, RepoTrusted: trusted, Flags: flags,
	})
}

func (w *Workspace) trust() policy.TrustStore {
	return policy.TrustStore{Dir: filepath.Join(w.dirs.state, "trust")}
}

// matcher compiles the catalogue under p, with the hooks directories that
// git's configuration names in addition.
func (w *Workspace) matcher(p *policy.Policy, hooksDirs []string) (*surface.Matcher, error) {
	return compile(w.rules(p, hooksDirs))
}

func compile(rules surface.Rules) (*surface.Matcher, error) {
	m, err := surface.NewMatcher(surface.Catalogue(), rules)
	if err != nil {
		return nil, fmt.Errorf("the policy's globs: %w", err)
	}
	return m, nil
}

// rules is what the policy changes about the catalogue.
func (w *Workspace) rules(p *policy.Policy, hooksDirs []string) surface.Rules {
	rules := surface.Rules{Profile: surface.Strict}
	if p.Sandbox.Profile == policy.Balanced {
		rules.Profile = surface.Balanced
	}
	for _, v := range p.Sandbox.Protect {
		rules.Protect = append(rules.Protect, v.Text)
	}
	for _, v := range p.Sandbox.Unprotect {
		rules.Unprotect = append(rules.Unprotect, v.Text)
	}
	for _, dir := range append(hooksDirs, filepath.Join(w.Root, p.Hooks.Path)) {
		if dir != w.Root && within(dir, w.Root) {
			rules.Protect = append(rules.Protect, "/"+literalGlob(dir[len(w.Root)+1:]))
		}
	}
	return rules
}

// literalGlob makes a path a glob that matches just it.
func literalGlob(path string) string {
	var b []byte
	for i := range len(path) {
		switch c := path[i]; c {
		case '*', '?', '[', ']', '\\', '!', '{', '}':
			b = append(b, '\\', c)
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

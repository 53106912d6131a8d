package git

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Scope is where a configuration value comes from.
type Scope uint8

// The scopes, in the order in which git reads them: later ones win. The zero
// value is no scope.
const (
	ScopeSystem Scope = iota + 1
	ScopeGlobal
	ScopeLocal
	ScopeWorktree
)

// String returns git's word for s.
func (s Scope) String() string {
	switch s {
	case ScopeSystem:
		return "system"
	case ScopeGlobal:
		return "global"
	case ScopeLocal:
		return "local"
	case ScopeWorktree:
		return "worktree"
	}
	return "none"
}

// systemConfig are the places where builds of git keep the system's file. A
// file that this machine's git does not read costs a value too many, never one
// too few.
var systemConfig = [...]string{
	"/etc/gitconfig",           // distributions
	"/usr/local/etc/gitconfig", // built from source, Homebrew on Intel
	"/opt/homebrew/etc/gitconfig",
	"/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig", // Apple
	"/Applications/Xcode.app/Contents/Developer/usr/share/git-core/gitconfig",
}

// maxIncludeDepth is git's own limit.
const maxIncludeDepth = 10

// Config returns every value git would read in this work tree, in its order,
// includes followed where their condition holds. home and xdg are the user's
// HOME and XDG_CONFIG_HOME; an empty home leaves the user's files out, an
// empty xdg stands for home/.config.
func (r *Repo) Config(home, xdg string) ([]ConfigValue, error) {
	c := &configReader{repo: r, home: home}
	return c.readTwice(xdg)
}

// configReader collects values over all scopes.
type configReader struct {
	repo   *Repo
	home   string
	every  bool     // follow includes whatever their condition
	urls   []string // of remotes, for hasconfig conditions
	values []ConfigValue
	files  int // read so far: a tree of includes is wide as well as deep
}

// readTwice reads once to learn the remotes' addresses, which a hasconfig
// condition asks for, and again only when there is such a condition.
func (c *configReader) readTwice(xdg string) ([]ConfigValue, error) {
	if err := c.readScopes(xdg); err != nil {
		return nil, err
	}
	again := false
	for _, v := range c.values {
		if strings.HasPrefix(v.Key, "remote.") && strings.HasSuffix(v.Key, ".url") {
			c.urls = append(c.urls, v.Value)
		}
		again = again || strings.HasPrefix(v.Key, "includeif.hasconfig:")
	}
	if !again || c.every {
		return c.values, nil
	}
	c.values, c.files = nil, 0
	err := c.readScopes(xdg)
	return c.values, err
}

func (c *configReader) readScopes(xdg string) error {
	if xdg == "" && c.home != "" {
		xdg = filepath.Join(c.home, ".config")
	}
	type source struct {
		file  string
		scope Scope
	}
	var sources []source
	for _, f := range systemConfig {
		sources = append(sources, source{f, ScopeSystem})
	}
	if xdg != "" {
		sources = append(sources, source{filepath.Join(xdg, "git", "config"), ScopeGlobal})
	}
	if c.home != "" {
		sources = append(sources, source{filepath.Join(c.home, ".gitconfig"), ScopeGlobal})
	}
	sources = append(sources, source{filepath.Join(c.repo.CommonDir, "config"), ScopeLocal})
	if c.repo.worktreeConfig {
		sources = append(sources, source{filepath.Join(c.repo.GitDir, "config.worktree"), ScopeWorktree})
	}
	for _, s := range sources {
		if err := c.readFile(s.file, s.scope, 0); err != nil {
			return err
		}
	}
	return nil
}

// readFile adds the values of one file and of what it includes. An absent file
// has none.
func (c *configReader) readFile(file string, scope Scope, depth int) error {
	if c.files++; c.files > 1000 || depth > maxIncludeDepth {
		return &ConfigError{File: file, Line: 1, Why: "it is included too deeply or too often"}
	}
	own := depth == 0 && scope >= ScopeLocal // an include may be a link: git follows it
	values, err := readConfigFile(file, !own)
	if isNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, v := range values {
		v.Scope = scope
		c.values = append(c.values, v)
		cond, isInclude := includeCondition(v)
		if !isInclude {
			continue
		}
		if holds, err := c.holds(cond, v); err != nil || !holds {
			if err != nil {
				return err
			}
			continue
		}
		target, err := c.expand(v)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(file), target)
		}
		if err := c.readFile(target, scope, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// includeCondition tells whether v includes a file and under which condition,
// empty for none.
func includeCondition(v ConfigValue) (cond string, ok bool) {
	if v.Key == "include.path" {
		return "", true
	}
	rest, ok := strings.CutPrefix(v.Key, "includeif.")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, ".path")
}

// expand returns a path value with "~/" replaced.
func (c *configReader) expand(v ConfigValue) (string, error) {
	fail := func(why string) (string, error) {
		return "", &ConfigError{File: v.Origin, Line: v.Line, Why: fmt.Sprintf("%s %s", v.Key, why)}
	}
	p := v.Value
	switch {
	case v.NoValue:
		return fail("has no value")
	case strings.HasPrefix(p, "%(") || strings.HasPrefix(p, ":("):
		return fail("uses a form of path that is not read here")
	case p == "~" || strings.HasPrefix(p, "~/"):
		if c.home == "" {
			return fail("asks for the home directory, which is not known")
		}
		return c.home + p[1:], nil
	case strings.HasPrefix(p, "~"):
		return fail("names another user's home directory, which is not read here")
	}
	return p, nil
}

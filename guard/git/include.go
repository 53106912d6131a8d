package git

import (
	"path/filepath"
	"strings"
)

// holds tells whether the condition of an include holds. A condition that is
// not known holds for nobody, as in git.
func (c *configReader) holds(cond string, v ConfigValue) (bool, error) {
	if cond == "" || c.every {
		return true, nil
	}
	kind, pattern, _ := strings.Cut(cond, ":")
	switch kind {
	case "gitdir", "gitdir/i":
		return c.gitDirMatches(pattern, v, kind == "gitdir/i")
	case "onbranch":
		branch, err := c.repo.branch()
		if err != nil || branch == "" {
			return false, err
		}
		return wildmatch(starstar(pattern), branch, false)
	case "hasconfig":
		url, ok := strings.CutPrefix(pattern, "remote.*.url:")
		if !ok {
			return false, nil
		}
		for _, u := range c.urls {
			if hit, err := wildmatch(url, u, false); hit || err != nil {
				return hit, err
			}
		}
	}
	return false, nil
}

// gitDirMatches matches the git directory, resolved, as git's
// include_by_gitdir does. Git tries the unresolved path as well, which depends
// on how the user came to the directory.
func (c *configReader) gitDirMatches(pattern string, v ConfigValue, fold bool) (bool, error) {
	text, prefix := c.repo.GitDir, ""
	switch {
	case pattern == "~" || strings.HasPrefix(pattern, "~/"):
		home := c.home
		if real, err := filepath.EvalSymlinks(home); err == nil {
			home = real
		}
		pattern = home + pattern[1:]
	case strings.HasPrefix(pattern, "./"):
		file, err := filepath.EvalSymlinks(v.Origin)
		if err != nil {
			return false, err
		}
		prefix, pattern = filepath.Dir(file)+"/", pattern[2:]
	}
	if prefix == "" && !filepath.IsAbs(pattern) {
		pattern = "**/" + pattern
	}
	// The prefix is compared literally: a wildcard in it means nothing.
	if len(text) < len(prefix) {
		return false, nil
	}
	head := text[:len(prefix)]
	if head != prefix && !(fold && strings.EqualFold(head, prefix)) {
		return false, nil
	}
	return wildmatch(starstar(pattern), text[len(prefix):], fold)
}

func starstar(pattern string) string {
	if strings.HasSuffix(pattern, "/") {
		return pattern + "**"
	}
	return pattern
}

// branch returns the name of the checked-out branch without refs/heads/,
// empty when HEAD is detached.
func (r *Repo) branch() (string, error) {
	data, err := readIn(r.git, "HEAD", maxPointer)
	if err != nil {
		return "", err
	}
	_, target, err := parseRef(data)
	if err != nil {
		return "", err
	}
	name, _ := strings.CutPrefix(target, "refs/heads/")
	if name == target {
		return "", nil
	}
	return name, nil
}

package surface

import (
	"bytes"
	"strconv"
	"strings"
)

// configPart returns the settings of a git configuration that may execute,
// redirect, hide or weaken something, one to a line and in the order of the
// file, which counts: the last of a key wins, and lists add up. Everything
// counts but the settings of [harmless]: git learns new keys with every
// version, and a key nobody thought of is better asked about.
func configPart(content []byte) (part []byte, ok bool) {
	all, ok := parseConfig(content)
	if !ok {
		return nil, false
	}
	remotes := map[string]bool{".": true}
	for _, s := range all {
		if s.section == "remote" && s.key == "url" {
			remotes[s.sub] = true
		}
	}
	for _, s := range all {
		if !s.harmless(remotes) {
			part = append(append(part, s.String()...), '\n')
		}
	}
	return part, true
}

// setting is one line of a git configuration.
type setting struct {
	section string // lower case
	sub     string // as written, case counts
	hasSub  bool
	key     string // lower case
	value   string
	bare    bool // no "=", which means true
}

// String returns the setting in git's canonical form.
func (s setting) String() string {
	name := s.section
	if s.hasSub {
		name += "." + strconv.Quote(s.sub)
	}
	name += "." + s.key
	if s.bare {
		return name
	}
	return name + "=" + strconv.Quote(s.value)
}

// harmless tells what a person or git writes as a matter of course, and what
// can do no more than that: names of people, the format of the repository,
// which branch follows which branch of a remote that this file defines.
func (s setting) harmless(remotes map[string]bool) bool {
	if s.bare {
		return false
	}
	if s.section == "branch" && s.hasSub {
		switch s.key {
		case "remote":
			return remotes[s.value]
		case "merge":
			return strings.HasPrefix(s.value, "refs/heads/")
		case "description":
			return true
		case "rebase":
			return s.value == "true" || s.value == "false"
		}
		return false
	}
	if s.hasSub {
		return false
	}
	switch s.section + "." + s.key {
	case "user.name", "user.email", "author.name", "author.email", "committer.name", "committer.email":
		return true
	case "core.repositoryformatversion":
		return s.value == "0" || s.value == "1"
	case "core.bare":
		return s.value == "false"
	case "core.filemode", "core.logallrefupdates", "core.precomposeunicode":
		return s.value == "true"
	}
	return !readSections[s.section] && plainWord(s.value)
}

// readSections are the sections that git up to 2.55 reads, and those of
// programs beside git that take commands or paths from its configuration. A
// plain word in any other section is somebody's note.
var readSections = map[string]bool{
	// git
	"add": true, "advice": true, "alias": true, "am": true, "apply": true, "attr": true, "author": true,
	"blame": true, "branch": true, "browser": true, "bundle": true, "checkout": true, "clean": true,
	"clone": true, "color": true, "column": true, "commit": true, "commitgraph": true, "committer": true,
	"completion": true, "core": true, "credential": true, "credentialcache": true, "credentialstore": true,
	"diff": true, "difftool": true, "extensions": true, "fastimport": true, "feature": true, "fetch": true,
	"filter": true, "fmt": true, "format": true, "fsck": true, "fsmonitor": true, "gc": true, "gitcvs": true,
	"gitweb": true, "gpg": true, "grep": true, "gui": true, "guitool": true, "help": true, "hook": true,
	"http": true, "i18n": true, "imap": true, "include": true, "includeif": true, "index": true, "init": true,
	"instaweb": true, "interactive": true, "log": true, "lsrefs": true, "mailinfo": true, "mailmap": true,
	"maintenance": true, "man": true, "merge": true, "mergetool": true, "notes": true, "pack": true,
	"pager": true, "pretty": true, "promisor": true, "protocol": true, "pull": true, "push": true,
	"rebase": true, "receive": true, "reftable": true, "remote": true, "remotes": true, "repack": true,
	"replay": true, "rerere": true, "revert": true, "safe": true, "sendemail": true, "sequence": true,
	"showbranch": true, "sparse": true, "splitindex": true, "ssh": true, "stash": true, "status": true,
	"submodule": true, "svn": true, "svn-remote": true, "tag": true, "tar": true, "trace2": true,
	"transfer": true, "trailer": true, "uploadarchive": true, "uploadpack": true, "uploadpackfilter": true,
	"url": true, "user": true, "versionsort": true, "volatile": true, "web": true, "worktree": true,
	// others
	"annex": true, "alternaterefs": true, "delta": true, "gitflow": true, "gitk": true, "gitbutler": true,
	"git-p4": true, "hub": true, "ghq": true, "jj": true, "lazygit": true, "lfs": true, "overcommit": true,
	"reviewboard": true, "secrets": true, "stgit": true, "tig": true, "magit": true, "lefthook": true,
	"husky": true, "pre-commit": true, "absorb": true, "branchless": true, "town": true, "git-town": true,
	"machete": true, "bug": true, "crypt": true, "filter-repo": true, "scalar": true, "vcs": true,
	"cvsimport": true,
}

// plainWord says that a value can be neither a command nor a path.
func plainWord(v string) bool {
	for i := range len(v) {
		if !alnum(v[i]) && v[i] != '-' && v[i] != '_' {
			return false
		}
	}
	return len(v) <= 64
}

// parseConfig reads what git's own parser reads, and answers false for what
// that refuses, and for what it accepts but nobody writes.
func parseConfig(content []byte) ([]setting, bool) {
	if bytes.IndexByte(content, 0) >= 0 || bytes.HasPrefix(content, []byte("\ufeff")) {
		return nil, false
	}
	p := configParser{text: strings.ReplaceAll(string(content), "\r\n", "\n")}
	var all []setting
	for !p.end() {
		switch c := p.text[p.at]; {
		case c == '\n' || c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f':
			p.at++
		case c == '#' || c == ';':
			p.skipLine()
		case c == '[':
			if !p.header() {
				return nil, false
			}
		default:
			s, ok := p.setting()
			if !ok {
				return nil, false
			}
			all = append(all, s)
		}
	}
	return all, true
}

type configParser struct {
	text string
	at   int
	here setting // the section that settings belong to
}

func (p *configParser) end() bool { return p.at >= len(p.text) }

func (p *configParser) skipLine() {
	if i := strings.IndexByte(p.text[p.at:], '\n'); i >= 0 {
		p.at += i
		return
	}
	p.at = len(p.text)
}

// header reads "[section]", "[section.sub]" or "[section \"sub\"]".
func (p *configParser) header() bool {
	p.at++
	start := p.at
	for !p.end() && (alnum(p.text[p.at]) || p.text[p.at] == '-' || p.text[p.at] == '.') {
		p.at++
	}
	name := strings.ToLower(p.text[start:p.at])
	if p.end() || name == "" {
		return false
	}
	p.here = setting{section: name}
	if i := strings.IndexByte(name, '.'); i >= 0 {
		p.here.section, p.here.sub, p.here.hasSub = name[:i], name[i+1:], true
	}
	if p.text[p.at] == ']' {
		p.at++
		return p.here.section != ""
	}
	for !p.end() && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
	if p.end() || p.text[p.at] != '"' || p.here.hasSub {
		return false
	}
	p.at++
	return p.subsection()
}

func (p *configParser) subsection() bool {
	var sub strings.Builder
	for !p.end() {
		c := p.text[p.at]
		p.at++
		switch c {
		case '\n':
			return false
		case '"':
			p.here.sub, p.here.hasSub = sub.String(), true
			if p.end() || p.text[p.at] != ']' {
				return false
			}
			p.at++
			return true
		case '\\':
			if p.end() || p.text[p.at] == '\n' {
				return false
			}
			sub.WriteByte(p.text[p.at])
			p.at++
		default:
			sub.WriteByte(c)
		}
	}
	return false
}

// setting reads "key", "key = value".
func (p *configParser) setting() (setting, bool) {
	s := p.here
	start := p.at
	for !p.end() && (alnum(p.text[p.at]) || p.text[p.at] == '-') {
		p.at++
	}
	s.key = strings.ToLower(p.text[start:p.at])
	if s.section == "" || s.key == "" || s.key[0] < 'a' || 'z' < s.key[0] {
		return s, false
	}
	for !p.end() && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
	if p.end() || p.text[p.at] == '\n' {
		s.bare = true
		return s, true
	}
	if p.text[p.at] != '=' {
		return s, false
	}
	p.at++
	var ok bool
	s.value, ok = p.value()
	return s, ok
}

// value reads to the end of the line: quotes, escapes, continued lines,
// comments; space at both ends goes. Where versions of git disagree, it
// refuses: control characters, space at the end of a continued value.
func (p *configParser) value() (string, bool) {
	var v []byte
	kept := 0 // of v, without space at the end
	quoted, continued := false, false
	for !p.end() {
		c := p.text[p.at]
		p.at++
		switch {
		case c == '\n':
			p.at--
			return string(v[:kept]), !quoted && (!continued || kept == len(v))
		case !quoted && (c == '#' || c == ';'):
			p.skipLine()
			return string(v[:kept]), !continued || kept == len(v)
		case c < ' ' && c != '\t':
			return "", false
		case !quoted && (c == ' ' || c == '\t'):
			if kept > 0 {
				v = append(v, c)
			}
		case c == '"':
			quoted = !quoted
		case c == '\\':
			b, ok := p.escape()
			if !ok {
				return "", false
			}
			v = append(v, b...)
			if len(b) > 0 {
				kept = len(v)
			} else {
				continued = true
			}
		default:
			v = append(v, c)
			kept = len(v)
		}
	}
	return string(v[:kept]), !quoted && !continued
}

func (p *configParser) escape() (string, bool) {
	if p.end() {
		return "", false
	}
	c := p.text[p.at]
	p.at++
	switch c {
	case '\n':
		return "", true
	case 't':
		return "\t", true
	case 'b':
		return "\b", true
	case 'n':
		return "\n", true
	case '\\', '"':
		return string(c), true
	}
	return "", false
}

func alnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

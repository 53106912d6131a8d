package guard

import (
	"fmt"
	"path/filepath"
	"strings"
)

// executingKeys are the last words of the keys of git's configuration whose
// value is a command or a file of commands; what is looked for in them is a
// path of the workspace.
var executingKeys = map[string]bool{
	"askpass": true, "attributesfile": true, "clean": true, "cmd": true, "command": true, "defaultkeycommand": true,
	"driver": true, "editor": true, "excludesfile": false, "external": true, "fsmonitor": true, "helper": true,
	"pager": true, "process": true, "program": true, "proxycommand": true, "receivepack": true, "smudge": true,
	"sshcommand": true, "textconv": true, "uploadpack": true, "vcs": true, "templatedir": true, "packobjectshook": true,
	"recentobjectshook": true, "alternaterefscommand": true, "gitproxy": true, "difffilter": true, "sendmailcmd": true,
	"path": true, "allowedsignersfile": true, "tunnel": true, "browser": true, "hookspath": false, // allHooksDirs has it
}

// configTargets are the paths of the workspace that the user's git would
// execute or read commands from because its configuration, which a run cannot
// change, points there: included files, drivers, the monitor, helpers, aliases.
// They are frozen whether they are there or not.
func (g *Guard) configTargets(w *Workspace) ([]string, error) {
	values, err := w.Repo.Config(g.home(), g.Env["XDG_CONFIG_HOME"])
	if err != nil {
		return nil, fmt.Errorf("reading git's configuration: %w", err)
	}
	var out []string
	add := func(path string) {
		if path = filepath.Clean(path); path != w.Root && within(path, w.Root) && !within(path, filepath.Join(w.Root, ".git")) {
			out = append(out, path)
		}
	}
	for _, v := range values {
		section, _, _ := strings.Cut(v.Key, ".")
		last := v.Key[strings.LastIndexByte(v.Key, '.')+1:]
		switch {
		case section == "include" || section == "includeif":
			add(g.expand(v.Value, filepath.Dir(v.Origin)))
		case section == "alias" && strings.HasPrefix(v.Value, "!"), executingKeys[last]:
			for _, word := range commandWords(v.Value) {
				add(g.expand(word, w.Root))
			}
		}
	}
	return out, nil
}

// expand makes a path of a configuration absolute.
func (g *Guard) expand(path, dir string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(g.home(), rest)
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// commandWords are the words of a command that could be paths. Only words with
// a slash, or the first one when it has a dot, are taken: "cat" is no file of
// the workspace, "./tool" and "tools/x.sh" are.
func commandWords(command string) []string {
	var out []string
	for i, word := range strings.FieldsFunc(strings.TrimPrefix(command, "!"), func(r rune) bool { return strings.ContainsRune(" \t\n;|&()<>\"'`$", r) }) {
		if strings.Contains(word, "/") && !strings.Contains(word, "://") || i == 0 && strings.Contains(word, ".") {
			out = append(out, word)
		}
	}
	return out
}

package guard

import (
	"maps"
	"slices"
	"strings"

	"agentguard/guard/policy"
)

// passed are the names that reach a command from the caller's environment
// without being asked for: how to talk to the person, and nothing that is a
// key, a path of the host or a way to load code.
var passed = map[string]bool{
	"TERM": true, "COLORTERM": true, "NO_COLOR": true, "FORCE_COLOR": true, "CLICOLOR": true,
	"COLUMNS": true, "LINES": true, "TERM_PROGRAM": true, "TERM_PROGRAM_VERSION": true,
	"LANG": true, "LANGUAGE": true, "TZ": true,
	"USER": true, "LOGNAME": true, "SHELL": true, "PATH": true,
	"CI": true, "DEBIAN_FRONTEND": true,
}

// environ returns the whole environment of a command: the allow-list, what the
// policy passes and sets, what the proxy needs, and the run's own directories.
func (g *Guard) environ(p *policy.Policy, home string, proxy []string) []string {
	env := map[string]string{}
	for name, value := range g.Env {
		if passed[name] || strings.HasPrefix(name, "LC_") {
			env[name] = value
		}
	}
	for _, v := range p.Sandbox.Env.Pass {
		if value, ok := g.Env[v.Text]; ok {
			env[v.Text] = value
		}
	}
	if env["PATH"] == "" {
		env["PATH"] = "/usr/local/bin:/usr/bin:/bin"
	}
	env["HOME"], env["TMPDIR"], env["PWD"] = home, "/tmp", g.PWD
	env["AGENTGUARD"] = "1" // so that a tool can tell that it is inside
	// Where a tool would otherwise keep its cache outside ~/.cache.
	env["GOMODCACHE"] = home + "/.cache/go-mod"
	env["npm_config_cache"] = home + "/.cache/npm"
	env["npm_config_update_notifier"] = "false"
	env["CARGO_HOME"] = home + "/.cache/cargo"
	env["GRADLE_USER_HOME"] = home + "/.cache/gradle"
	for _, kv := range proxy {
		if name, value, ok := strings.Cut(kv, "="); ok {
			env[name] = value
		}
	}
	maps.Copy(env, p.Sandbox.Env.Set)
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

package policy

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

// shown is the JSON form of `policy show`.
type shown struct {
	Digest   string        `json:"digest"`
	Layers   []layerView   `json:"layers"`
	Policy   view          `json:"policy"`
	Pending  []pendingView `json:"pending"`
	Warnings []string      `json:"warnings"`
}

type layerView struct {
	Name    string `json:"name"`
	SHA256  string `json:"sha256"`
	Repo    bool   `json:"repository"`
	Trusted bool   `json:"trusted"`
}

type pendingView struct {
	At    string `json:"at"`
	Key   string `json:"key"`
	Value string `json:"value"`
	Error string `json:"error,omitempty"` // why a yes would not grant it either
}

// MarshalJSON gives the whole effective policy. Values of environment
// variables may be secrets and are left out.
func (p *Policy) MarshalJSON() ([]byte, error) {
	s := shown{Digest: p.digest, Layers: []layerView{}, Policy: p.view(), Pending: []pendingView{}, Warnings: append([]string{}, p.warnings...)}
	set := make(map[string]string, len(s.Policy.EnvSet))
	for name := range s.Policy.EnvSet {
		set[name] = "(not shown)"
	}
	s.Policy.EnvSet = set
	for _, l := range p.Layers {
		s.Layers = append(s.Layers, layerView(l))
	}
	for _, w := range p.Pending {
		v := pendingView{At: w.Pos.String(), Key: w.Key, Value: w.Text}
		if w.Err != nil {
			v.Error = w.Err.Msg
		}
		s.Pending = append(s.Pending, v)
	}
	return json.Marshal(s)
}

// String prints the whole effective policy: every path, name and host, one a
// line. The same policy prints the same text.
func (p *Policy) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	v := p.view()
	line("policy %s", p.digest)
	for _, l := range p.Layers {
		line("  from %s, sha256 %s, %s", quote(l.Name), l.SHA256, l.standing())
	}
	line("sandbox")
	line("  workspace      %s", v.Workspace)
	line("  profile        %s", v.Profile)
	line("  broker         %s", v.Broker)
	line("  keys           %s", v.Keys)
	writeGrants(line, "read", v.Read)
	writeGrants(line, "write", v.Write)
	writeGrants(line, "sockets", v.Sockets)
	writeWords(line, "protect", v.Protect)
	writeWords(line, "unprotect", v.Unprotect)
	writeWords(line, "env pass", v.EnvPass)
	writeWords(line, "env set", keysOf(v.EnvSet))
	line("egress")
	for _, r := range v.Deny {
		line("  %-14s %s", "deny", r.text())
	}
	for _, r := range v.Allow {
		line("  %-14s %s", "allow", r.text())
	}
	if len(v.Allow) == 0 {
		line("  %-14s %s", "allow", "nothing")
	}
	writeWords(line, "allow private", v.AllowPrivate)
	for _, host := range keysOf(v.Resolve) {
		line("  %-14s %s to %s", "resolve", host, v.Resolve[host])
	}
	line("hooks")
	line("  path           %s", quote(v.HooksPath))
	line("  mode           %s", v.HooksMode)
	p.writeRest(line)
	return b.String()
}

// writeRest prints what waits and what is weak.
func (p *Policy) writeRest(line func(string, ...any)) {
	if len(p.Pending) > 0 {
		line("waiting for a yes")
	}
	for _, w := range p.Pending {
		line("  %s", w)
		if w.Err != nil {
			line("    a yes would not grant it: %s", w.Err.Msg)
		}
	}
	if len(p.warnings) > 0 {
		line("warnings")
	}
	for _, w := range p.warnings {
		line("  %s", w)
	}
}

func (l Layer) standing() string {
	switch {
	case !l.Repo:
		return "the user's own"
	case l.Trusted:
		return "the repository's, trusted"
	}
	return "the repository's, not trusted: it tightens, what it widens waits"
}

func writeGrants(line func(string, ...any), name string, gs []grantView) {
	for _, g := range gs {
		if g.Real != g.Path {
			line("  %-14s %s, which leads to %s", name, quote(g.Path), quote(g.Real))
			continue
		}
		line("  %-14s %s", name, quote(g.Path))
	}
}

func writeWords(line func(string, ...any), name string, words []string) {
	for _, w := range words {
		line("  %-14s %s", name, quote(w))
	}
}

// text prints a rule as one line of words.
func (r ruleView) text() string {
	parts := []string{r.Host}
	if len(r.Ports) == 0 {
		parts = append(parts, "every port")
	} else {
		parts = append(parts, "ports "+strings.Trim(fmt.Sprint(r.Ports), "[]"))
	}
	add := func(name string, words []string) {
		if len(words) > 0 {
			parts = append(parts, name+" "+strings.Join(words, " "))
		}
	}
	add("methods", r.Methods)
	add("paths", r.Paths)
	for _, k := range keysOf(r.Query) {
		parts = append(parts, "query "+quote(k)+"="+quote(r.Query[k]))
	}
	add("private", r.Private)
	return strings.Join(parts, ", ")
}

// weakenings tells what the policy in force makes weaker than the built-in
// one, in a fixed order.
func (p *Policy) weakenings() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	s, e := &p.Sandbox, &p.Egress
	if s.Profile != Strict {
		say("sandbox.profile: %s: build, test and task files are reviewed, not frozen", s.Profile)
	}
	if s.Broker == BrokerOff {
		say("sandbox.broker: off: frozen files that do not exist yet can be created, and are told only afterwards")
	}
	if s.Keys != KeysNone {
		say("sandbox.keys: %s: frozen files may change outside the keys that execute", s.Keys)
	}
	for _, g := range s.Unprotect {
		say("%s: sandbox.unprotect: %s is reviewed, not frozen", g.Pos, quote(g.Text))
	}
	for _, g := range s.Sockets {
		say("%s: sandbox.sockets: the service at %s acts outside the sandbox", g.Pos, quote(g.Path))
	}
	for _, name := range s.Env.Pass {
		if what, ok := loads(name.Text); ok {
			say("%s: sandbox.env.pass: the value of %s makes %s run other code", name.Pos, name.Text, what)
		}
	}
	for _, name := range keysOf(s.Env.Set) {
		if what, ok := loads(name); ok {
			say("sandbox.env.set: the value of %s makes %s run other code", name, what)
		}
	}
	for _, prefix := range e.AllowPrivate {
		say("egress.allow_private: %s", private(prefix))
	}
	for _, r := range e.Allow {
		for _, prefix := range r.Private {
			say("%s: egress.allow: %s: %s", r.Pos, r.Host, private(prefix))
		}
	}
	if p.Hooks.Mode != HooksPinned {
		say("hooks.mode: %s: a checkout of somebody's branch changes the hooks that run", p.Hooks.Mode)
	}
	return out
}

func private(p netip.Prefix) string {
	text := fmt.Sprintf("%s is reachable", p)
	for _, m := range metadataAddrs {
		if p.Contains(m) {
			return text + ", but not the metadata addresses in it"
		}
	}
	return text
}

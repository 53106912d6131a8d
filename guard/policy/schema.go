package policy

import (
	"fmt"
	"math"
	"net/netip"

	"gopkg.in/yaml.v3"

	"agentguard/guard/surface"
)

// document is what one file says, not yet merged with the others.
type document struct {
	sandbox struct {
		workspace               *word[Workspace]
		profile                 *word[Profile]
		broker                  *word[BrokerMode]
		keys                    *word[KeysMode]
		read, write, sockets    []word[string]
		protect, unprotect      []word[string]
		pass                    []word[string]
		set                     []word[pair[string]]
		memory, pids, openFiles *word[int64]
	}
	egress struct {
		allow, deny   []word[Rule]
		allowPrivate  []word[netip.Prefix]
		passthrough   []word[HostPattern]
		resolve       []word[pair[Target]]
		upstreamProxy *word[string]
		upstreamCA    []word[string]
		ask           *word[bool]
	}
	credentials []word[Credential]
	hooksPath   *word[string]
	hooksMode   *word[HooksMode]
	approvals   struct {
		signers, require *word[string]
		notAuthor        *word[bool]
	}
	watch struct {
		quarantine *word[bool]
		exec       []word[string]
	}
	audit struct {
		keep *word[string]
		otlp *word[bool]
	}
	extends []word[string]
}

// pair is one entry of a mapping that has no fixed keys.
type pair[T any] struct {
	name  string
	value T
}

var (
	workspaceWords = map[string]Workspace{"read": WorkspaceRead, "write": WorkspaceWrite, "clone": WorkspaceClone}
	profileWords   = map[string]Profile{"strict": Strict, "balanced": Balanced}
	brokerWords    = map[string]BrokerMode{"require": BrokerRequire, "auto": BrokerAuto, "off": BrokerOff}
	keysWords      = map[string]KeysMode{"none": KeysNone, "benign": KeysBenign}
	hooksWords     = map[string]HooksMode{"pinned": HooksPinned, "tracked": HooksTracked}
)

// document reads the whole schema.
func (w *walker) document(root *yaml.Node) *document {
	d := &document{}
	version := false
	ok := w.mapping(root, "", map[string]field{
		"version": func(v *yaml.Node, key string) { version = true; w.version(v) },
		"sandbox": func(v *yaml.Node, key string) { w.sandbox(d, v, key) },
		"egress":  func(v *yaml.Node, key string) { w.egress(d, v, key) },
		"hooks": func(v *yaml.Node, key string) {
			w.mapping(v, key, map[string]field{
				"path": func(v *yaml.Node, key string) { d.hooksPath = one(w, v, key, checked(w, hooksPath)) },
				"mode": func(v *yaml.Node, key string) { d.hooksMode = one(w, v, key, enum(w, hooksWords)) },
			})
		},
		"credentials": func(v *yaml.Node, key string) { d.credentials = list(w, v, key, w.credential) },
		"approvals":   func(v *yaml.Node, key string) { w.approvals(d, v, key) },
		"watch":       func(v *yaml.Node, key string) { w.watch(d, v, key) },
		"audit":       func(v *yaml.Node, key string) { w.audit(d, v, key) },
		"extends":     func(v *yaml.Node, key string) { d.extends = list(w, v, key, w.text) },
	})
	if ok && !version {
		w.fail(root, "version", `the key "version" is missing: write "version: 1"`)
	}
	return d
}

func (w *walker) version(v *yaml.Node) {
	switch {
	case v.Kind != yaml.ScalarNode || v.Tag != "!!int":
		w.wrongType(v, "version", "the number 1")
	case v.Value != "1":
		w.fail(v, "version", "unknown version %s: this agentguard reads version 1", clip(v.Value))
	}
}

func (w *walker) sandbox(d *document, n *yaml.Node, key string) {
	s := &d.sandbox
	texts := func(to *[]word[string]) field {
		return func(v *yaml.Node, key string) { *to = list(w, v, key, w.text) }
	}
	globs := func(to *[]word[string]) field {
		return func(v *yaml.Node, key string) {
			*to = list(w, v, key, checked(w, func(s string) (string, error) { return s, surface.ParseGlob(s) }))
		}
	}
	w.mapping(n, key, map[string]field{
		"workspace": func(v *yaml.Node, key string) { s.workspace = one(w, v, key, enum(w, workspaceWords)) },
		"profile":   func(v *yaml.Node, key string) { s.profile = one(w, v, key, enum(w, profileWords)) },
		"broker":    func(v *yaml.Node, key string) { s.broker = one(w, v, key, enum(w, brokerWords)) },
		"keys":      func(v *yaml.Node, key string) { s.keys = one(w, v, key, enum(w, keysWords)) },
		"read":      texts(&s.read),
		"write":     texts(&s.write),
		"sockets":   texts(&s.sockets),
		"protect":   globs(&s.protect),
		"unprotect": globs(&s.unprotect),
		"env":       func(v *yaml.Node, key string) { w.env(d, v, key) },
		"limits": func(v *yaml.Node, key string) {
			w.mapping(v, key, map[string]field{
				"memory":     func(v *yaml.Node, key string) { s.memory = one(w, v, key, w.size) },
				"pids":       func(v *yaml.Node, key string) { s.pids = one(w, v, key, w.number(math.MaxInt32)) },
				"open_files": func(v *yaml.Node, key string) { s.openFiles = one(w, v, key, w.number(math.MaxInt32)) },
			})
		},
	})
}

func (w *walker) env(d *document, n *yaml.Node, key string) {
	w.mapping(n, key, map[string]field{
		"pass": func(v *yaml.Node, key string) {
			d.sandbox.pass = list(w, v, key, checked(w, func(s string) (string, error) { return s, checkEnvName(s) }))
		},
		"set": func(v *yaml.Node, key string) {
			w.pairs(v, key, func(k, v *yaml.Node, key string) {
				if err := checkEnvName(k.Value); err != nil {
					w.fail(k, key, "%s: %s", key, err)
					return
				}
				if s, ok := w.anyText(v, join(key, k.Value)); ok {
					o := w.origin(k, key)
					o.text = "{" + quote(k.Value) + ": " + quote(s) + "}"
					d.sandbox.set = append(d.sandbox.set, word[pair[string]]{pair[string]{k.Value, s}, o})
				}
			})
		},
	})
}

func (w *walker) egress(d *document, n *yaml.Node, key string) {
	e := &d.egress
	w.mapping(n, key, map[string]field{
		"allow": func(v *yaml.Node, key string) { e.allow = list(w, v, key, w.allowRule) },
		"deny":  func(v *yaml.Node, key string) { e.deny = list(w, v, key, w.denyRule) },
		"allow_private": func(v *yaml.Node, key string) {
			e.allowPrivate = list(w, v, key, checked(w, parsePrefix))
		},
		"passthrough":    func(v *yaml.Node, key string) { e.passthrough = list(w, v, key, checked(w, ParseHost)) },
		"resolve":        func(v *yaml.Node, key string) { w.resolve(d, v, key) },
		"upstream_proxy": func(v *yaml.Node, key string) { e.upstreamProxy = one(w, v, key, checked(w, proxyURL)) },
		"upstream_ca":    func(v *yaml.Node, key string) { e.upstreamCA = list(w, v, key, w.text) },
		"ask":            func(v *yaml.Node, key string) { e.ask = one(w, v, key, w.boolean) },
	})
	w.checkRules(e.deny, e.allow)
}

func (w *walker) resolve(d *document, n *yaml.Node, key string) {
	seen := make(map[string]bool)
	w.pairs(n, key, func(k, v *yaml.Node, key string) {
		host, err := ParseHost(k.Value)
		if err == nil && host.Wildcard() {
			err = fmt.Errorf("%q: one host has one answer, a wildcard cannot be resolved", clip(k.Value))
		}
		if _, isAddr := host.Addr(); err == nil && isAddr {
			err = fmt.Errorf("%q is an address already", host)
		}
		if err == nil && seen[host.String()] {
			err = fmt.Errorf("duplicate host %q", host)
		}
		if err != nil {
			w.fail(k, key, "%s: %s", key, err)
			return
		}
		seen[host.String()] = true
		if t, ok := checked(w, parseTarget)(v, join(key, host.String())); ok {
			o := w.origin(k, key)
			o.text = "{" + quote(host.String()) + ": " + quote(v.Value) + "}"
			d.egress.resolve = append(d.egress.resolve, word[pair[Target]]{pair[Target]{host.String(), t}, o})
		}
	})
}

func (w *walker) approvals(d *document, n *yaml.Node, key string) {
	a := &d.approvals
	w.mapping(n, key, map[string]field{
		"signers": func(v *yaml.Node, key string) { a.signers = one(w, v, key, w.text) },
		"require": func(v *yaml.Node, key string) {
			a.require = one(w, v, key, enum(w, map[string]string{"base": "base", "signature": "signature"}))
		},
		"not_author": func(v *yaml.Node, key string) { a.notAuthor = one(w, v, key, w.boolean) },
	})
}

func (w *walker) watch(d *document, n *yaml.Node, key string) {
	w.mapping(n, key, map[string]field{
		"quarantine": func(v *yaml.Node, key string) { d.watch.quarantine = one(w, v, key, w.boolean) },
		"exec":       func(v *yaml.Node, key string) { d.watch.exec = list(w, v, key, w.text) },
	})
}

func (w *walker) audit(d *document, n *yaml.Node, key string) {
	w.mapping(n, key, map[string]field{
		"keep": func(v *yaml.Node, key string) { d.audit.keep = one(w, v, key, checked(w, checkDays)) },
		"otlp": func(v *yaml.Node, key string) { d.audit.otlp = one(w, v, key, w.boolean) },
	})
}

// oneOf tells when not exactly one of the keys is there.
func (w *walker) oneOf(n *yaml.Node, key string, keys ...string) bool {
	if n.Kind != yaml.MappingNode {
		return false // told already
	}
	found := 0
	for i := 0; i+1 < len(n.Content); i += 2 {
		for _, k := range keys {
			if n.Content[i].Value == k {
				found++
			}
		}
	}
	if found != 1 {
		w.fail(n, key, "%s: want exactly one of %v", key, keys)
	}
	return found == 1
}

// credential reads one entry of credentials.
func (w *walker) credential(n *yaml.Node, key string) (Credential, bool) {
	c := Credential{Pos: w.pos(n)}
	before := len(w.errs)
	str := func(to *string) field {
		return func(v *yaml.Node, key string) { *to, _ = w.text(v, key) }
	}
	w.mapping(n, key, map[string]field{
		"name": str(&c.Name),
		"hosts": func(v *yaml.Node, key string) {
			for _, h := range list(w, v, key, checked(w, ParseHost)) {
				c.Hosts = append(c.Hosts, h.v)
			}
		},
		"source": func(v *yaml.Node, key string) {
			w.mapping(v, key, map[string]field{
				"env": str(&c.Source.Env), "file": str(&c.Source.File),
				"command": func(v *yaml.Node, key string) {
					for _, a := range list(w, v, key, w.text) {
						c.Source.Command = append(c.Source.Command, a.v)
					}
				},
			})
			w.oneOf(v, key, "env", "file", "command")
		},
		"inject": func(v *yaml.Node, key string) {
			w.mapping(v, key, map[string]field{
				"header": str(&c.Inject.Header), "format": str(&c.Inject.Format),
				"basic": str(&c.Inject.Basic), "query": str(&c.Inject.Query),
			})
			w.oneOf(v, key, "header", "basic", "query")
		},
		"env": func(v *yaml.Node, key string) {
			c.Env, _ = checked(w, func(s string) (string, error) { return s, checkEnvName(s) })(v, key)
		},
	})
	if len(w.errs) == before && (c.Name == "" || len(c.Hosts) == 0 || c.Inject == (CredentialInject{}) || c.Source.empty()) {
		w.fail(n, key, "%s: name, hosts, source and inject are needed", key)
	}
	return c, len(w.errs) == before
}

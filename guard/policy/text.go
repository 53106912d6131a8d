package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The words of the schema for values that are numbers in memory.

func (w Workspace) String() string  { return wordFor(workspaceWords, w) }
func (p Profile) String() string    { return wordFor(profileWords, p) }
func (b BrokerMode) String() string { return wordFor(brokerWords, b) }
func (k KeysMode) String() string   { return wordFor(keysWords, k) }
func (h HooksMode) String() string  { return wordFor(hooksWords, h) }

func wordFor[T comparable](words map[string]T, v T) string {
	for text, w := range words {
		if w == v {
			return text
		}
	}
	return "unknown"
}

// view is the form of a policy that is shown and hashed. Its field order is
// the order of both, so a change of it changes every digest.
type view struct {
	Version   int               `json:"version"`
	Workspace string            `json:"workspace"`
	Profile   string            `json:"profile"`
	Broker    string            `json:"broker"`
	Keys      string            `json:"keys"`
	Read      []grantView       `json:"read"`
	Write     []grantView       `json:"write"`
	Sockets   []grantView       `json:"sockets,omitempty"`
	Protect   []string          `json:"protect"`
	Unprotect []string          `json:"unprotect"`
	EnvPass   []string          `json:"env_pass"`
	EnvSet    map[string]string `json:"env_set"`
	Limits    *Limits           `json:"limits,omitempty"`

	Deny          []ruleView        `json:"deny"`
	Allow         []ruleView        `json:"allow"`
	AllowPrivate  []string          `json:"allow_private"`
	Resolve       map[string]string `json:"resolve"`
	Passthrough   []string          `json:"passthrough,omitempty"`
	UpstreamProxy string            `json:"upstream_proxy,omitempty"`
	UpstreamCA    []grantView       `json:"upstream_ca,omitempty"`
	Ask           bool              `json:"ask,omitempty"`

	HooksPath   string           `json:"hooks_path"`
	HooksMode   string           `json:"hooks_mode"`
	Credentials []credentialView `json:"credentials,omitempty"`
	Approvals   *Approvals       `json:"approvals,omitempty"`
	Watch       *Watch           `json:"watch,omitempty"`
	Audit       *Audit           `json:"audit,omitempty"`
	Extends     []string         `json:"extends,omitempty"`
}

type grantView struct {
	Path string `json:"path"`
	Real string `json:"real"`
}

type ruleView struct {
	Host    string            `json:"host"`
	Methods []string          `json:"methods,omitempty"`
	Paths   []string          `json:"paths,omitempty"`
	Ports   []uint16          `json:"ports,omitempty"` // none: every port
	Query   map[string]string `json:"query,omitempty"`
	Private []string          `json:"private,omitempty"`
	Budget  *Budget           `json:"budget,omitempty"`
	Git     *GitRule          `json:"git,omitempty"`
}

type credentialView struct {
	Name   string
	Hosts  []string
	Source CredentialSource
	Inject CredentialInject
	Env    string
}

func (p *Policy) view() view {
	s, e := &p.Sandbox, &p.Egress
	return view{
		Version: 1, Workspace: s.Workspace.String(), Profile: s.Profile.String(), Broker: s.Broker.String(), Keys: s.Keys.String(),
		Read: grantViews(s.Read), Write: grantViews(s.Write), Sockets: grantViews(s.Sockets),
		Protect: texts(s.Protect), Unprotect: texts(s.Unprotect), EnvPass: texts(s.Env.Pass), EnvSet: s.Env.Set,
		Limits: notZero(s.Limits), Deny: ruleViews(e.Deny), Allow: ruleViews(e.Allow),
		AllowPrivate: sorted(e.AllowPrivate, netip.Prefix.String), Resolve: targets(e.Resolve),
		Passthrough: sorted(e.Passthrough, HostPattern.String), UpstreamProxy: e.UpstreamProxy,
		UpstreamCA: grantViews(e.UpstreamCA), Ask: e.Ask,
		HooksPath: p.Hooks.Path, HooksMode: p.Hooks.Mode.String(), Credentials: credentialViews(p.Credentials),
		Approvals: notZero(p.Approvals), Watch: watchView(p.Watch), Audit: notZero(p.Audit), Extends: texts(p.Extends),
	}
}

// sorted returns the texts of a list whose order says nothing, never nil.
func sorted[T any](list []T, text func(T) string) []string {
	out := make([]string, 0, len(list))
	for _, v := range list {
		out = append(out, text(v))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func texts(vs []Value) []string { return sorted(vs, func(v Value) string { return v.Text }) }

func notZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func watchView(w Watch) *Watch {
	if !w.Quarantine && len(w.Exec) == 0 {
		return nil
	}
	return &w
}

func grantViews(gs []Grant) []grantView {
	out := make([]grantView, 0, len(gs))
	for _, g := range gs {
		out = append(out, grantView{pathText(g.Path), pathText(g.Real)})
	}
	slices.SortFunc(out, func(a, b grantView) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Real, b.Real))
	})
	return out
}

// pathText keeps paths apart that JSON would write alike because they are not
// UTF-8. A path starts with a slash, a quoted one does not.
func pathText(p string) string {
	if utf8.ValidString(p) {
		return p
	}
	return strconv.Quote(p)
}

func ruleViews(rs []Rule) []ruleView {
	out := make([]ruleView, 0, len(rs)) // in order: the first that matches decides
	for _, r := range rs {
		v := ruleView{
			Host: r.Host.String(), Methods: slices.Sorted(slices.Values(r.Methods)), Ports: slices.Sorted(slices.Values(r.Ports)),
			Query: r.Query, Budget: notZero(r.Budget), Git: r.Git,
		}
		v.Paths = sorted(r.Paths, PathPattern.String)
		v.Private = sorted(r.Private, netip.Prefix.String)
		out = append(out, v)
	}
	return out
}

func targets(m map[string]Target) map[string]string {
	out := make(map[string]string, len(m))
	for host, t := range m {
		out[host] = t.String()
	}
	return out
}

// String returns the address, with the port where one is set.
func (t Target) String() string {
	if t.Port == 0 {
		return t.Addr.String()
	}
	return netip.AddrPortFrom(t.Addr, t.Port).String()
}

func credentialViews(cs []Credential) []credentialView {
	var out []credentialView
	for _, c := range cs {
		out = append(out, credentialView{c.Name, sorted(c.Hosts, HostPattern.String), c.Source, c.Inject, c.Env})
	}
	return out
}

// computeDigest hashes the view, with the values of the environment, which are
// never shown.
func (p *Policy) computeDigest() string {
	data, err := json.Marshal(p.view())
	if err != nil {
		panic(fmt.Sprintf("policy: a policy that cannot be encoded: %v", err)) // strings, numbers and maps of them
	}
	sum := sha256.Sum256(append([]byte("agentguard policy 1\n"), data...))
	return hex.EncodeToString(sum[:])
}

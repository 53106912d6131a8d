package policy

import (
	"errors"
	"path/filepath"
)

// Flags is what the command line adds; an empty field was not given.
type Flags struct {
	Workspace string // read, write
	Profile   string // strict, balanced
	Broker    string // auto, require, off
	Read      []string
	Write     []string
	Protect   []string
	Unprotect []string
	EnvPass   []string
	Allow     []string // HOST or HOST:PORT
}

// Input is everything a policy is made of.
type Input struct {
	Home          string   // absolute; empty when there is none
	WorkspaceRoot string   // absolute; empty when there is none, as in checking a file alone
	Own           []string // agentguard's own directories (state, configuration, caches): never granted
	User          *Source  // nil when the user has no configuration
	Repo          *Source  // nil when the workspace has no policy file
	RepoTrusted   bool     // the user said yes to exactly Repo.Data in this clone, see [TrustStore]
	Flags         Flags
}

// layerKind says who speaks.
type layerKind uint8

const (
	repoLayer layerKind = iota // whoever wrote the branch
	userLayer
	flagLayer
)

// Load checks all layers and gives the effective policy. An error is an
// [Errors] with everything wrong in every layer; a broken file is an error
// whether it is trusted or not.
func Load(in Input) (*Policy, error) { return load(in, notYet) }

func load(in Input, gaps []gap) (*Policy, error) {
	for _, p := range append([]string{in.Home, in.WorkspaceRoot}, in.Own...) {
		if p != "" && !filepath.IsAbs(p) {
			return nil, errors.New("loading the policy: " + quote(p) + " is not an absolute path")
		}
	}
	m := newMerger(in, gaps)
	docs := m.parse()
	if len(m.errs) > 0 {
		return nil, m.errs
	}
	for _, l := range docs {
		m.apply(l)
	}
	m.finish()
	if len(m.errs) > 0 {
		return nil, m.errs
	}
	m.p.warnings = append(m.p.weakenings(), m.notes...)
	m.p.digest = m.p.computeDigest()
	return m.p, nil
}

// layer is one parsed layer.
type layer struct {
	kind layerKind
	doc  *document
}

// merger builds the policy layer by layer.
type merger struct {
	in       Input
	gaps     []gap
	p        *Policy
	g        *granter
	errs     Errors
	notes    []string       // what has no effect, or more than it seems
	resolved map[string]Pos // where each static answer was written
	raised   raised
}

// raised tells which single values the user's file or a flag wrote, which the
// repository's file cannot lower.
type raised struct {
	workspace, profile, broker, keys, hooks, ask bool
}

func newMerger(in Input, gaps []gap) *merger {
	p := &Policy{
		Sandbox: Sandbox{Broker: BrokerAuto},
		Egress:  Egress{Resolve: map[string]Target{}},
		Hooks:   Hooks{Path: ".githooks"},
	}
	p.Sandbox.Env.Set = map[string]string{}
	if in.User != nil || in.Repo != nil {
		p.Sandbox.Workspace = WorkspaceWrite
	}
	return &merger{in: in, gaps: gaps, p: p, g: newGranter(in), resolved: map[string]Pos{}}
}

// parse reads every layer, so that all errors are told at once.
func (m *merger) parse() []layer {
	var out []layer
	read := func(src *Source, kind layerKind, trusted bool) {
		if src == nil {
			return
		}
		doc, errs := parse(src, m.gaps)
		m.errs = append(m.errs, errs...)
		out = append(out, layer{kind, doc})
		m.p.Layers = append(m.p.Layers, Layer{Name: src.Name, SHA256: src.SHA256(), Repo: kind == repoLayer, Trusted: trusted})
	}
	read(m.in.User, userLayer, true)
	read(m.in.Repo, repoLayer, m.in.RepoTrusted)
	doc, errs := m.in.Flags.document()
	m.errs = append(m.errs, errs...)
	return append(out, layer{flagLayer, doc})
}

// widens says whether something that widens the policy counts; if not, it
// waits.
func (m *merger) widens(kind layerKind, o origin) bool {
	if kind != repoLayer || m.in.RepoTrusted {
		return true
	}
	m.pend(o, nil)
	return false
}

func (m *merger) pend(o origin, err *Error) {
	m.p.Pending = append(m.p.Pending, Pending{Pos: o.pos, Key: o.key, Text: o.text, Err: err})
}

// apply adds one layer.
func (m *merger) apply(l layer) {
	m.applySingles(l)
	m.applyLists(l)
	m.applyEgress(l)
	m.applyRest(l)
}

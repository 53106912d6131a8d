package guard

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"agentguard/guard/policy"
	"agentguard/hooks"
)

// HooksOptions is what hooks install is asked to do with hooks that are there.
type HooksOptions struct {
	Adopt   bool // copy the hooks that git runs now into the tracked directory
	Replace bool // take over from another hooks directory
}

// HooksReport says which hooks git runs in a repository.
type HooksReport struct {
	Installed bool             `json:"installed"`
	Managed   bool             `json:"managed"` // git runs the approved copies
	Blocked   bool             `json:"blocked"` // hooks refuse until something is approved
	HooksPath string           `json:"hooks_path"`
	Source    string           `json:"source"`
	Hooks     []string         `json:"hooks"`
	Adopted   []string         `json:"adopted,omitempty"`
	Differs   []HookDifference `json:"differs,omitempty"`
	Conflicts []HookConflict   `json:"conflicts,omitempty"`
}

// HookDifference is one tracked file that is not as approved.
type HookDifference struct {
	Path string `json:"path"`
	What string `json:"what"`
	Why  string `json:"why,omitempty"`
}

// HookConflict is one thing that keeps the approved hooks from being those
// that run.
type HookConflict struct {
	Path    string `json:"path"`
	Manager string `json:"manager,omitempty"`
	Detail  string `json:"detail"`
}

// Clean says that the approved hooks run and nothing waits.
func (r HooksReport) Clean() bool {
	return r.Managed && !r.Blocked && len(r.Conflicts) == 0
}

// HooksInstall points git at the approved copies of the tracked hooks.
func (g *Guard) HooksInstall(o HooksOptions) (HooksReport, error) {
	return g.hooksDo(o, hooks.Install)
}

// HooksStatus says how things stand, and changes nothing.
func (g *Guard) HooksStatus() (HooksReport, error) {
	return g.hooksDo(HooksOptions{}, hooks.Status)
}

// HooksUninstall gives core.hooksPath its earlier value back.
func (g *Guard) HooksUninstall() (HooksReport, error) {
	return g.hooksDo(HooksOptions{}, hooks.Uninstall)
}

func (g *Guard) hooksDo(o HooksOptions, do func(hooks.Options) (hooks.State, error)) (HooksReport, error) {
	ho, err := g.hooksOptions(o)
	if err != nil {
		return HooksReport{}, err
	}
	s, err := do(ho)
	if err != nil {
		return HooksReport{}, err
	}
	return hooksReport(ho, s), nil
}

// HooksProposal is what an approval would put in force, read once.
type HooksProposal struct {
	o hooks.Options
	p *hooks.Proposal
}

// HooksPropose reads the tracked hooks, to be shown and approved.
func (g *Guard) HooksPropose() (*HooksProposal, error) {
	o, err := g.hooksOptions(HooksOptions{})
	if err != nil {
		return nil, err
	}
	s, err := hooks.Status(o)
	if err != nil {
		return nil, err
	}
	if !s.Installed {
		return nil, &hooks.NotInstalledError{Repo: o.Repo.Root}
	}
	p, err := hooks.Propose(o)
	return &HooksProposal{o, p}, err
}

// Diff is what an approval changes, "" when it changes nothing.
func (p *HooksProposal) Diff() string { return p.p.Diff() }

// Approve puts exactly what was proposed in force.
func (p *HooksProposal) Approve() (HooksReport, error) {
	s, err := p.p.Approve()
	if err != nil {
		return HooksReport{}, err
	}
	return hooksReport(p.o, s), nil
}

func (g *Guard) hooksOptions(o HooksOptions) (hooks.Options, error) {
	w, err := g.Open()
	if err != nil {
		return hooks.Options{}, err
	}
	if err := w.needRepo(); err != nil {
		return hooks.Options{}, err
	}
	if err := g.settle(w); err != nil {
		return hooks.Options{}, err
	}
	return g.hooksOptionsOf(w, o)
}

func (g *Guard) hooksOptionsOf(w *Workspace, o HooksOptions) (hooks.Options, error) {
	p, err := g.loadPolicy(w, policy.Flags{})
	if err != nil {
		return hooks.Options{}, err
	}
	return hooks.Options{
		Repo: w.Repo, Source: p.Hooks.Path, StateDir: w.dirs.state,
		Home: g.home(), XDG: g.Env["XDG_CONFIG_HOME"], Adopt: o.Adopt, Replace: o.Replace,
	}, nil
}

// hooksSource reads the tracked hooks, or says why there are none to install.
func (g *Guard) hooksSource(w *Workspace) (*hooks.Proposal, error) {
	o, err := g.hooksOptionsOf(w, HooksOptions{})
	if err != nil {
		return nil, err
	}
	return hooks.Propose(o)
}

func hooksReport(o hooks.Options, s hooks.State) HooksReport {
	r := HooksReport{
		Installed: s.Installed, Managed: s.Managed, Blocked: s.Installed && s.Blocked(), HooksPath: s.Path,
		Source: o.Source, Hooks: append([]string{}, s.Hooks...), Adopted: s.Adopted,
	}
	for _, d := range s.Differs {
		r.Differs = append(r.Differs, HookDifference{filepath.Join(o.Source, d.Path), d.Kind.String(), d.Why})
	}
	for _, c := range s.Conflicts {
		r.Conflicts = append(r.Conflicts, HookConflict{c.Path, c.Manager, c.Detail})
	}
	return r
}

// JSON writes a report for a program.
func (r HooksReport) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Text writes a report for a person.
func (r HooksReport) Text(w io.Writer) {
	switch {
	case !r.Installed:
		fmt.Fprintf(w, "not installed; git takes its hooks from %s\n", quote(r.HooksPath))
	case !r.Managed:
		fmt.Fprintf(w, "installed, but the approved hooks do not run; git takes its hooks from %s\n", quote(r.HooksPath))
	case len(r.Hooks) == 0:
		fmt.Fprintf(w, "installed; the approved copy of %s holds no hooks\n", quote(r.Source))
	default:
		fmt.Fprintf(w, "installed; git runs the approved copies of: %s\n", strings.Join(quoteAll(r.Hooks), ", "))
	}
	for _, path := range r.Adopted {
		fmt.Fprintf(w, "  copied to %s, to be committed\n", quote(path))
	}
	for _, d := range r.Differs {
		why := ""
		if d.Why != "" {
			why = ": " + quoteLine(d.Why)
		}
		fmt.Fprintf(w, "  %s %s%s\n", d.What, quote(d.Path), why)
	}
	if r.Blocked {
		fmt.Fprintf(w, "  hooks refuse until that is approved or taken back: agentguard hooks approve\n")
	}
	for _, c := range r.Conflicts {
		fmt.Fprintf(w, "  conflict: %s\n", quoteLine(c.Detail))
	}
}

func quoteAll(names []string) []string {
	out := slices.Clone(names)
	for i, name := range out {
		out[i] = quote(name)
	}
	return out
}

// shimsState returns the state directory of the hooks whose shims are at dir,
// "" when dir is no directory of shims: a shim runs the copy that lies beside.
func (w *Workspace) shimsState(dir string) string {
	rel, ok := strings.CutPrefix(dir, filepath.Join(w.dirs.state, "hooks")+"/")
	if !ok || strings.Count(rel, "/") != 2 {
		return ""
	}
	return filepath.Dir(filepath.Dir(dir))
}

package guard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"agentguard/egress"
	"agentguard/guard/policy"
	"agentguard/sandbox"
)

// cacheDirs says where this repository's caches are and where they appear.
func (w *Workspace) cacheDirs(home string) []cacheDir {
	var out []cacheDir
	for _, name := range cacheNames {
		out = append(out, cacheDir{filepath.Join(w.dirs.cacheDir(w.ID), name), filepath.Join(home, ".cache", name)})
	}
	return out
}

// Shown is everything that a run would be given, from the plan of a run.
type Shown struct {
	Workspace string         `json:"workspace"`
	Policy    *policy.Policy `json:"policy"`
	Mounts    []ShownMount   `json:"mounts"`
	Frozen    []ShownFrozen  `json:"frozen"`
	Env       []string       `json:"env"` // names only: a value may be a secret
	Proxy     string         `json:"proxy"`
	UID       *uint32        `json:"uid,omitempty"` // whom the command runs as, when not as the caller
}

// ShownMount is one place that exists in the sandbox.
type ShownMount struct {
	Kind   string `json:"kind"`
	Target string `json:"target"`
	Source string `json:"source,omitempty"` // where it is not the same
}

// ShownFrozen is one path that a run cannot change.
type ShownFrozen struct {
	Path  string `json:"path"` // relative to the workspace, or absolute outside it
	Entry string `json:"entry,omitempty"`
	Only  string `json:"only,omitempty"` // "name" where what is in the directory is judged by itself
}

// PolicyShow says what a run of argv0 under flags would be given. Nothing is
// made and nothing runs.
func (g *Guard) PolicyShow(flags policy.Flags, argv0 string) (Shown, error) {
	w, err := g.Open()
	if err != nil {
		return Shown{}, err
	}
	if err := g.settle(w); err != nil {
		return Shown{}, err
	}
	p, err := g.loadPolicy(w, flags)
	if err != nil {
		return Shown{}, err
	}
	found, err := g.resolved(w, p)
	if err != nil {
		return Shown{}, err
	}
	pl, err := g.planFor(w, p, found.areas, found.outside, argv0)
	if err != nil {
		return Shown{}, err
	}
	proxy := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), sandbox.ProxyPort)
	s := Shown{Workspace: w.Root, Policy: p, Proxy: proxy.String(), Mounts: []ShownMount{}, Frozen: []ShownFrozen{}}
	for _, kv := range g.environ(p, pl.base.Home, egress.Environ(proxy)) {
		name, _, _ := strings.Cut(kv, "=")
		s.Env = append(s.Env, name)
	}
	if as := g.identity(w); as != nil {
		s.UID = &as.UID
	}
	entries := entriesOf(found.areas)
	for _, m := range pl.mounts() {
		s.add(w, m, entries)
	}
	return s, nil
}

// entriesOf says of every surface which entry makes it one.
func entriesOf(areas []*area) map[string]string {
	out := map[string]string{}
	for _, a := range areas {
		for _, m := range a.set.Members {
			out[a.path(m.Path)] = m.Hit.Entry.ID
		}
	}
	return out
}

func (s *Shown) add(w *Workspace, m sandbox.Mount, entries map[string]string) {
	switch m.Kind {
	case sandbox.Freeze:
		s.Frozen = append(s.Frozen, ShownFrozen{Path: w.shown(m.Target), Entry: entries[m.Target]})
		return
	case sandbox.Pin:
		s.Frozen = append(s.Frozen, ShownFrozen{Path: w.shown(m.Target), Entry: entries[m.Target], Only: "name"})
		return
	}
	if m.Optional && m.Source != "" && !exists(m.Source) {
		return
	}
	shown := ShownMount{Kind: mountWord(m), Target: m.Target}
	if m.Source != m.Target {
		shown.Source = m.Source
	}
	if m.Kind == sandbox.Writable && within(m.Source, w.dirs.cacheDir(w.ID)) {
		shown.Kind = "cache"
	}
	s.Mounts = append(s.Mounts, shown)
}

// mountWord names what is at a place, as a person would; every word that it
// gives is in mountWords.
func mountWord(m sandbox.Mount) string {
	switch m.Kind {
	case sandbox.Writable:
		return "writable"
	case sandbox.ReadOnly:
		return "read-only"
	case sandbox.File:
		return "made for the run"
	case sandbox.Tmpfs:
		return "private and empty"
	case sandbox.Dir:
		return "empty directory"
	case sandbox.Link:
		return "link"
	case sandbox.Mask:
		return "shown empty"
	case sandbox.Seal:
		return "sealed"
	}
	return "of the kernel" // devices, processes, terminals
}

// mountWords is the order in which a person wants to see them.
func mountWords() []string {
	return []string{"writable", "read-only", "shown empty", "made for the run", "private and empty", "empty directory", "link", "sealed", "of the kernel"}
}

// JSON writes it for a program.
func (s Shown) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

// Text writes it for a person: the policy, then what follows from it here.
func (s Shown) Text(w io.Writer) {
	fmt.Fprint(w, s.Policy.String())
	fmt.Fprintf(w, "a run in %s\n", quote(s.Workspace))
	if s.UID != nil {
		fmt.Fprintf(w, "  runs as        user %d, who owns it\n", *s.UID)
	}
	fmt.Fprintf(w, "  network        only the proxy at %s, which lets out what egress allows\n", s.Proxy)
	for _, line := range wrapped(s.Env, 100) {
		fmt.Fprintf(w, "  environment    %s\n", line)
	}
	fmt.Fprintf(w, "exists in the sandbox (nothing else does)\n")
	for _, word := range mountWords() {
		for _, m := range s.Mounts {
			if m.Kind == word {
				fmt.Fprintf(w, "  %-20s %s%s\n", m.Kind, quote(m.Target), m.from())
			}
		}
	}
	s.caches(w)
	fmt.Fprintf(w, "frozen: %s that the command cannot change or carry away\n", count(len(s.Frozen), "path"))
	frozen := slices.Clone(s.Frozen)
	slices.SortFunc(frozen, func(a, b ShownFrozen) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range frozen {
		fmt.Fprintf(w, "  %s%s\n", quote(f.Path), f.why())
	}
}

// caches writes the tools' caches in a few lines: they are many, and alike.
func (s Shown) caches(w io.Writer) {
	var names []string
	var inside, host, source string
	for _, m := range s.Mounts {
		if m.Kind == "cache" {
			names = append(names, filepath.Base(m.Target))
			inside, host, source = filepath.Dir(m.Target), filepath.Dir(m.Source), filepath.Base(m.Source)
		}
	}
	if len(names) == 0 {
		return
	}
	if names[0] == ".cache" { // all of them in one
		fmt.Fprintf(w, "  %-20s %s from %s, kept for this repository's runs alone\n", "writable caches", quote(filepath.Join(inside, names[0])), quote(filepath.Join(host, source)))
		return
	}
	fmt.Fprintf(w, "  %-20s %s from %s, kept for this repository's runs alone:\n", "writable caches", quote(inside), quote(host))
	for _, line := range wrapped(names, 80) {
		fmt.Fprintf(w, "  %-20s %s\n", "", line)
	}
}

func (m ShownMount) from() string {
	switch {
	case m.Source == "":
		return ""
	case m.Kind == "link":
		return " to " + quote(m.Source)
	}
	return " from " + quote(m.Source)
}

func (f ShownFrozen) why() string {
	switch {
	case f.Entry == "":
		return " (its name: it holds frozen paths)"
	case f.Only != "":
		return " (" + f.Entry + "; its name)"
	}
	return " (" + f.Entry + ")"
}

// wrapped joins words to lines of about width.
func wrapped(words []string, width int) []string {
	var lines []string
	for _, word := range words {
		if n := len(lines) - 1; n >= 0 && len(lines[n])+1+len(word) <= width {
			lines[n] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

package guard

import (
	"crypto/sha256"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agentguard/guard/event"
	"agentguard/guard/policy"
	"agentguard/guard/surface"
	"agentguard/integrity"
)

// Report is what a run, or a check owed by a run that was killed, has to tell.
type Report struct {
	Changes []ChangeReport `json:"changes,omitempty"`
	Stale   []string       `json:"not_updated,omitempty"`
	Git     []string       `json:"git,omitempty"`
	Earlier []string       `json:"undecided_before,omitempty"` // left by earlier runs, and still as they left it
	Host    []string       `json:"changed_by_host,omitempty"`
	Names   []Refusal      `json:"names_refused,omitempty"`
	Refused []Refusal      `json:"refused,omitempty"`
	Pending []string       `json:"policy_waits,omitempty"`
	NotKept []string       `json:"not_kept,omitempty"`
	Weak    []string       `json:"weaker,omitempty"`

	ReadOnly bool `json:"workspace_read_only,omitempty"` // nothing could be written, for want of a policy file
}

// ChangeReport is one surface that came, went or changed.
type ChangeReport struct {
	Path       string   `json:"path"`
	What       string   `json:"what"`
	Entry      string   `json:"entry"`
	Trigger    string   `json:"trigger,omitempty"`
	Protection string   `json:"protection"`
	Places     []string `json:"places"`
}

// Refusal is one way out that was refused, with how often.
type Refusal struct {
	Subject string `json:"subject"`
	Reason  string `json:"reason"`
	Hint    string `json:"hint,omitempty"`
	Times   int    `json:"times"`
}

// Undecided says whether something is left that a person has to decide about.
func (r Report) Undecided() bool {
	return len(r.Git) > 0 || len(r.Earlier) > 0 || slices.ContainsFunc(r.Changes, func(c ChangeReport) bool {
		return c.Protection != surface.Note.String()
	})
}

// report turns what a run left into what is told, without what was approved
// and without what executes nothing differently.
func (s *session) report(after *afterwards) (Report, error) {
	r, err := s.w.describe(after, s.guarded)
	if err != nil {
		return r, err
	}
	r.NotKept = s.left
	if s.policy.Sandbox.Workspace == policy.WorkspaceRead && s.status != 0 && !exists(filepath.Join(s.w.Root, policy.FileName)) {
		r.ReadOnly = true
	}
	for _, p := range s.policy.Pending {
		r.Pending = append(r.Pending, p.String())
	}
	r.Refused = refusals(s.recorder.Events())
	r.Names = s.names.list()
	for _, e := range s.recorder.Events() {
		if e.Kind == event.RunWeak {
			r.Weak = append(r.Weak, e.Reason)
		}
	}
	return r, nil
}

// describe is the part of a report that the state on disk gives.
// guarded says that the name guard was in force all the time.
func (w *Workspace) describe(after *afterwards, guarded bool) (Report, error) {
	r := Report{Git: after.problems}
	for _, f := range after.findings {
		if executesNothing(f.Change) {
			continue
		}
		if guarded && f.byHost() {
			r.Host = append(r.Host, f.Shown)
			continue
		}
		if f.New.Kind != integrity.Absent || f.Old.Kind != integrity.Absent {
			ok, err := w.approvals().Approved(repoName(w.ID), approvable(f))
			if err != nil {
				return r, fmt.Errorf("reading the approvals: %w", err)
			}
			if ok {
				continue
			}
		}
		r.Changes = append(r.Changes, ChangeReport{
			Path: f.Shown, What: string(f.What), Entry: f.Entry, Trigger: f.Trigger,
			Protection: f.Protection.String(), Places: f.Places,
		})
	}
	for _, st := range after.stale {
		// What the run itself brought into the index is told already, and
		// nobody is to write it out.
		told := slices.ContainsFunc(r.Changes, func(c ChangeReport) bool { return c.Path == st.Path })
		if st.WorkTree.Kind != integrity.Absent || !told {
			r.Stale = append(r.Stale, st.Path)
		}
	}
	return r, nil
}

// byHost says that under the name guard nothing inside can have made a change:
// it is of a frozen file on disk, in a directory that was there at the start
// (what lies in a repository of the run's own is free).
func (f finding) byHost() bool {
	if f.New.Kind == integrity.Other {
		return false // a socket is bound without asking the broker
	}
	// The broker judges names. What is a surface by its surroundings alone (a
	// bare repository in any directory) is none of them.
	hit, ok := f.area.matcher.Match(f.Path, typeOf(max(f.New.Mode, f.Old.Mode)))
	if !ok || hit.Protection != surface.Freeze {
		return false
	}
	if f.Protection != surface.Freeze || len(f.Places) != 1 || f.Places[0] != integrity.PlaceWorkTree {
		return false
	}
	dir := path.Dir(f.Path)
	return dir == "." || slices.Contains(f.area.dirs, dir)
}

// executesNothing says that a change makes nothing execute differently: it is
// outside the executable part, or what came has none (the samples and the
// plain configuration of a repository that git init made, a directory).
func executesNothing(c integrity.Change) bool {
	switch c.What {
	case integrity.DataChanged:
		return true
	case integrity.Added:
		return c.Protection != surface.Freeze &&
			(c.New.Kind == integrity.Dir || c.New.Kind == integrity.Regular && c.New.Part == emptySum)
	}
	return false
}

// emptySum is the hash of no bytes at all.
var emptySum = integrity.Sum(sha256.Sum256(nil))

// approvable is the state that an approval would have to name: what is there
// now, under the path that is shown. The executable part decides, whatever the
// protection: what differs outside it is no finding either.
func approvable(f finding) integrity.File {
	now := f.New
	now.Path, now.Protection = f.Shown, surface.Review
	return now
}

// refusals sums up what the proxy refused.
func refusals(events []event.Event) []Refusal {
	var out []Refusal
	for _, e := range events {
		if e.Verdict != event.Denied || e.Kind != event.EgressHTTP && e.Kind != event.EgressTunnel {
			continue
		}
		i := slices.IndexFunc(out, func(r Refusal) bool { return r.Subject == e.Subject && r.Reason == e.Reason })
		if i < 0 {
			out = append(out, Refusal{Subject: e.Subject, Reason: e.Reason, Hint: e.Hint})
			i = len(out) - 1
		}
		out[i].Times++
	}
	return out
}

// told bounds each list of a report on a terminal.
const told = 20

// Text writes a report for a person. A run that left nothing and was refused
// nothing says nothing.
func (r Report) Text(w io.Writer) {
	if r.ReadOnly {
		fmt.Fprintf(w, "agentguard: the workspace is read-only, because there is no %s here; agentguard init writes one\n", policy.FileName)
	}
	changes, noted := r.decide()
	if len(changes) > 0 {
		fmt.Fprintf(w, "agentguard: this run changed %s, which others execute:\n", count(len(changes), "surface"))
		for _, c := range head(changes) {
			fmt.Fprintf(w, "  %s %s (%s; %s)%s\n", c.What, quote(c.Path), c.Entry, c.Protection, c.where())
			if c.Trigger != "" {
				fmt.Fprintf(w, "      runs on: %s\n", c.Trigger)
			}
		}
		more(w, len(changes))
		fmt.Fprintf(w, "  take it back: agentguard restore PATH...   accept it: agentguard approve PATH...\n")
	}
	if noted > 0 && len(changes) > 0 {
		fmt.Fprintf(w, "  and %s in trees that tools write (agentguard scan lists them)\n", count(noted, "note"))
	}
	if len(r.Earlier) > 0 {
		fmt.Fprintf(w, "agentguard: left by an earlier run, and nobody has decided about it:\n")
		for _, path := range head(r.Earlier) {
			fmt.Fprintf(w, "  %s\n", quote(path))
		}
		more(w, len(r.Earlier))
		fmt.Fprintf(w, "  take it back: agentguard restore PATH...   accept it: agentguard approve PATH...\n")
	}
	if len(r.Host) > 0 {
		fmt.Fprintf(w, "agentguard: changed outside meanwhile, not by this run:\n")
		for _, path := range head(r.Host) {
			fmt.Fprintf(w, "  %s\n", quote(path))
		}
		more(w, len(r.Host))
	}
	if len(r.Stale) > 0 {
		fmt.Fprintf(w, "agentguard: not updated, because they are frozen and git could not write them:\n")
		for _, path := range head(r.Stale) {
			fmt.Fprintf(w, "  %s\n", quote(path))
		}
		more(w, len(r.Stale))
		fmt.Fprintf(w, "  outside, git checkout -- PATH writes them; %s lowers what may be written\n", "sandbox.profile: balanced")
	}
	for _, p := range head(r.Git) {
		fmt.Fprintf(w, "agentguard: %s\n", quoteLine(p))
	}
	if len(r.Names) > 0 {
		fmt.Fprintf(w, "agentguard: refused to be written, because others execute them:\n")
		for _, f := range head(r.Names) {
			fmt.Fprintf(w, "  %s (%s)%s\n", quote(f.Subject), quoteLine(f.Reason), times(f.Times))
		}
		more(w, len(r.Names))
		fmt.Fprintf(w, "  to allow one: sandbox.unprotect: [GLOB] or sandbox.profile: balanced in %s\n", policy.FileName)
	}
	if len(r.Refused) > 0 {
		fmt.Fprintf(w, "agentguard: refused on the way out:\n")
		for _, f := range head(r.Refused) {
			fmt.Fprintf(w, "  %s: %s%s\n", quote(f.Subject), quoteLine(f.Reason), times(f.Times))
			if f.Hint != "" {
				fmt.Fprintf(w, "      to allow it: %s\n", quoteLine(strings.Join(strings.Fields(f.Hint), " ")))
			}
		}
		more(w, len(r.Refused))
	}
	if len(r.Pending) > 0 {
		fmt.Fprintf(w, "agentguard: lines of %s that wait for your yes (agentguard trust):\n", policy.FileName)
		for _, p := range head(r.Pending) {
			fmt.Fprintf(w, "  %s\n", quoteLine(p))
		}
		more(w, len(r.Pending))
	}
	for _, path := range head(r.NotKept) {
		fmt.Fprintf(w, "agentguard: no copy of %s was kept, so restore cannot put it back\n", quote(path))
	}
	for _, s := range r.Weak {
		fmt.Fprintf(w, "agentguard: weaker than designed: %s\n", quoteLine(s))
	}
}

// decide parts what a person has to decide about from what is only noted.
func (r Report) decide() (changes []ChangeReport, noted int) {
	for _, c := range r.Changes {
		if c.Protection == surface.Note.String() {
			noted++
		} else {
			changes = append(changes, c)
		}
	}
	return changes, noted
}

func (c ChangeReport) where() string {
	if len(c.Places) == 1 && c.Places[0] == integrity.PlaceWorkTree {
		return ""
	}
	return " in " + strings.Join(c.Places, ", ")
}

func head[T any](list []T) []T { return list[:min(len(list), told)] }

func more(w io.Writer, n int) {
	if n > told {
		fmt.Fprintf(w, "  and %d more\n", n-told)
	}
}

func times(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", n)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

package guard

import (
	"errors"
	"fmt"

	"agentguard/guard/surface"
	"agentguard/sandbox"
)

func isNotStarted(err error) bool {
	_, ok := errors.AsType[*sandbox.NotStartedError](err)
	return ok
}

// settle does the end-of-run checks that killed runs owe, and tells them,
// before anything else happens in the workspace.
func (g *Guard) settle(w *Workspace) error {
	marks, err := w.unfinished()
	if err != nil || len(marks) == 0 {
		return err
	}
	m, err := surface.NewMatcher(surface.Catalogue(), surface.Rules{})
	if err != nil {
		return err
	}
	for _, mk := range marks {
		if err := g.settleOne(w, mk, m); err != nil {
			return err
		}
	}
	return nil
}

func (g *Guard) settleOne(w *Workspace, mk *mark, m *surface.Matcher) error {
	data, index, err := mk.read()
	if err != nil {
		return fmt.Errorf("reading the mark of a run that was killed: %w", err)
	}
	s, r, err := decodeStart(data, index, m)
	if err != nil {
		fmt.Fprintf(g.Stderr, "agentguard: a run was killed and what was there before it cannot be read (%v): look at git status and agentguard scan\n", err)
		return mk.clear()
	}
	after, err := w.compare(s)
	if err != nil {
		return fmt.Errorf("checking what a killed run left: %w", err)
	}
	report, err := w.describe(after, false)
	if err != nil {
		return err
	}
	fmt.Fprintf(g.Stderr, "agentguard: the run of %s begun %s was killed before its end-of-run check; checked now\n", quote(r.Command), r.Began)
	if err := w.carryOn(&report, after); err != nil {
		return err
	}
	report.Text(g.Stderr)
	if len(after.findings) > 0 {
		if err := w.saveLast(s); err != nil {
			return err
		}
	}
	return mk.clear()
}

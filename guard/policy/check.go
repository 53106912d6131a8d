package policy

import (
	"cmp"
	"fmt"
	"slices"
)

// checkRules refuses rules of one file that can never decide: whoever wrote
// them believes in an order that is not there.
func (w *walker) checkRules(deny, allow []word[Rule]) {
	fail := func(o origin, format string, args ...any) {
		if len(w.errs) < maxErrors {
			w.errs = append(w.errs, o.err(fmt.Errorf(format, args...)))
		}
	}
	for i := range deny {
		for j := range deny[:i] {
			if deny[j].v.covers(&deny[i].v) && deny[i].v.covers(&deny[j].v) {
				fail(deny[i].origin, "the rule is the same as the one on line %d", deny[j].pos.Line)
				break
			}
		}
	}
	for i := range allow {
		for j := range deny {
			if deny[j].v.covers(&allow[i].v) {
				fail(allow[i].origin, "the rule never decides: the deny rule on line %d covers it", deny[j].pos.Line)
				break
			}
		}
		for j := range allow[:i] {
			if allow[j].v.covers(&allow[i].v) {
				fail(allow[i].origin, "the rule never decides: the rule on line %d covers it", allow[j].pos.Line)
				break
			}
		}
	}
}

// covers says whether every request that q is about is one that r is about.
func (r *Rule) covers(q *Rule) bool {
	if r.Git != nil || q.Git != nil || !r.Host.covers(q.Host) {
		return false
	}
	if !r.AnyPort && (q.AnyPort || !subset(q.Ports, r.Ports)) {
		return false
	}
	if len(r.Methods) > 0 && (len(q.Methods) == 0 || !subset(q.Methods, r.Methods)) {
		return false
	}
	for k, v := range r.Query {
		if got, ok := q.Query[k]; !ok || got != v {
			return false
		}
	}
	return len(r.Paths) == 0 || len(q.Paths) > 0 && !slices.ContainsFunc(q.Paths, func(qp PathPattern) bool {
		return !slices.ContainsFunc(r.Paths, func(rp PathPattern) bool { return rp.covers(qp) })
	})
}

func subset[T comparable](some, all []T) bool {
	for _, s := range some {
		if !slices.Contains(all, s) {
			return false
		}
	}
	return true
}

// covers says whether every path that q matches is one that p matches.
func (p PathPattern) covers(q PathPattern) bool {
	n := len(p.segs)
	switch {
	case p.rest && !q.rest && len(q.segs) <= n,
		p.rest && len(q.segs) < n,
		!p.rest && (q.rest || len(q.segs) != n):
		return false
	}
	for i, seg := range p.segs {
		if seg != q.segs[i] && (seg != "*" || q.segs[i] == "") {
			return false
		}
	}
	return true
}

// finish checks what only all layers together show, and sorts what waits.
func (m *merger) finish() {
	e := &m.p.Egress
	for i := range e.Allow {
		a := &e.Allow[i]
		for j := range e.Deny {
			if d := &e.Deny[j]; d.Pos.File != a.Pos.File && d.covers(a) {
				m.note(a.Pos, "egress.allow", "the rule for %s never decides: the deny rule at %s covers it", a.Host, d.Pos)
				break
			}
		}
		for j := range e.Allow[:i] {
			if b := &e.Allow[j]; b.Pos.File != a.Pos.File && len(a.Private) > 0 && b.covers(a) && !subset(a.Private, b.Private) {
				m.note(a.Pos, "egress.allow", "the rule for %s never decides, nor does its private: the rule at %s covers it", a.Host, b.Pos)
				break
			}
		}
		if public, _ := a.Host.publicSuffix(); public {
			m.note(a.Pos, "egress.allow", "anybody can get a name below %s", a.Host)
		}
	}
	for _, host := range keysOf(e.Resolve) {
		if !slices.ContainsFunc(e.Allow, func(r Rule) bool { return r.Host.Match(host) }) {
			m.note(m.resolved[host], "egress.resolve", "no rule allows %s", host)
		}
	}
	slices.SortStableFunc(m.p.Pending, func(a, b Pending) int {
		return cmp.Or(a.Pos.Line-b.Pos.Line, a.Pos.Col-b.Pos.Col)
	})
}

func (m *merger) note(pos Pos, key, format string, args ...any) {
	m.notes = append(m.notes, pos.String()+": "+key+": "+fmt.Sprintf(format, args...))
}

// noteGrant tells of a grant that opens nothing, or something delicate.
func (m *merger) noteGrant(o origin, g Grant) {
	if g.Missing {
		m.note(o.pos, o.key, "nothing is at %s, so this grants nothing", quote(g.Path))
	}
	for _, f := range m.g.rows() {
		if f.below == writeBelow && (within(g.Path, f.path) || within(g.Real, f.path)) {
			m.note(o.pos, o.key, "%s is in %s: %s", quote(g.Path), quote(f.path), f.why)
			break
		}
	}
}

// hooksPath checks the path of the tracked hooks.
func hooksPath(s string) (string, error) {
	if !cleanRelative(s) {
		return "", errorString("want a clean path relative to the workspace, with slashes, outside .git")
	}
	return s, nil
}

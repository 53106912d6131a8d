package policy

import "slices"

// single applies a value of which a lower one is tighter. The user's word
// stands against the repository's file, which may always tighten.
func single[T Profile | BrokerMode | KeysMode | HooksMode](m *merger, kind layerKind, cur *T, byUser *bool, w *word[T]) {
	switch {
	case w == nil:
	case kind != repoLayer:
		*cur, *byUser = w.v, true
	case w.v <= *cur:
		*cur = w.v
	case *byUser:
		m.notes = append(m.notes, w.pos.String()+": "+w.key+": "+w.text+" has no effect: the user's own configuration is tighter")
	case m.widens(kind, w.origin):
		*cur = w.v
	}
}

func (m *merger) applySingles(l layer) {
	s, d := &m.p.Sandbox, &l.doc.sandbox
	single(m, l.kind, &s.Profile, &m.raised.profile, d.profile)
	single(m, l.kind, &s.Broker, &m.raised.broker, d.broker)
	single(m, l.kind, &s.Keys, &m.raised.keys, d.keys)
	single(m, l.kind, &m.p.Hooks.Mode, &m.raised.hooks, l.doc.hooksMode)
	// A clone of its own is tighter than the work tree itself and is not
	// ordered against reading only: the user's word stands against both.
	switch w := d.workspace; {
	case w == nil:
	case l.kind != repoLayer:
		s.Workspace, m.raised.workspace = w.v, true
	case w.v == s.Workspace:
	case s.Workspace == WorkspaceWrite:
		s.Workspace = w.v
	case m.raised.workspace:
		m.notes = append(m.notes, w.pos.String()+": "+w.key+": "+w.text+" has no effect: the user's own configuration says otherwise")
	case m.widens(l.kind, w.origin):
		s.Workspace = w.v
	}
	if w := l.doc.hooksPath; w != nil {
		m.p.Hooks.Path = w.v
	}
	switch w := l.doc.egress.ask; {
	case w == nil:
	case l.kind != repoLayer:
		m.p.Egress.Ask, m.raised.ask = w.v, true
	case !w.v:
		m.p.Egress.Ask = false
	case !m.raised.ask && m.widens(l.kind, w.origin):
		m.p.Egress.Ask = true
	}
}

func (m *merger) applyLists(l layer) {
	s, d := &m.p.Sandbox, &l.doc.sandbox
	// Whether the agent may write in the workspace without the layer's own
	// grants decides whether a grant in it widens anything.
	writable := s.Workspace == WorkspaceWrite || l.doc.sandbox.workspace != nil && !m.raised.workspace
	for _, w := range d.read {
		m.grant(l.kind, w, &s.Read, false, true)
	}
	for _, w := range d.write {
		m.grant(l.kind, w, &s.Write, true, writable)
	}
	for _, w := range d.sockets {
		m.grant(l.kind, w, &s.Sockets, true, false)
	}
	for _, w := range d.protect {
		s.Protect = append(s.Protect, Value{w.v, w.pos})
	}
	for _, w := range d.unprotect {
		if m.widens(l.kind, w.origin) {
			s.Unprotect = append(s.Unprotect, Value{w.v, w.pos})
		}
	}
	for _, w := range d.pass {
		have := slices.ContainsFunc(s.Env.Pass, func(v Value) bool { return v.Text == w.v })
		if !have && m.widens(l.kind, w.origin) {
			s.Env.Pass = append(s.Env.Pass, Value{w.v, w.pos})
		}
	}
	for _, w := range d.set {
		if m.widens(l.kind, w.origin) {
			s.Env.Set[w.v.name] = w.v.value
		}
	}
	limit := func(to *int64, w *word[int64]) {
		if w != nil && (l.kind != repoLayer || *to == 0 || w.v < *to) {
			*to = w.v
		}
	}
	limit(&s.Limits.Memory, d.memory)
	limit(&s.Limits.Pids, d.pids)
	limit(&s.Limits.OpenFiles, d.openFiles)
}

// grant adds a path. One that is refused stops the run when the user is
// answerable for it, and waits when only the branch's writer is.
func (m *merger) grant(kind layerKind, w word[string], to *[]Grant, write, freeInside bool) {
	g, err := m.g.grant(w, write)
	have := slices.ContainsFunc(*to, func(h Grant) bool { return h.Path == g.Path && h.Real == g.Real })
	switch {
	case err != nil && (kind != repoLayer || m.in.RepoTrusted):
		m.errs = append(m.errs, err)
	case err != nil:
		m.pend(w.origin, err)
	case have: // granted by an earlier layer
	case freeInside && m.g.inWorkspace(g), m.widens(kind, w.origin):
		*to = append(*to, g)
		m.noteGrant(w.origin, g)
	}
}

func (m *merger) applyEgress(l layer) {
	e, d := &m.p.Egress, &l.doc.egress
	e.Deny = append(e.Deny, plain(d.deny)...)
	for _, w := range d.allow {
		// What an earlier layer allows already is no widening.
		covered := slices.ContainsFunc(e.Allow, func(have Rule) bool {
			return have.Pos.File != w.pos.File && have.covers(&w.v) && subset(w.v.Private, have.Private)
		})
		if !covered && m.widens(l.kind, w.origin) {
			e.Allow = append(e.Allow, w.v)
		}
	}
	for _, w := range d.allowPrivate {
		if !slices.Contains(e.AllowPrivate, w.v) && m.widens(l.kind, w.origin) {
			e.AllowPrivate = append(e.AllowPrivate, w.v)
		}
	}
	e.Passthrough = append(e.Passthrough, counting(m, l.kind, d.passthrough)...)
	for _, w := range d.resolve {
		if m.widens(l.kind, w.origin) {
			e.Resolve[w.v.name] = w.v.value
			m.resolved[w.v.name] = w.pos
		}
	}
	if w := d.upstreamProxy; w != nil && m.widens(l.kind, w.origin) {
		e.UpstreamProxy = w.v
	}
	for _, w := range d.upstreamCA {
		m.grant(l.kind, w, &e.UpstreamCA, false, false)
	}
}

// counting returns the values that count.
func counting[T any](m *merger, kind layerKind, ws []word[T]) []T {
	var out []T
	for _, w := range ws {
		if m.widens(kind, w.origin) {
			out = append(out, w.v)
		}
	}
	return out
}

func (m *merger) applyRest(l layer) {
	p, d := m.p, l.doc
	p.Credentials = append(p.Credentials, counting(m, l.kind, d.credentials)...)
	if w := d.approvals.signers; w != nil && m.widens(l.kind, w.origin) {
		p.Approvals.Signers = w.v
	}
	if w := d.approvals.require; w != nil && (w.v == "signature" || l.kind != repoLayer || p.Approvals.Require == "") {
		p.Approvals.Require = w.v
	}
	if w := d.approvals.notAuthor; w != nil {
		p.Approvals.NotAuthor = w.v || l.kind == repoLayer && p.Approvals.NotAuthor
	}
	if w := d.watch.quarantine; w != nil {
		p.Watch.Quarantine = w.v || l.kind == repoLayer && p.Watch.Quarantine
	}
	if exec := counting(m, l.kind, d.watch.exec); len(exec) > 0 && len(exec) == len(d.watch.exec) {
		p.Watch.Exec = exec
	}
	if w := d.audit.keep; w != nil && (l.kind != repoLayer || p.Audit.Keep == "") {
		p.Audit.Keep = w.v
	}
	if w := d.audit.otlp; w != nil && (!w.v || m.widens(l.kind, w.origin)) {
		p.Audit.OTLP = w.v
	}
	for _, w := range d.extends {
		if m.widens(l.kind, w.origin) {
			p.Extends = append(p.Extends, Value{w.v, w.pos})
		}
	}
}

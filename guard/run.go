package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"agentguard/egress"
	"agentguard/guard/event"
	"agentguard/guard/policy"
	"agentguard/guard/surface"
	"agentguard/sandbox"
)

// RunOptions is what the command line says about one run.
type RunOptions struct {
	Argv  []string
	Flags policy.Flags
}

// Outcome is how a run ended.
type Outcome struct {
	Status int // agentguard's exit status
	Report Report
}

// Run starts a command in the sandbox and tells afterwards what it changed.
// An error means that agentguard could not enforce (status 125), or that the
// policy or the workspace is not one to run in.
func (g *Guard) Run(ctx context.Context, o RunOptions) (Outcome, error) {
	s, err := g.prepare(ctx, o)
	if err != nil {
		return Outcome{Status: 125}, err
	}
	defer s.close()
	status, err := s.runCommand(ctx)
	if err != nil && !isNotStarted(err) {
		return Outcome{Status: 125}, err
	}
	s.status = status
	report, checkErr := s.finish()
	if checkErr != nil {
		return Outcome{Status: 125}, fmt.Errorf("the end-of-run check did not finish: %w", checkErr)
	}
	if status == 0 && report.Undecided() {
		status = 3
	}
	return Outcome{Status: status, Report: report}, err
}

// session is one run between its preparation and its report.
type session struct {
	g        *Guard
	w        *Workspace
	policy   *policy.Policy
	argv     []string
	start    *start
	mark     *mark
	plan     *plan
	spec     sandbox.Spec
	recorder *event.Recorder
	names    refusedNames
	pending  *sandbox.Pending // until the command is started
	guarded  bool             // the name guard is in force
	status   int              // of the command
	sink     event.Sink       // while the command runs
	rules    surface.Rules
	left     []string // surfaces whose content was not kept

	testOnlyWithout sandbox.Layer // what the sandbox leaves out, to see that it is missed
}

// prepare is everything before the command: the line of a run up to its plan.
func (g *Guard) prepare(ctx context.Context, o RunOptions) (*session, error) {
	w, err := g.Open()
	if err != nil {
		return nil, err
	}
	if err := g.settle(w); err != nil {
		return nil, err
	}
	p, err := g.loadPolicy(w, o.Flags)
	if err != nil {
		return nil, err
	}
	s := &session{g: g, w: w, policy: p, argv: o.Argv, recorder: &event.Recorder{}}
	as := g.identity(w)
	// The namespaces are made while the surfaces are looked for.
	if s.pending, err = s.begin(ctx, as); err != nil {
		return nil, err
	}
	if err := s.plans(as); err != nil {
		s.pending.Cancel()
		return nil, err
	}
	return s, nil
}

// begin prepares a sandbox with the caller's own standard files.
func (s *session) begin(ctx context.Context, as *sandbox.Identity) (*sandbox.Pending, error) {
	stdout, _ := s.g.Stdout.(*os.File)
	stderr, _ := s.g.Stderr.(*os.File)
	return sandbox.Prepare(ctx, as, s.g.Stdin, stdout, stderr)
}

// plans takes the state before the run and works out what the sandbox holds.
func (s *session) plans(as *sandbox.Identity) error {
	g, w, p := s.g, s.w, s.policy
	defer g.progress("looking for what others would execute in " + quote(w.Root))()
	found, err := g.resolved(w, p)
	if err != nil {
		return err
	}
	s.rules = found.rules
	if s.start, err = w.takeStart(found.areas); err != nil {
		return err
	}
	if s.left, err = w.keep(found.areas); err != nil {
		return err
	}
	if err := w.makeCaches(as); err != nil {
		return err
	}
	if s.plan, err = g.planFor(w, p, found.areas, found.outside, s.argv[0]); err != nil {
		return err
	}
	for _, why := range s.plan.weak {
		s.recorder.Report(event.Event{Time: g.Now(), Kind: event.RunWeak, Subject: w.Root, Reason: why})
	}
	return nil
}

// hooksDirs returns the hooks directories and whatever else git's configuration
// names that it would execute: all of them, so that those inside the workspace
// are frozen, and those hooks directories outside that only the user's own
// configuration or agentguard can have chosen, so that they may be shown.
func (g *Guard) hooksDirs(w *Workspace) (all, outside []string, err error) {
	if w.Repo == nil {
		return nil, nil, nil
	}
	xdg := g.Env["XDG_CONFIG_HOME"]
	all, err = w.Repo.AllHooksDirs(g.home(), xdg)
	if err != nil {
		return nil, nil, fmt.Errorf("reading core.hooksPath: %w", err)
	}
	targets, err := g.configTargets(w)
	if err != nil {
		return nil, nil, err
	}
	all = append(all, targets...)
	effective, err := w.Repo.HooksPath(g.home(), xdg)
	if err != nil {
		return nil, nil, fmt.Errorf("reading core.hooksPath: %w", err)
	}
	dir := filepath.Clean(effective.Dir)
	ours := w.shimsState(dir)
	theirs := effective.Set && effective.Scope < 3 && !within(g.home(), dir) && dir != "/" // system or global
	switch {
	case within(dir, w.Root) || !isDirectory(dir):
	case ours != "":
		outside = append(outside, ours)
	case theirs:
		outside = append(outside, dir)
	}
	return all, outside, nil
}

// planFor gathers what decides the sandbox; it makes nothing.
func (g *Guard) planFor(w *Workspace, p *policy.Policy, areas []*area, hooks []string, argv0 string) (*plan, error) {
	as := g.identity(w)
	home := g.insideHome(as)
	tools, links := g.toolGrants(home, w.Root, argv0)
	tools = onlyReachable(tools, as)
	pl := &plan{
		host:   sandbox.Host{},
		base:   sandbox.BaseOptions{Home: home, SSHConfig: sshConfig()},
		policy: p, root: w.Root, tools: tools, links: links,
	}
	if err := pl.hooksInside(w, hooks, as); err != nil {
		return nil, err
	}
	if _, seen, err := resolveLinks(g.PWD); err == nil {
		for _, l := range seen {
			if !slices.Contains(pl.links, l) && !systemPath(l.path) {
				pl.links = append(pl.links, l)
			}
		}
	}
	for _, a := range areas {
		if a.prefix == ".git" {
			pl.gitDirs = append(pl.gitDirs, a.dir)
		}
		pl.areas = append(pl.areas, frozenMembers(a))
		pl.masks = append(pl.masks, a.sockets...)
	}
	secrets, err := masksOf(p, w.Root)
	if err != nil {
		return nil, err
	}
	pl.masks = append(pl.masks, secrets...)
	pl.cache = w.cacheDirs(home)
	pl.config = g.homeFiles(w, home, pl)
	return pl, nil
}

// identity is whom the command runs as: root works in another owner's tree as
// that owner, because root of a user namespace can do nothing there.
func (g *Guard) identity(w *Workspace) *sandbox.Identity {
	if os.Geteuid() != 0 || w.UID == 0 {
		return nil
	}
	return &sandbox.Identity{UID: w.UID, GID: w.GID}
}

// insideHome is the command's home directory: the caller's path, empty inside.
func (g *Guard) insideHome(as *sandbox.Identity) string {
	if home := g.home(); home != "" && !systemPath(home) {
		return filepath.Clean(home)
	}
	if as != nil {
		return "/home/" + strconv.Itoa(int(as.UID))
	}
	return "/home/agent"
}

// runCommand is the time in which the command runs: the proxy serves, the
// watcher tells, and both end with it.
func (s *session) runCommand(ctx context.Context) (int, error) {
	sink := event.Multi(s.recorder, s.g.Sink)
	proxy, err := egress.New(egress.Config{Policy: s.policy.Egress, Sink: sink})
	if err != nil {
		return 125, fmt.Errorf("starting the proxy: %w", err)
	}
	defer proxy.Close()
	if s.mark, err = s.w.setMark(s.start, runID(s.g.Now()), record{Command: filepath.Base(s.argv[0]), Began: s.g.Now().UTC().Format(time.RFC3339)}); err != nil {
		return 125, err
	}
	s.sink = sink
	s.spec = s.specFor()
	stop := s.watch(ctx, sink)
	defer stop()
	p, err := s.pending.Start(s.spec)
	s.pending = nil
	if err != nil {
		err = errors.Join(err, s.mark.clear()) // nothing ran: no check is owed
		s.mark = nil
		return 125, err
	}
	why := p.NoBroker()
	s.guarded = s.spec.Broker.Mode != sandbox.BrokerOff && why == ""
	if why != "" {
		sink.Report(event.Event{Time: s.g.Now(), Kind: event.RunWeak, Subject: "broker", Reason: "frozen names that are absent are told at the end and not refused: " + why})
	}
	if file := p.Listener(); file != nil {
		inner, err := net.FileListener(file)
		_ = file.Close() // the listener has its own
		if err != nil {
			return 125, fmt.Errorf("taking the sandbox's listener: %w", err)
		}
		go func() { _ = proxy.Serve(inner) }() // ends with Close
	}
	return p.Wait()
}

// watch accompanies the run; the check at its end decides, so a watcher that
// cannot start is told and no reason to stop. It is made while the sandbox is:
// what changes before it is ready is the check's alone.
func (s *session) watch(ctx context.Context, sink event.Sink) (stop func()) {
	if s.policy.Sandbox.Workspace != policy.WorkspaceWrite {
		return func() {}
	}
	sink = event.Multi(sink, s.liveSink())
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w, err := s.start.watcher(sink)
		if err == nil {
			err = w.Run(ctx)
		}
		if err != nil {
			sink.Report(event.Event{Time: s.g.Now(), Kind: event.WatchGap, Subject: s.w.Root, Reason: err.Error()})
		}
	}()
	return func() { cancel(); <-done }
}

// specFor is the sandbox of this run; it touches nothing.
func (s *session) specFor() sandbox.Spec {
	proxy := egress.Environ(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), sandbox.ProxyPort))
	spec := sandbox.Spec{
		Argv:    s.argv,
		Env:     s.g.environ(s.policy, s.plan.base.Home, proxy),
		Dir:     s.g.Dir,
		Mounts:  s.plan.mounts(),
		Write:   s.plan.writable(),
		Broker:  s.nameGuard(),
		Refused: s.nameRefused,
		Network: sandbox.Proxy,
		Without: s.testOnlyWithout,
	}
	return spec
}

// finish is the end-of-run check and what is told of it.
func (s *session) finish() (Report, error) {
	defer s.g.progress("checking what this run left")()
	after, err := s.w.compare(s.start)
	if err != nil {
		return Report{}, err
	}
	r, err := s.report(after)
	if err != nil {
		return Report{}, err
	}
	if err := s.w.carryOn(&r, after); err != nil {
		return Report{}, err
	}
	if len(after.findings) > 0 {
		if err := s.w.saveLast(s.start); err != nil {
			return Report{}, err
		}
	}
	if err := s.mark.clear(); err != nil {
		return Report{}, err
	}
	s.mark = nil
	return r, nil
}

func (s *session) close() {
	if s.pending != nil {
		s.pending.Cancel()
	}
	if s.mark != nil {
		_ = s.mark.lock.Close() // the mark stays: the check is owed
	}
}

// runID names a run: sortable by time, unique by process.
func runID(now time.Time) string {
	return fmt.Sprintf("%s-%d", now.UTC().Format("20060102T150405.000000000"), os.Getpid())
}

package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentguard/guard/event"
	"agentguard/guard/policy"
	"agentguard/sandbox/probe"
)

// selftestTime bounds all attempts of both processes together; they take a
// second. What has no answer by then is not proven.
const selftestTime = 2 * time.Minute

// SelftestOptions says how a self-test is followed.
type SelftestOptions struct {
	Progress func(done, of int) // called after each answer, one call at a time; may be nil
}

// selftest is one self-test between its planting and its judgement.
type selftest struct {
	g       *Guard
	place   *place
	planted *probe.Planted
	count   *counter

	testOnlyAlter func(*session) // takes a protection away, to see that it is missed
}

// Selftest tries everything that a run must refuse and everything that must
// work in one, against a throw-away repository with canaries: once without a
// sandbox and once in a run like any other. An error means that there is
// nothing to judge: the sandbox could not be started, or ctx ended it.
func (g *Guard) Selftest(ctx context.Context, o SelftestOptions) (Selftest, error) {
	return g.selftest(ctx, o, nil)
}

func (g *Guard) selftest(ctx context.Context, o SelftestOptions, alter func(*session)) (result Selftest, err error) {
	began := g.Now()
	t := &selftest{g: g, testOnlyAlter: alter, count: &counter{tell: o.Progress, of: 2 * len(probe.Attempts())}}
	if err = g.foreignGit(); err != nil {
		return Selftest{}, err
	}
	if t.place, err = g.selftestPlace(); err != nil {
		return Selftest{}, err
	}
	defer func() { err = errors.Join(err, t.place.remove()) }()
	self := []string{t.place.exe, probeStepCommand, probeWord}
	if t.planted, err = probe.Plant(t.place.plant, self); err != nil {
		return Selftest{}, interrupted(ctx, err)
	}
	defer func() {
		// The process that this stops gets a terminal's interrupt too.
		if closeErr := t.planted.Close(); ctx.Err() == nil {
			err = errors.Join(err, closeErr)
		}
	}()
	if err = t.place.give(t.planted); err != nil {
		return Selftest{}, err
	}
	outside, inside, err := t.both(ctx)
	if err != nil {
		return Selftest{}, interrupted(ctx, err)
	}
	return Selftest{Results: probe.Judge(outside, inside), Took: g.Now().Sub(began), As: t.place.who()}, nil
}

// interrupted puts the reason first that a person gave.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("the self-test was interrupted: %w", ctx.Err())
	}
	return err
}

// both makes the attempts outside and inside at the same time: they share no
// file, and of the servers and the process that they share each attempt wants
// an answer only.
func (t *selftest) both(ctx context.Context) (outside, inside []probe.Outcome, err error) {
	bounded, cancel := context.WithTimeout(ctx, selftestTime)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var err error
		outside, err = t.outside(bounded)
		done <- err
	}()
	inside, err = t.inside(bounded)
	if err != nil {
		cancel() // there is nothing to compare with
		<-done
		return nil, nil, err
	}
	return outside, inside, errors.Join(<-done, ctx.Err())
}

// outside makes the attempts as the caller, without a sandbox.
func (t *selftest) outside(ctx context.Context) ([]probe.Outcome, error) {
	text, err := json.Marshal(t.planted.Outside)
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, t.place.exe, probeCommand, probeWord)
	cmd.Dir, cmd.Env = t.planted.Outside.Workspace, t.environ(t.planted.Outside.Home)
	cmd.Stdin, cmd.Stdout = bytes.NewReader(text), io.MultiWriter(&said, t.count)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's keys are for this process
	cmd.WaitDelay = time.Second                           // for children that hold its output
	runErr := cmd.Run()
	outcomes, err := probe.Read(&said)
	if len(outcomes) == 0 {
		return nil, fmt.Errorf("making the attempts outside: %w", errors.Join(runErr, err))
	}
	return outcomes, nil // what is missing is not proven
}

// inside makes the attempts in a run like any other.
func (t *selftest) inside(ctx context.Context) ([]probe.Outcome, error) {
	text, err := json.Marshal(t.planted.Inside)
	if err != nil {
		return nil, err
	}
	s, err := openStreams(text, t.count)
	if err != nil {
		return nil, err
	}
	g := t.guard()
	g.Stdin, g.Stdout = s.in, s.out
	runErr := t.run(ctx, g)
	outcomes, err := s.outcomes()
	if len(outcomes) == 0 {
		return nil, fmt.Errorf("making the attempts inside: %w", errors.Join(runErr, err))
	}
	return outcomes, nil // what is missing is not proven
}

// guard is the call of agentguard whose run is tried: the caller's own, in the
// planted workspace, with the planted home directory and a state of its own.
func (t *selftest) guard() *Guard {
	g := *t.g
	w := t.planted.Inside.Workspace
	g.Dir, g.PWD, g.Stderr, g.Sink = w, w, io.Discard, event.Discard
	g.Env = map[string]string{}
	for _, kv := range t.environ(t.planted.Inside.Home) {
		name, value, _ := strings.Cut(kv, "=")
		g.Env[name] = value
	}
	g.Env["XDG_CONFIG_HOME"], g.Env["XDG_STATE_HOME"], g.Env["XDG_CACHE_HOME"] = t.place.config(), t.place.state(), t.place.cache()
	return &g
}

// environ is the caller's environment with another home directory, the canary
// that must not get in, and nothing that leads git elsewhere.
func (t *selftest) environ(home string) []string {
	env := maps.Clone(t.g.Env)
	maps.DeleteFunc(env, func(name, _ string) bool {
		return strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "XDG_")
	})
	env["HOME"] = home
	for _, kv := range t.planted.Environ {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// run is [Guard.Run] but for what a test takes away between its parts.
func (t *selftest) run(ctx context.Context, g *Guard) error {
	if err := g.trustPlanted(); err != nil {
		return err
	}
	s, err := g.prepare(ctx, RunOptions{
		Argv:  []string{t.place.exe, probeCommand, probeWord},
		Flags: policy.Flags{Read: []string{t.place.exe}},
	})
	if err != nil {
		return err
	}
	defer s.close()
	if t.testOnlyAlter != nil {
		t.testOnlyAlter(s)
	}
	if _, err := s.runCommand(ctx); err != nil {
		return err
	}
	_, err = s.finish()
	return err
}

// trustPlanted says yes to the planted policy file.
func (g *Guard) trustPlanted() error {
	w, err := g.Open()
	if err != nil {
		return err
	}
	src, err := policy.ReadSource(filepath.Join(w.Root, policy.FileName), policy.FileName)
	if err != nil {
		return err
	}
	if err := privateDir(w.trust().Dir); err != nil {
		return err
	}
	return w.trust().Record(w.ID, src)
}

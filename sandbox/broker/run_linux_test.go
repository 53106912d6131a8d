//go:build amd64 || arm64

package broker

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

func runInit(s setup) (*outcome, error) {
	o := &outcome{Counts: map[string]uint64{}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var counts Counters
	var mu sync.Mutex
	cfg := Config{Rules: testRules{}, Restrict: restrict, Counters: &counts,
		Report: func(r Refusal) { mu.Lock(); o.Refusals = append(o.Refusals, r); mu.Unlock() }}
	o.FDs[0] = openFDs()
	ready := make(chan struct{})
	if s.KillSelf {
		go func() { <-ready; time.Sleep(300 * time.Millisecond); cancel() }()
	}
	status, err := 0, error(nil)
	switch {
	case s.NoBroker:
		close(ready)
		status, err = runThread(s, nil, ready)
	case s.Split:
		status, err = runSplit(ctx, cancel, s, cfg, ready)
	default:
		status, err = runAlone(ctx, cancel, s, cfg, ready)
	}
	if err != nil {
		return nil, err
	}
	o.Status, o.FDs[1] = status, openFDs()
	for k, v := range map[string]uint64{"calls": counts.Calls.Load(), "answered": counts.Answered.Load(), "refused": counts.Refused.Load(),
		"continued": counts.Continued.Load(), "umask": counts.Umask.Load(), "helpers": counts.Helpers.Load(), "gone": counts.Gone.Load(),
		"slow": counts.Slow.Load(), "dropped": counts.Dropped.Load()} {
		o.Counts[k] = v
	}
	return o, nil
}

// runAlone lets Serve start the command.
func runAlone(ctx context.Context, cancel func(), s setup, cfg Config, ready chan struct{}) (int, error) {
	args, env, err := commandOf(s)
	if err != nil {
		return 0, err
	}
	type begun struct {
		pid int
		err error
	}
	started := make(chan begun, 1)
	cfg.Command = &Command{Path: args[0], Args: args, Env: env, Dir: s.Dir, Started: func(pid int, err error) { started <- begun{pid, err} }}
	served := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := Available(); err != nil {
			served <- err
			return
		}
		served <- Serve(ctx, cfg, ready)
	}()
	select {
	case err := <-served:
		return 0, fmt.Errorf("serving ended: %w", err)
	case b := <-started:
		if b.err != nil {
			return 0, b.err
		}
		var ws unix.WaitStatus
		for {
			_, err := unix.Wait4(b.pid, &ws, 0, nil)
			if err == nil {
				break
			}
			if err != unix.EINTR {
				return 0, err
			}
		}
		cancel()
		return ws.ExitStatus(), <-served
	}
}

// runSplit serves the listener of a thread that starts the command.
func runSplit(ctx context.Context, cancel func(), s setup, cfg Config, ready chan struct{}) (int, error) {
	listeners := make(chan int, 1)
	type ended struct {
		status int
		err    error
	}
	done := make(chan ended, 1)
	go func() {
		runtime.LockOSThread()
		status, err := runThread(s, listeners, ready)
		cancel()
		done <- ended{status, err}
	}()
	if cfg.Listener = <-listeners; cfg.Listener < 0 {
		e := <-done
		return 0, e.err
	}
	served := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		served <- Serve(ctx, cfg, ready)
	}()
	if err := <-served; err != nil {
		return 0, fmt.Errorf("serving: %w", err)
	}
	e := <-done
	return e.status, e.err
}

func commandOf(s setup) (args, env []string, err error) {
	args = s.Args
	if s.Role != "" {
		args = append([]string{os.Getenv("BROKER_TEST_EXE")}, args...)
	}
	err = os.Setenv(roleEnv, s.Role)
	return args, os.Environ(), err
}

// runThread is a thread that is restricted, and starts the command.
func runThread(s setup, listeners chan<- int, ready <-chan struct{}) (int, error) {
	if err := restrict(); err != nil {
		if listeners != nil {
			listeners <- -1
		}
		return 0, fmt.Errorf("restricting the thread: %w", err)
	}
	if listeners != nil {
		l, err := Install()
		listeners <- l
		if err != nil {
			return 0, err
		}
	}
	<-ready
	args, env, err := commandOf(s)
	if err != nil {
		return 0, err
	}
	p, err := os.StartProcess(args[0], args, &os.ProcAttr{Dir: s.Dir, Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 0, err
	}
	state, err := p.Wait()
	if err != nil {
		return 0, err
	}
	return state.ExitCode(), nil
}

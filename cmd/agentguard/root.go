package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentguard/guard"
	"agentguard/guard/event"
)

// version is set when a release is linked.
var version = "development"

// statusError carries an exit status whose reason has been told already.
type statusError struct{ status int }

func (e *statusError) Error() string { return "" }

// app is one call of the command.
type app struct {
	g *guard.Guard
}

// run is the whole command with everything that it may touch handed in.
func run(ctx context.Context, args, environ []string, stdin, stdout, stderr *os.File) int {
	if status, mine := guard.Probe(args, stdin, stdout, stderr); mine {
		return status
	}
	g, err := newGuard(environ, stdin, stdout, stderr)
	if err != nil {
		return told(stderr, err)
	}
	a := &app{g: g}
	cmd := a.root()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err = cmd.ExecuteContext(ctx)
	if s, ok := errors.AsType[*statusError](err); ok {
		return s.status
	}
	return told(stderr, err)
}

func newGuard(environ []string, stdin, stdout, stderr *os.File) (*guard.Guard, error) {
	env := make(map[string]string, len(environ))
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok {
			env[name] = value
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	physical, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &guard.Guard{
		Dir: physical, PWD: dir, Env: env, Stdin: stdin, Stdout: stdout, Stderr: stderr,
		Sink: event.Discard, Now: time.Now, Exe: exe, Version: version,
	}, nil
}

func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agentguard",
		Short: "put a coding agent into a sandbox, and watch what would execute",
		Long: `agentguard runs a coding agent (or any command) in a sandbox in one git
repository, keeps hooks and build files read-only to it, lets it reach only the
hosts you name, and tells before commit and merge what would execute differently.`,
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              cobra.ArbitraryArgs, // so that a wrong word comes to RunE
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("there is no command %q", args[0])}
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(a.commands()...)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	markUsage(cmd)
	return cmd
}

// usageError is what is wrong with a command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// markUsage makes the complaints about arguments of cmd and all commands below
// it usage errors: cobra's own carry no type.
func markUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &usageError{err}
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		markUsage(c)
	}
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Printf("agentguard %s\n", version)
			return nil
		},
	}
}

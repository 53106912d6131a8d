package main

import (
	"errors"

	"github.com/spf13/cobra"

	"agentguard/guard"
	"agentguard/guard/policy"
	"agentguard/sandbox"
)

// policyFlags are the parts of the policy that a command line may set.
func policyFlags(cmd *cobra.Command, f *policy.Flags) {
	fs := cmd.Flags()
	fs.StringVar(&f.Workspace, "workspace", "", "read or write: what the command may do in the workspace")
	fs.StringVar(&f.Broker, "broker", "", "auto, require or off: refuse frozen names while the command runs")
	fs.StringVar(&f.Profile, "profile", "", "strict or balanced: how much is frozen")
	fs.StringArrayVar(&f.Read, "read", nil, "show a `path` outside the workspace, read-only")
	fs.StringArrayVar(&f.Write, "write", nil, "show a `path` outside the workspace, writable")
	fs.StringArrayVar(&f.Protect, "protect", nil, "freeze what a `glob` matches as well")
	fs.StringArrayVar(&f.Unprotect, "unprotect", nil, "lower what a `glob` matches from frozen to review")
	fs.StringArrayVar(&f.EnvPass, "env", nil, "pass the environment variable `name` through")
	fs.StringArrayVar(&f.Allow, "allow", nil, "let requests to `host[:port]` out")
}

func (a *app) runCmd() *cobra.Command {
	var o guard.RunOptions
	cmd := &cobra.Command{
		Use:   "run [flags] -- command [argument...]",
		Short: "run a command in the sandbox",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Argv = args
			return a.inSandbox(cmd, o)
		},
	}
	cmd.Flags().SetInterspersed(false)
	policyFlags(cmd, &o.Flags)
	return cmd
}

func (a *app) shellCmd() *cobra.Command {
	var o guard.RunOptions
	cmd := &cobra.Command{
		Use:   "shell [flags]",
		Short: "open a shell in the sandbox, to look around",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Argv = []string{a.g.Shell()}
			return a.inSandbox(cmd, o)
		},
	}
	policyFlags(cmd, &o.Flags)
	return cmd
}

func (a *app) inSandbox(cmd *cobra.Command, o guard.RunOptions) error {
	out, err := a.g.Run(cmd.Context(), o)
	if e, ok := errors.AsType[*sandbox.NotStartedError](err); ok {
		tell(cmd.ErrOrStderr(), e)
		err = nil
	}
	if err != nil {
		return &enforceError{err}
	}
	out.Report.Text(cmd.ErrOrStderr())
	if out.Status == 0 {
		return nil
	}
	return &statusError{out.Status}
}

// enforceError is what kept a command from being run in the sandbox.
type enforceError struct{ err error }

func (e *enforceError) Error() string { return e.err.Error() }
func (e *enforceError) Unwrap() error { return e.err }

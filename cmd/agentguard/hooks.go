package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"agentguard/guard"
)

func (a *app) hooksCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "hooks", Short: "own which hooks git runs in this repository",
		Long: `The tracked hooks directory (.githooks, or hooks.path of the policy) is what
people review; git runs copies of what you approved, kept outside the work tree.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.hooksInstallCmd(), a.hooksStatusCmd(), a.hooksApproveCmd(), a.hooksUninstallCmd())
	return cmd
}

func (a *app) hooksInstallCmd() *cobra.Command {
	var o guard.HooksOptions
	var json bool
	cmd := &cobra.Command{
		Use: "install", Short: "point git at copies of the tracked hooks as they are now", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.g.HooksInstall(o)
			return a.tellHooks(cmd, r, err, json)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Adopt, "adopt", false, "copy the hooks that git runs now into the tracked directory first")
	f.BoolVar(&o.Replace, "replace", false, "take over from another hooks directory, whose hooks then no longer run")
	f.BoolVar(&json, "json", false, "tell it for a program")
	return cmd
}

func (a *app) hooksStatusCmd() *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use: "status", Short: "say which hooks git runs, and what waits", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.g.HooksStatus()
			return a.tellHooks(cmd, r, err, json)
		},
	}
	cmd.Flags().BoolVar(&json, "json", false, "tell it for a program")
	return cmd
}

func (a *app) hooksApproveCmd() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "approve", Short: "see what changed in the tracked hooks, and let it run", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.g.HooksPropose()
			if err != nil {
				return err
			}
			diff := p.Diff()
			if diff == "" {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing waits: the tracked hooks are as approved")
				return nil
			}
			fmt.Fprint(cmd.OutOrStdout(), diff)
			if !yes && !a.confirm(cmd, "let git run exactly this?") {
				return &statusError{1}
			}
			r, err := p.Approve()
			return a.tellHooks(cmd, r, err, false)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) hooksUninstallCmd() *cobra.Command {
	return &cobra.Command{
		Use: "uninstall", Short: "give core.hooksPath its earlier value back", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.g.HooksUninstall()
			if err == nil {
				r.Text(cmd.OutOrStdout())
			}
			return err
		},
	}
}

// tellHooks prints a report; anything in the way of the approved hooks is a
// finding.
func (a *app) tellHooks(cmd *cobra.Command, r guard.HooksReport, err error, json bool) error {
	if err != nil {
		return err
	}
	if json {
		if err := r.JSON(cmd.OutOrStdout()); err != nil {
			return err
		}
	} else {
		r.Text(cmd.OutOrStdout())
	}
	if !r.Clean() {
		return &statusError{1}
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) approveCmd() *cobra.Command {
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "approve [flags] path...",
		Short: "accept what a surface would execute from now on",
		Long: `approve shows what would execute and records that you want exactly that: what is
staged, and what the last run left on disk, in the index and in refs. A path may
be a directory. Where the repository has an .agentguard.sum its lines follow.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := pathsOrAll(args, all); err != nil {
				return err
			}
			p, err := a.g.Propose(args, all)
			if err != nil {
				return err
			}
			if len(p.List) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "agentguard: nothing is undecided there")
				return nil
			}
			for _, prop := range p.List {
				prop.Whole(cmd.OutOrStdout())
				fmt.Fprintf(cmd.OutOrStdout(), "    in: %s\n", strings.Join(prop.Places, ", "))
			}
			if !yes && !a.confirm(cmd, "accept this?") {
				return &statusError{1}
			}
			did, err := a.g.Approve(p)
			for _, line := range did {
				fmt.Fprintf(cmd.ErrOrStderr(), "agentguard: %s\n", line)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "everything that is undecided")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) restoreCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "restore [flags] path...",
		Short: "put surfaces back as they were before the last run",
		Long: `restore puts back what the last run changed and nobody accepted. What is in the
way is moved to a quarantine and never deleted. What is in the index or in refs
is left to you, with the command that mends it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := pathsOrAll(args, all); err != nil {
				return err
			}
			list, err := a.g.Restore(args, all)
			if err == nil && len(list) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "agentguard: nothing is undecided there")
			}
			left := false
			for _, r := range list {
				fmt.Fprintln(cmd.OutOrStdout(), r)
				left = left || r.Problem != ""
			}
			if err == nil && left {
				err = &statusError{1}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "everything that is undecided")
	return cmd
}

func pathsOrAll(args []string, all bool) error {
	switch {
	case len(args) == 0 && !all:
		return &usageError{errors.New("no path is given: name one, or say --all")}
	case len(args) > 0 && all:
		return &usageError{errors.New("paths and --all together: say one of them")}
	}
	return nil
}

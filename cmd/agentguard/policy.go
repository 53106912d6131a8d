package main

import (
	"github.com/spf13/cobra"

	"agentguard/guard/policy"
)

func (a *app) policyCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "look at what a run is given", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.policyShowCmd())
	return cmd
}

func (a *app) policyShowCmd() *cobra.Command {
	var flags policy.Flags
	var json bool
	cmd := &cobra.Command{
		Use:   "show [flags] [-- command]",
		Short: "print every path, frozen file, host and variable that a run would be given",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			argv0 := a.g.Shell()
			if len(args) > 0 {
				argv0 = args[0]
			}
			s, err := a.g.PolicyShow(flags, argv0)
			if err != nil {
				return err
			}
			if json {
				return s.JSON(cmd.OutOrStdout())
			}
			s.Text(cmd.OutOrStdout())
			return nil
		},
	}
	cmd.Flags().SetInterspersed(false)
	policyFlags(cmd, &flags)
	cmd.Flags().BoolVar(&json, "json", false, "tell it for a program")
	return cmd
}

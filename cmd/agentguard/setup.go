package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentguard/guard"
)

func (a *app) initCmd() *cobra.Command {
	var o guard.InitOptions
	cmd := &cobra.Command{
		Use: "init", Short: "set this repository up", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			did, err := a.g.Init(o)
			for _, line := range did {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "say what would be done")
	cmd.Flags().BoolVar(&o.Hooks, "hooks", false, "install the hooks too")
	return cmd
}

func (a *app) trustCmd() *cobra.Command {
	var yes, show, revoke bool
	cmd := &cobra.Command{
		Use: "trust", Short: "say yes to what this repository's .agentguard.yaml opens", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, st, err := a.g.TrustState()
			if err != nil && !revoke {
				return err
			}
			out := cmd.OutOrStdout()
			switch {
			case revoke:
				n, err := a.g.Distrust(w)
				if err == nil {
					fmt.Fprintf(out, "took back %d\n", n)
				}
				return err
			case show:
				fmt.Fprintf(out, "%s\nsha256 %s\ntrusted: %v\n", st.File, st.SHA256, st.Trusted)
				printLines(cmd, "waits for a yes:", st.Waits)
				return nil
			case st.Trusted:
				fmt.Fprintln(out, "you have said yes to this file already")
				return nil
			}
			printLines(cmd, "this file opens:", st.Waits)
			if !yes && !a.confirm(cmd, "say yes to exactly this file, in this clone?") {
				return &statusError{1}
			}
			if err := a.g.Trust(w, st); err != nil {
				return err
			}
			fmt.Fprintln(out, "recorded, for exactly this file in this clone")
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&yes, "yes", false, "do not ask")
	f.BoolVar(&show, "show", false, "say how things stand")
	f.BoolVar(&revoke, "revoke", false, "take every yes for this repository back")
	return cmd
}

func printLines(cmd *cobra.Command, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(cmd.OutOrStdout(), title)
	for _, l := range lines {
		fmt.Fprintf(cmd.OutOrStdout(), "  %s\n", l)
	}
}

// confirm asks on the terminal; without one the answer is no.
func (a *app) confirm(cmd *cobra.Command, question string) bool {
	if !isTerminal(a.g.Stdin) {
		fmt.Fprintf(cmd.ErrOrStderr(), "agentguard: %s there is no terminal to ask on; --yes says yes\n", question)
		return false
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	line, _ := bufio.NewReader(a.g.Stdin).ReadString('\n')
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}

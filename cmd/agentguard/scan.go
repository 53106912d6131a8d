package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"agentguard/guard"
)

func (a *app) scanCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "scan [flags] [directory]",
		Short: "list everything in this repository that others execute",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if err := a.g.ScanDir(args[0]); err != nil {
					return err
				}
			}
			list, err := a.g.Scan()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd, list)
			}
			return guard.ScanText(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// printJSON writes one value for programs.
func printJSON(cmd *cobra.Command, v any) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

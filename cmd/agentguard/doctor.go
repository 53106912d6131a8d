package main

import (
	"github.com/spf13/cobra"
)

func (a *app) doctorCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "say what a run stands on here, and what to mend", Args: cobra.NoArgs,
		Long: `doctor looks at the machine, at agentguard's own directories and at this
workspace, and changes nothing. It works outside a repository too.

Exit status: 0 a run can be in force, 1 something is to be mended, 125 no
sandbox is possible.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := a.g.Doctor(cmd.Context())
			var err error
			if asJSON {
				err = d.JSON(cmd.OutOrStdout())
			} else {
				d.Text(cmd.OutOrStdout())
			}
			switch {
			case err != nil:
				return err
			case !d.Possible():
				return &statusError{125}
			case d.Findings() > 0:
				return &statusError{1}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the checks as JSON")
	return cmd
}

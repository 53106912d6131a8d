package main

import "github.com/spf13/cobra"

// commands lists every command, in the order of the help.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.runCmd(),
		a.shellCmd(),
		a.initCmd(),
		a.trustCmd(),
		a.scanCmd(),
		a.checkCmd(),
		a.approveCmd(),
		a.restoreCmd(),
		a.verifyCmd(),
		a.hooksCmd(),
		a.watchCmd(),
		a.policyCmd(),
		a.doctorCmd(),
		a.selftestCmd(),
		a.versionCmd(),
	}
}

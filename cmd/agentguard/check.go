package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"agentguard/guard"
)

func (a *app) checkCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "say what is staged that would execute something nobody approved",
		Long: `check compares what is staged with HEAD and with your approvals; it is what a
pre-commit hook runs. It looks at nothing that is not staged.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.g.Check()
			if err != nil {
				return err
			}
			if asJSON {
				if r.Findings == nil {
					r.Findings = []guard.Unapproved{}
				}
				if err := printJSON(cmd, r); err != nil {
					return err
				}
			}
			if len(r.Findings) == 0 {
				return nil
			}
			if !asJSON {
				tellCheck(cmd, r)
			}
			return &statusError{1}
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func tellCheck(cmd *cobra.Command, r guard.CheckResult) {
	for _, f := range r.Findings {
		f.Text(cmd.OutOrStdout())
	}
	w := cmd.ErrOrStderr()
	fmt.Fprintln(w, "agentguard: what is staged would execute something you have not approved")
	if r.First {
		fmt.Fprintln(w, "agentguard: this is the first commit, so everything in it is new: read the list once, then agentguard approve --all")
	}
	fmt.Fprintln(w, "agentguard: accept it: agentguard approve PATH...   leave it out: git restore --staged -- PATH...")
}

func (a *app) verifyCmd() *cobra.Command {
	var o guard.VerifyOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify --base revision [--head revision]",
		Short: "say what a merge would make others execute that the base does not accept",
		Long: `verify compares two trees, and the commits between them, in the object store.
It checks nothing out and runs nothing. What the base holds, and what the base's
.agentguard.sum lists, is accepted; what the head says about itself never counts.
Give the base as your code host reports it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Base == "" {
				return &usageError{errors.New("--base is not given: name the revision that is merged into")}
			}
			r, err := a.g.Verify(o)
			if err != nil {
				return err
			}
			for _, note := range r.Notes {
				fmt.Fprintf(cmd.ErrOrStderr(), "agentguard: %s\n", note)
			}
			if asJSON {
				if err := printJSON(cmd, r); err != nil {
					return err
				}
			}
			if len(r.Findings) == 0 {
				return nil
			}
			if !asJSON {
				tellVerify(cmd, r)
			}
			return &statusError{1}
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Base, "base", "", "the `revision` that is merged into, and trusted")
	f.StringVar(&o.Head, "head", "", "the `revision` that is judged (default HEAD)")
	f.BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func tellVerify(cmd *cobra.Command, r *guard.VerifyResult) {
	for _, f := range r.Findings {
		f.Text(cmd.OutOrStdout())
	}
	w := cmd.ErrOrStderr()
	fmt.Fprintf(w, "agentguard: %.12s would execute something that %.12s does not accept\n", r.Head, r.Base)
	fmt.Fprintln(w, "agentguard: accept it: a person reviews it, and agentguard approve PATH... puts its line into the base's .agentguard.sum")
}

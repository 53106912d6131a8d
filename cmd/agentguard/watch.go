package main

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"agentguard/guard"
)

func (a *app) watchCmd() *cobra.Command {
	var o guard.WatchOptions
	cmd := &cobra.Command{
		Use: "watch", Short: "tell every change of what would execute, where an agent works without the sandbox",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			changed, err := a.g.Watch(ctx, o)
			if err == nil && changed {
				return &statusError{1}
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&o.For, "for", 0, "end by itself after a `time`, as 10m; 0 is until Ctrl-C")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "one JSON object a line")
	return cmd
}

package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"agentguard/guard"
)

func (a *app) selftestCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "selftest", Short: "try what must be refused, and what must work", Args: cobra.NoArgs,
		Long: `selftest makes a throw-away repository with canaries and tries everything that a
run must refuse: each attempt has to succeed without the sandbox on this machine,
and to be refused in it. It tries what must work inside as well. It touches
nothing of yours and leaves nothing. The policy that it tries is the built-in one
with one host allowed, not what your files open.

Exit status: 0 all proven, 1 something failed or is not proven, 125 could not.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.selftest(cmd, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the results as JSON")
	return cmd
}

func (a *app) selftest(cmd *cobra.Command, asJSON bool) error {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), ends...)
	defer stop()
	line := &progressLine{}
	if f, ok := cmd.ErrOrStderr().(*os.File); ok && isTerminal(f) {
		line.w = f
	}
	line.from = a.g.Now().Add(time.Second)
	t, err := a.g.Selftest(ctx, guard.SelftestOptions{Progress: func(done, of int) {
		line.show(a.g.Now(), fmt.Sprintf("agentguard: self-test: %d of %d answers", done, of))
	}})
	line.clear()
	if err != nil {
		return &enforceError{err}
	}
	if asJSON {
		err = t.JSON(cmd.OutOrStdout())
	} else {
		t.Text(cmd.OutOrStdout())
	}
	if err == nil && t.Red() {
		err = &statusError{1}
	}
	return err
}

// progressLine is one line that is written over itself, on a terminal and from
// a time on: what is done at once needs none.
type progressLine struct {
	w     io.Writer // nil without a terminal
	from  time.Time
	shown bool
}

func (l *progressLine) show(now time.Time, text string) {
	if l.w == nil || now.Before(l.from) {
		return
	}
	l.shown = true
	fmt.Fprintf(l.w, "\r\x1b[K%s", text)
}

func (l *progressLine) clear() {
	if l.shown {
		fmt.Fprint(l.w, "\r\x1b[K")
	}
}

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets a script start the command as a process of its own: the test
// binary is agentguard when it is called by that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"agentguard": func() {
			os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestScript runs what a user types, as written in testdata/script. Each
// script has a home of its own, no system-wide git configuration and an
// identity for commits.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setupScript,
		Condition:           scriptCondition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  cmdExits,
			"start":  cmdStart,
			"expect": cmdExpect,
			"signal": cmdSignal,
			"finish": cmdFinish,
			"origin": cmdOrigin,
		},
	})
}

const scriptGitConfig = `[user]
	name = Test
	email = test@example.com
[init]
	defaultBranch = main
`

func setupScript(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(scriptGitConfig), 0o644); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	env.Setenv("LC_ALL", "C")
	env.Values[jobsKey{}] = &jobs{named: map[string]*job{}}
	return nil
}

// scriptCondition answers [bwrap] (a sandbox can be made here) and [root].
func scriptCondition(cond string) (bool, error) {
	switch cond {
	case "bwrap":
		err := sandboxWorks()
		if err != nil && slices.Contains(strings.Split(os.Getenv("AGENTGUARD_REQUIRE"), ","), "bwrap") {
			return false, err
		}
		return err == nil, nil
	case "root":
		return os.Geteuid() == 0, nil
	}
	return false, errors.New("unknown condition " + cond)
}

// sandboxWorks asks bubblewrap itself and not the code under test: a fault in
// that must fail a script, not skip it.
var sandboxWorks = sync.OnceValue(func() error {
	return exec.Command("bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "true").Run()
})

// cmdExits is `exits STATUS COMMAND...`: like exec, but the status is exact.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}

package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

func landlockVersion() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

func detect(ctx context.Context) Support {
	s := Support{Landlock: landlockVersion()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		s.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	s.Bwrap, s.Err = findBwrap()
	if s.Err != nil {
		return s
	}
	cmd := exec.CommandContext(ctx, s.Bwrap, "--version")
	cmd.Env = []string{}
	out, err := cmd.Output()
	if err != nil {
		s.Err = &UnavailableError{Need: "bubblewrap does not run", Why: err.Error()}
		return s
	}
	s.BwrapVersion = strings.TrimSpace(strings.TrimPrefix(string(out), "bubblewrap"))
	s.NoBroker, s.Err = tryEmpty(ctx)
	return s
}

// tryEmpty starts a sandbox around a command that cannot exist, which puts
// every part in force and runs nothing.
func tryEmpty(ctx context.Context) (noBroker string, err error) {
	p, err := Start(ctx, Spec{Argv: []string{"/nothing"}, Dir: "/", Broker: Broker{Mode: BrokerAuto}, Mounts: []Mount{
		{Kind: Proc, Target: "/proc"}, {Kind: Tmpfs, Target: "/dev", Perm: 0o755}, {Kind: Pts, Target: "/dev/pts"},
	}})
	if err != nil {
		return "", err
	}
	_, err = p.Wait()
	if e, ok := errors.AsType[*NotStartedError](err); ok && e.Status == 127 {
		return p.NoBroker(), nil
	}
	if err == nil {
		err = os.ErrInvalid
	}
	return "", err
}

package probe

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// The steps, as they stand on a command line.
const (
	stepNothing  = "nothing"
	stepTarget   = "selftest-target"
	stepMount    = "mount"
	stepUnmount  = "umount"
	stepRemount  = "remount"
	stepOpenTree = "open-tree"
	stepChroot   = "chroot"
	stepSetns    = "setns"
	stepSocket   = "socket"
	stepInject   = "inject"

	targetReady = "ready\n"

	// stepFailed is the status of a step that met something else than an
	// errno; every errno is below it.
	stepFailed = 255
)

// Step runs the part of an attempt that needs a process of its own and gives
// the exit status: 0, the errno it met, or 255. It is the body of the command
// in Env.Self.
func Step(args []string, stdin io.Reader, stdout io.Writer) int {
	err := errors.New("no step is named")
	if len(args) > 0 {
		err = step(args[0], args[1:], stdin, stdout)
	}
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok && e > 0 && e < stepFailed {
		return int(e)
	}
	_, _ = fmt.Fprintln(stdout, err) // the status says it failed
	return stepFailed
}

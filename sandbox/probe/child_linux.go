package probe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// start makes a command of a step.
func start(env Env, name string, args ...any) (*exec.Cmd, error) {
	if len(env.Self) == 0 {
		return nil, errors.New("no command for steps in the environment of the probe")
	}
	argv := append(append([]string{}, env.Self...), name)
	for _, a := range args {
		argv = append(argv, fmt.Sprint(a))
	}
	return exec.Command(argv[0], argv[1:]...), nil
}

// wait gives the errno that a step ended with.
func wait(cmd *exec.Cmd) error {
	var said bytes.Buffer
	cmd.Stdout = &said
	if err := cmd.Start(); err != nil {
		return err
	}
	err := cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	if code := exit.ExitCode(); code > 0 && code < stepFailed {
		return syscall.Errno(code)
	}
	return fmt.Errorf("step: %v: %s", exit, strings.TrimSpace(said.String()))
}

// inNamespace runs a step in new namespaces.
func inNamespace(env Env, flags uintptr, name string, args ...any) error {
	cmd, err := start(env, name, args...)
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	if flags&unix.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return wait(cmd)
}

// withRights runs a step with the rights that its call asks for, as far as
// this process can get them: in a user namespace, else (as root) in the other
// namespaces alone, else as it is. The last refusal counts; success by any of
// the ways is success.
func withRights(env Env, flags uintptr, name string, args ...any) error {
	err := inNamespace(env, flags|unix.CLONE_NEWUSER, name, args...)
	if err == nil {
		return nil
	}
	if flags != 0 {
		if err := inNamespace(env, flags, name, args...); err == nil {
			return nil
		}
	}
	if !env.Inside {
		return err // without namespaces of its own a step would change the machine's
	}
	return inNamespace(env, 0, name, args...)
}

// onTerminal runs a step in a session of its own on a new terminal.
func onTerminal(env Env, name string, args ...any) error {
	control, terminal, err := openTerminal()
	if err != nil {
		return fmt.Errorf("no terminal to try on: %v", err) // hides the errno: it refuses nothing
	}
	defer control.Close()
	defer terminal.Close()
	cmd, err := start(env, name, args...)
	if err != nil {
		return err
	}
	cmd.Stdin = terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return wait(cmd)
}

func openTerminal() (control, terminal *os.File, err error) {
	control, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, errors.Join(err, control.Close())
	}
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, nil, errors.Join(err, control.Close())
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, errors.Join(err, control.Close())
	}
	return control, terminal, nil
}

// killOwn kills a process that this one starts.
func killOwn(env Env) error {
	cmd, err := start(env, stepTarget)
	if err != nil {
		return err
	}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer hold.Close()
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := unix.Kill(cmd.Process.Pid, unix.SIGKILL); err != nil {
		return errors.Join(err, hold.Close(), cmd.Wait())
	}
	_ = cmd.Wait() // ends with the signal
	return nil
}

// processControls are the everyday calls that only Linux names so.
func processControls() []attempt {
	return []attempt{
		control("works.pty", "open a terminal", func(Env) error {
			control, terminal, err := openTerminal()
			if err != nil {
				return err
			}
			return errors.Join(control.Close(), terminal.Close())
		}),
		control("works.trace", "trace an own child, as a debugger does", func(env Env) error {
			return ownChild(env, seize)
		}),
		control("works.signal", "signal an own child", func(env Env) error {
			return ownChild(env, func(pid int) error { return unix.Kill(pid, unix.SIGTERM) })
		}),
	}
}

// ownChild does something to a child that waits.
func ownChild(env Env, do func(pid int) error) error {
	cmd, err := start(env, stepTarget)
	if err != nil {
		return err
	}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err = io.ReadFull(said, make([]byte, len(targetReady))); err == nil {
		err = do(cmd.Process.Pid)
	}
	_ = hold.Close() // ends it
	_ = cmd.Wait()   // by that or by the signal
	return err
}

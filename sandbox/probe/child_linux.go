package probe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

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

// setuidPrograms ask on their standard streams before they do anything, on
// every distribution that has them.
var setuidPrograms = []string{"/usr/bin/passwd", "/usr/bin/su", "/bin/su", "/usr/bin/chsh", "/usr/bin/sudo"}

// runSetuid succeeds if a set-uid program gets rights that this process does
// not have. A real root starts it as nobody, which can only gain.
func runSetuid(env Env) error {
	program := ""
	for _, p := range setuidPrograms {
		if info, err := os.Stat(p); err == nil && info.Mode()&os.ModeSetuid != 0 {
			program = p
			break
		}
	}
	if program == "" {
		if env.Inside {
			return refused("no set-uid program is in the sandbox")
		}
		return absent("no set-uid program of %v is on this machine", setuidPrograms)
	}
	cmd := exec.Command(program)
	cmd.Dir = "/"
	if before, err := credentials(os.Getpid()); err != nil {
		return err
	} else if os.Geteuid() == 0 && before.capabilities != "0000000000000000" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	return gains(cmd)
}

// gains runs the program until it asks its first question or ends, and looks
// at what it is by then.
func gains(cmd *exec.Cmd) error {
	answer, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	cmd.Stdout, cmd.Stderr = write, write
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true // it must not ask on the user's terminal
	if err := errors.Join(cmd.Start(), write.Close()); err != nil {
		return err
	}
	if err := read.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	_, _ = read.Read(make([]byte, 1)) // a question, its end, or patience: by each it has started
	now, err := credentials(cmd.Process.Pid)
	_ = cmd.Process.Kill() // it may have ended
	_ = answer.Close()     // the same
	_ = cmd.Wait()         // its status does not matter
	if err != nil {
		return err
	}
	if now.effective == now.real && now.capabilities == "0000000000000000" {
		return refused("%s runs with nothing gained", cmd.Path)
	}
	return nil
}

// identity is what a process may do.
type identity struct{ real, effective, capabilities string }

func credentials(pid int) (identity, error) {
	var id identity
	text, err := os.ReadFile(proc(pid, "status"))
	if err != nil {
		return id, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		switch {
		case len(f) > 2 && f[0] == "Uid:":
			id.real, id.effective = f[1], f[2]
		case len(f) > 1 && f[0] == "CapEff:":
			id.capabilities = f[1]
		}
	}
	if id.real == "" || id.capabilities == "" {
		return id, fmt.Errorf("no ids in the status of process %d", pid)
	}
	return id, nil
}

// enter32 runs a program that makes its call through the 32-bit gate.
func enter32(env Env) error {
	if runtime.GOARCH != "amd64" {
		return absent("only amd64 has this gate")
	}
	program := filepath.Join(env.Workspace, "src", "int80")
	if err := os.WriteFile(program, int80(), 0o755); err != nil {
		return fmt.Errorf("no program to try with: %v", err) // hides the errno: it refuses nothing
	}
	err := exec.Command(program).Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case !ok:
		return err
	case exit.ExitCode() == 1:
		return refused("the call through the gate was refused")
	case exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGSYS:
		return refused("the call through the gate killed the caller")
	case exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGSEGV:
		return absent("this kernel has no such gate")
	}
	return err
}

// systemControls are the everyday calls that only Linux names so.
func systemControls() []attempt {
	return []attempt{
		{Attempt{"works.pty", "open a terminal", "everyday work", Works}, func(Env) error {
			control, terminal, err := openTerminal()
			if err != nil {
				return err
			}
			return errors.Join(control.Close(), terminal.Close())
		}},
		{Attempt{"works.trace", "trace an own child, as a debugger does", "everyday work", Works}, func(env Env) error {
			return ownChild(env, seize)
		}},
		{Attempt{"works.signal", "signal an own child", "everyday work", Works}, func(env Env) error {
			return ownChild(env, func(pid int) error { return unix.Kill(pid, unix.SIGTERM) })
		}},
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

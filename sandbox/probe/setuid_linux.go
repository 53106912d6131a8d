package probe

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

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

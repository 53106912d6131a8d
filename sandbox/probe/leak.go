package probe

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// patience bounds every wait for a server of the plant; they answer at once.
const patience = 5 * time.Second

// leakAttempts go for what the starter of the sandbox has and must not hand
// on.
func leakAttempts() []attempt {
	const environment, descriptors = "the environment passes by an allow-list", "descriptors are closed"
	return []attempt{
		{Attempt{"env.secret", "read a secret from the environment", environment, Refused}, func(env Env) error {
			if env.Canary == "" || os.Getenv(env.EnvName) != env.Canary {
				return refused("%s is not set to it", env.EnvName)
			}
			return nil
		}},
		{Attempt{"fd.inherited", "read through an inherited descriptor", descriptors, Refused}, func(env Env) error {
			return readCanary(env, fmt.Sprintf("/proc/self/fd/%d/notes", env.FD))
		}},
		{Attempt{"tmp.host", "read another program's file in /tmp", "/tmp is private", Refused}, func(env Env) error {
			return readCanary(env, env.TempFile)
		}},
		{Attempt{"unix.path", "connect to a Unix socket of the host", "sockets of the host are not in the sandbox", Refused}, func(env Env) error {
			return greet(env, "unix", env.Socket)
		}},
		{Attempt{"unix.abstract", "connect to an abstract Unix socket of the host", "the network is empty; Landlock scope", Refused}, func(env Env) error {
			return greet(env, "unix", "@"+env.Abstract)
		}},
	}
}

// processAttempts go for the machine's processes and for the one that stands
// for the sandbox's supervisor.
func processAttempts() []attempt {
	const processes = "the process namespace hides the host"
	return []attempt{
		{Attempt{"proc.environ", "read the environment of a host process", processes, Refused}, func(env Env) error {
			return readCanary(env, proc(env.HostPID, "environ"))
		}},
		{Attempt{"proc.init-environ", "read the environment of process 1", "the init stage holds no secret and is not readable", Refused}, func(env Env) error {
			return readCanary(env, proc(initPID(env), "environ"))
		}},
		{Attempt{"proc.root", "read the ssh key through a host process's root", processes, Refused}, func(env Env) error {
			return readCanary(env, filepath.Join(proc(env.HostPID, "root"), env.Home, ".ssh", "id_ed25519"))
		}},
		{Attempt{"proc.init-root", "read the ssh key through process 1's root", "process 1 is in the sandbox itself", Refused}, func(env Env) error {
			return readCanary(env, filepath.Join(proc(initPID(env), "root"), env.Home, ".ssh", "id_ed25519"))
		}},
		{Attempt{"proc.signal", "signal a host process", processes, Refused}, func(env Env) error {
			if err := isTarget(env.HostPID); err != nil {
				return err
			}
			return signalTarget(env.HostPID)
		}},
		{Attempt{"proc.trace", "trace a host process", processes, Refused}, func(env Env) error {
			if err := isTarget(env.HostPID); err != nil {
				return err
			}
			return seize(env.HostPID)
		}},
		{Attempt{"proc.trace-init", "trace process 1", "process 1 is not dumpable and outside the Landlock domain", Refused}, func(env Env) error {
			return seize(initPID(env))
		}},
		{Attempt{"proc.limits-of-init", "change a limit of process 1", "seccomp: a process changes only its own limits", Refused}, func(env Env) error {
			if !env.Inside {
				if err := isTarget(env.HostPID); err != nil {
					return err
				}
			}
			return limitTarget(initPID(env))
		}},
	}
}

func proc(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// initPID is the process that stands for the sandbox's supervisor: process 1
// inside, and outside the planted process, never the machine's own.
func initPID(env Env) int {
	if env.Inside {
		return 1
	}
	return env.HostPID
}

// isTarget holds that a number means the planted process here, and not one
// that happens to have it inside.
func isTarget(pid int) error {
	line, err := os.ReadFile(proc(pid, "cmdline"))
	if err != nil {
		return err
	}
	if !bytes.Contains(line, []byte(stepTarget)) {
		return refused("process %d is another one", pid)
	}
	return nil
}

// greet connects and reads the canary that every planted server says first.
func greet(env Env, network, address string) error {
	c, err := net.DialTimeout(network, address, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	said := make([]byte, len(env.Canary))
	n, err := c.Read(said)
	if err != nil {
		return err
	}
	if string(said[:n]) != env.Canary {
		return refused("another server answers there")
	}
	return nil
}

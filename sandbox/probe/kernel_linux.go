package probe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socketAttempts ask for socket families and types that reach the kernel's
// less read parts, the host of a virtual machine, or the wire.
func socketAttempts() []attempt {
	const filter = "seccomp: socket families and types by an allow-list"
	row := func(id, title string, family, kind, protocol int) attempt {
		return attempt{Attempt{id, title, filter, Refused}, func(Env) error {
			return closing(unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol))
		}}
	}
	return []attempt{
		{Attempt{"socket.raw", "open a raw socket", filter, Refused}, func(env Env) error {
			return withRights(env, unix.CLONE_NEWNET, stepSocket, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
		}},
		{Attempt{"socket.packet", "open an AF_PACKET socket", filter, Refused}, func(env Env) error {
			return withRights(env, unix.CLONE_NEWNET, stepSocket, unix.AF_PACKET, unix.SOCK_DGRAM, 0)
		}},
		row("socket.audit", "open a netlink socket of the audit system", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT),
		row("socket.netfilter", "open a netlink socket of the packet filter", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER),
		kindOfHere(row("socket.vsock", "open an AF_VSOCK socket to the host of a virtual machine", unix.AF_VSOCK, unix.SOCK_STREAM, 0)),
		kindOfHere(row("socket.alg", "open an AF_ALG socket", unix.AF_ALG, unix.SOCK_SEQPACKET, 0)),
	}
}

// kindOfHere turns a kernel that was built without something into an absence,
// outside only: inside the same answer is the filter's.
func kindOfHere(a attempt) attempt {
	try := a.try
	a.try = func(env Env) error {
		err := try(env)
		if !env.Inside && (errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.ENOSYS)) {
			return absent("this kernel has none: %v", err)
		}
		return err
	}
	return a
}

// kernelAttempts make calls that the filter must stop before the kernel looks
// at them.
func kernelAttempts() []attempt {
	return slices.Concat(viewAttempts(), callAttempts(), entryAttempts())
}

// viewAttempts change what the sandbox shows. The kernel asks for rights,
// which a user namespace gives outside.
func viewAttempts() []attempt {
	const names = "seccomp; user namespaces are closed"
	return []attempt{
		{Attempt{"kernel.userns", "make a user namespace", names, Refused}, func(env Env) error {
			return inNamespace(env, unix.CLONE_NEWUSER, stepNothing)
		}},
		{Attempt{"kernel.remount", "make a read-only mount writable in a user namespace", names, Refused}, func(env Env) error {
			return withRights(env, unix.CLONE_NEWNS, stepRemount, filepath.Join(env.Workspace, ".git", "hooks"))
		}},
		{Attempt{"kernel.mount", "mount", names, Refused}, func(env Env) error {
			return withRights(env, unix.CLONE_NEWNS, stepMount, filepath.Join(env.Workspace, "src"))
		}},
		{Attempt{"kernel.umount", "unmount", names, Refused}, func(env Env) error {
			return withRights(env, unix.CLONE_NEWNS, stepUnmount, filepath.Join(env.Workspace, ".git", "hooks"))
		}},
		{Attempt{"kernel.open-tree", "copy a mount tree", names, Refused}, func(env Env) error {
			return withRights(env, unix.CLONE_NEWNS, stepOpenTree, env.Workspace)
		}},
		{Attempt{"kernel.chroot", "change the root directory", names, Refused}, func(env Env) error {
			return withRights(env, 0, stepChroot, env.Workspace)
		}},
		{Attempt{"kernel.setns", "enter a namespace", names, Refused}, func(env Env) error {
			return withRights(env, unix.CLONE_NEWUTS, stepSetns)
		}},
	}
}

// callAttempts need no rights, or ask in a way that a kernel without a filter
// answers with what is wrong with the arguments.
func callAttempts() []attempt {
	const filter = "seccomp"
	return []attempt{
		{Attempt{"kernel.unshare", "leave shared namespaces", filter, Refused}, func(Env) error { return unix.Unshare(0) }},
		{Attempt{"kernel.handle", "open a file by handle", filter, Refused}, func(Env) error {
			_, err := unix.OpenByHandleAt(-1, unix.NewFileHandle(1, make([]byte, 8)), unix.O_RDONLY)
			return reached(err)
		}},
		{Attempt{"kernel.keyctl", "use the session keyring", filter, Refused}, func(Env) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
			return reached(err)
		}},
		{Attempt{"kernel.io-uring", "set up an io_uring", filter, Refused}, func(Env) error {
			var params [120]byte // struct io_uring_params
			return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
		}},
		{Attempt{"kernel.bpf", "call bpf", filter, Refused}, func(Env) error {
			attr := struct{ fd, pad uint32 }{fd: 1 << 30}
			return reached(call(unix.SYS_BPF, unix.BPF_MAP_LOOKUP_ELEM, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr)))
		}},
		{Attempt{"kernel.perf", "open a performance counter", filter, Refused}, func(Env) error {
			attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
			attr.Size = uint32(unsafe.Sizeof(attr))
			fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
			return reached(closing(fd, err))
		}},
		{Attempt{"kernel.userfaultfd", "handle page faults in user space", filter, Refused}, func(Env) error {
			const userModeOnly = 1
			fd, _, e := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|userModeOnly, 0, 0)
			if e != 0 {
				return e
			}
			return unix.Close(int(fd))
		}},
		{Attempt{"kernel.clock", "set the clock", filter, Refused}, func(Env) error {
			// The kernel looks at the time before it looks at the right.
			return reached(unix.ClockSettime(unix.CLOCK_REALTIME, &unix.Timespec{Nsec: -1}))
		}},
		kindOfHere(attempt{Attempt{"kernel.statmount", "read mounts by number", filter, Refused}, func(Env) error {
			return reached(call(unix.SYS_STATMOUNT, 0, 0, 0))
		}}),
	}
}

// entryAttempts go around a filter that knows one way into the kernel and one
// form of a number.
func entryAttempts() []attempt {
	return []attempt{
		{Attempt{"kernel.i386", "enter the kernel through the 32-bit gate", "seccomp: the architecture is checked", Refused}, enter32},
		kindOfHere(attempt{Attempt{"kernel.x32", "call by an x32 number", "seccomp: the architecture is checked", Refused}, func(Env) error {
			if runtime.GOARCH != "amd64" {
				return absent("only amd64 has it")
			}
			return call(0x40000000|unix.SYS_GETPID, 0, 0, 0)
		}}),
		{Attempt{"tty.inject", "type into the terminal", "seccomp: TIOCSTI", Refused}, func(env Env) error {
			return onTerminal(env, stepInject, unix.TIOCSTI)
		}},
		{Attempt{"tty.inject-high", "type into the terminal, number with high bits", "seccomp: TIOCSTI by its low 32 bits", Refused}, func(env Env) error {
			return onTerminal(env, stepInject, 1<<32|unix.TIOCSTI)
		}},
	}
}

// lastAttempts may end the process that makes them.
func lastAttempts() []attempt {
	return []attempt{{Attempt{"proc.kill-init", "kill process 1", "process 1 is outside the Landlock domain, and the kernel guards it", Refused}, killInit}}
}

// killInit sends the one signal that nobody handles. If it went out and this
// process lives to say so, the kernel kept it from process 1.
func killInit(env Env) error {
	if !env.Inside {
		return killOwn(env)
	}
	if err := unix.Kill(1, unix.SIGKILL); err != nil {
		return err
	}
	return refused("the kernel dropped the signal")
}

// reached tells a kernel that answered about the arguments from one that, or
// whose filter, refused to look: only the first means success.
func reached(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		return err
	}
	return nil
}

func call(number, a, b, c uintptr) error {
	r, _, e := unix.Syscall(number, a, b, c)
	if e != 0 {
		return e
	}
	if number == unix.SYS_IO_URING_SETUP {
		return unix.Close(int(r))
	}
	return nil
}

func closing(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func exchange(path string) error {
	name, err := fresh(path)
	if err != nil {
		return err
	}
	defer os.Remove(name)
	return unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE)
}

func openAgain(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return &brokenPlant{path, err}
	}
	defer f.Close()
	return overwrite(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
}

// seize becomes the tracer of a process, stops it and lets it go.
func seize(pid int) error {
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	if err := ptrace(unix.PTRACE_SEIZE, pid); err != nil {
		return err
	}
	if err := ptrace(unix.PTRACE_INTERRUPT, pid); err != nil {
		return err
	}
	if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != nil {
		return err
	}
	return ptrace(unix.PTRACE_DETACH, pid)
}

func ptrace(request uintptr, pid int) error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, request, uintptr(pid), 0, 0, 0, 0); e != 0 {
		return e
	}
	return nil
}

// limitTarget sets a limit of a process to what it is: the kernel asks for the
// same right as for any other value, and the process goes on as it was.
func limitTarget(pid int) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		return err
	}
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil)
}

func signalTarget(pid int) error { return unix.Kill(pid, 0) }

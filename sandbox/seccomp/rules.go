package seccomp

import "slices"

// The kernel's flags and families, as far as the table names them.
const (
	cloneNewNS     = 0x00020000
	cloneNewCgroup = 0x02000000
	cloneNewUTS    = 0x04000000
	cloneNewIPC    = 0x08000000
	cloneNewUser   = 0x10000000
	cloneNewPID    = 0x20000000
	cloneNewNet    = 0x40000000

	afUnix    = 1
	afInet    = 2
	afInet6   = 10
	afNetlink = 16

	sockTypeMask = 0xf // the kernel's SOCK_TYPE_MASK, without SOCK_CLOEXEC and SOCK_NONBLOCK

	low32 = 0xffffffff // what the kernel looks at in an int
)

// Rules gives the refused calls. A call without a row is allowed if its number
// was reviewed ([Spans], [Reviewed]), and refused with ENOSYS if not. It is
// built at each call, so that a binary that never asks does not build it.
func Rules() []Rule {
	return slices.Concat(viewRules(), kernelRules(), processRules(), machineRules(), terminalRules(), socketRules())
}

// viewRules refuse what the sandbox shows: mounts, roots, namespaces.
func viewRules() []Rule {
	return []Rule{
		{Name: "mount", Why: "covers or uncovers a read-only path, in whatever namespace the caller has rights"},
		{Name: "umount2", Why: "takes a read-only mount away"},
		{Name: "pivot_root", Why: "changes the root under the mounts that protect"},
		{Name: "chroot", Why: "changes the root, after which names no longer mean what was protected"},
		{Name: "open_tree", Why: "copies a mount tree, to attach it elsewhere without its read-only flag"},
		{Name: "move_mount", Why: "moves a protecting mount away"},
		{Name: "fsopen", Why: "mounts by descriptor"},
		{Name: "fsconfig", Why: "mounts by descriptor; its parser overflowed once (CVE-2022-0185)"},
		{Name: "fsmount", Why: "mounts by descriptor"},
		{Name: "fspick", Why: "reconfigures an existing mount by descriptor"},
		{Name: "mount_setattr", Why: "takes the read-only flag off a whole mount tree"},
		{Name: "unshare", Why: "a namespace of one's own gives capabilities over most of the kernel"},
		{Name: "setns", Why: "enters another namespace"},
		{Name: "clone", Args: bit(0, cloneNewNS), Why: "a mount namespace"},
		{Name: "clone", Args: bit(0, cloneNewCgroup), Why: "a cgroup namespace"},
		{Name: "clone", Args: bit(0, cloneNewUTS), Why: "a host name namespace"},
		{Name: "clone", Args: bit(0, cloneNewIPC), Why: "an IPC namespace"},
		{Name: "clone", Args: bit(0, cloneNewUser), Why: "a user namespace, with all capabilities in it"},
		{Name: "clone", Args: bit(0, cloneNewPID), Why: "a process namespace, where the init stage no longer sees its children"},
		{Name: "clone", Args: bit(0, cloneNewNet), Why: "a network namespace, with every protocol module in reach"},
		{Name: "clone3", Errno: ENOSYS, Why: "its flags are in memory, where no filter sees them; libraries fall back to clone on ENOSYS, and on nothing else"},
		{Name: "open_by_handle_at", Why: "opens a file by number, past every path that was not granted"},
	}
}

// kernelRules refuse kernel interfaces with a history of holes and no use in development.
func kernelRules() []Rule {
	return []Rule{
		{Name: "io_uring_setup", Why: "does calls on the caller's behalf that no filter sees"},
		{Name: "io_uring_enter", Why: "the same, on a ring that came by descriptor"},
		{Name: "io_uring_register", Why: "the same, on a ring that came by descriptor"},
		{Name: "add_key", Why: "kernel keyrings are not namespaced: a way to the user's keys, and a history of holes"},
		{Name: "request_key", Why: "kernel keyrings are not namespaced; also runs a helper program on the host"},
		{Name: "keyctl", Why: "kernel keyrings are not namespaced: reads the session keyring of the user"},
		{Name: "bpf", Why: "loads code into the kernel"},
		{Name: "perf_event_open", Why: "observes other processes and the kernel; a history of holes"},
		{Name: "userfaultfd", Why: "stops the kernel in the middle of a copy, which makes its races easy to win"},
		{Name: "fanotify_init", Why: "observes and holds up file access of whole mounts"},
		{Name: "kcmp", Why: "compares kernel pointers of two processes, which tells their order"},
		{Name: "memfd_secret", Errno: ENOSYS, Why: "the machine cannot hibernate while such memory exists; callers fall back to ordinary memory"},
		{Name: "uselib", Arch: "amd64", Why: "maps a library through a loader that nothing has used in decades, a hole once"},
		{Name: "modify_ldt", Errno: ENOSYS, Arch: "amd64", Why: "16-bit segments: a history of holes; kernels built without it answer ENOSYS"},
		{Name: "lookup_dcookie", Why: "turns a kernel number into a path, for a profiler that is gone"},
		{Name: "nfsservctl", Why: "drives a kernel file server that is gone"},
	}
}

// processRules refuse what the kernel lets any process do to another one of
// the same user, as process 1 of the sandbox is.
func processRules() []Rule {
	return []Rule{
		{Name: "pidfd_getfd", Why: "takes a descriptor out of another process"},
		{Name: "process_madvise", Why: "pages out another process"},
		{
			Name: "prlimit64", Args: []Arg{{Index: 2, Op: Differs, Value: 0}}, Unless: []uint32{0},
			Why: "changes another process's limits: without descriptors or processor time, process 1 stops seeing or dies; to read, and to change one's own by process 0 (ulimit, setrlimit), stay",
		},
	}
}

// machineRules refuse the machine: clock, modules, power, quota. Most ask for a capability
// that no run has; the row holds where a kernel forgets to ask.
func machineRules() []Rule {
	return []Rule{
		{Name: "init_module", Why: "loads code into the kernel"},
		{Name: "finit_module", Why: "loads code into the kernel"},
		{Name: "delete_module", Why: "unloads a part of the kernel"},
		{Name: "kexec_load", Why: "boots another kernel"},
		{Name: "kexec_file_load", Why: "boots another kernel"},
		{Name: "reboot", Why: "stops the machine"},
		{Name: "swapon", Why: "swaps to a file of the caller's choice"},
		{Name: "swapoff", Why: "takes swap space away"},
		{Name: "acct", Why: "makes the kernel write to a file of the caller's choice"},
		{Name: "quotactl", Why: "changes disk quotas"},
		{Name: "quotactl_fd", Why: "changes disk quotas"},
		{Name: "syslog", Why: "reads the kernel log, with addresses and other processes' data"},
		{Name: "sethostname", Why: "changes the machine's name"},
		{Name: "setdomainname", Why: "changes the machine's name"},
		{Name: "clock_settime", Why: "changes the clock that certificates and logs rely on"},
		{Name: "settimeofday", Why: "changes the clock that certificates and logs rely on"},
		{Name: "clock_adjtime", Why: "bends the clock that certificates and logs rely on"},
		{Name: "adjtimex", Why: "bends the clock that certificates and logs rely on"},
		{Name: "iopl", Arch: "amd64", Why: "opens the hardware's ports"},
		{Name: "ioperm", Arch: "amd64", Why: "opens the hardware's ports"},
		{Name: "vhangup", Why: "hangs up the user's terminal"},
		{
			Name: "personality", Unless: []uint32{0, 0xffffffff, 0x00040000},
			Why: "switches address randomisation and execute protection off; to ask, to be ordinary, and ADDR_NO_RANDOMIZE alone (gdb runs every program with it) stay",
		},
	}
}

// terminalRules refuse terminals. The kernel looks at the low 32 bits of an ioctl number, so
// the test does too.
func terminalRules() []Rule {
	return []Rule{
		{Name: "ioctl", Args: []Arg{{Index: 1, Mask: low32, Value: 0x5412}}, Why: "TIOCSTI types into the user's terminal"},
		{Name: "ioctl", Args: []Arg{{Index: 1, Mask: low32, Value: 0x541c}}, Why: "TIOCLINUX pastes into the user's console"},
		{Name: "ioctl", Args: []Arg{{Index: 1, Mask: low32, Value: 0x5423}}, Why: "TIOCSETD loads line disciplines, kernel modules with a history of holes"},
	}
}

// socketRules refuse sockets. Families between the four allowed ones are rows; every one
// above the last is refused by order, which also takes numbers with high bits
// set that the kernel would cut off.
func socketRules() []Rule {
	return []Rule{
		{Name: "socket", Errno: EAFNOSUPPORT, Args: []Arg{{Index: 0, Op: Above, Value: afNetlink}}, Why: "AF_PACKET, AF_ALG, AF_VSOCK (the host of a virtual machine), AF_XDP and all others: each a kernel module with a history of holes"},
		{Name: "socket", Errno: EAFNOSUPPORT, Args: family(0), Why: "no family"},
		{Name: "socket", Errno: EAFNOSUPPORT, Args: family(3), Why: "AF_AX25: amateur radio, loads a module"},
		{Name: "socket", Errno: EAFNOSUPPORT, Args: family(4), Why: "AF_IPX: gone, loads a module"},
		{Name: "socket", Errno: EAFNOSUPPORT, Args: family(5), Why: "AF_APPLETALK: loads a module"},
		{Name: "socket", Errno: EAFNOSUPPORT, Args: family(6), Why: "AF_NETROM: amateur radio, loads a module"},
		{Name: "socket", Errno: EAFNOSUPPORT, Args: family(7), Why: "AF_BRIDGE: has no sockets"},
		{Name: "socket", Errno: EAFNOSUPPORT, Args: family(8), Why: "AF_ATMPVC: loads a module"},
		{Name: "socket", Errno: EAFNOSUPPORT, Args: family(9), Why: "AF_X25: loads a module"},
		{Name: "socket", Errno: EAFNOSUPPORT, Args: family(11), Why: "AF_ROSE: amateur radio, loads a module"},
		{Name: "socket", Errno: EAFNOSUPPORT, Args: family(12), Why: "AF_DECNET: gone, loads a module"},
		{Name: "socket", Errno: EAFNOSUPPORT, Args: family(13), Why: "AF_NETBEUI: has no sockets"},
		{Name: "socket", Errno: EAFNOSUPPORT, Args: family(14), Why: "AF_SECURITY: has no sockets"},
		{Name: "socket", Errno: EAFNOSUPPORT, Args: family(15), Why: "AF_KEY: IPsec keys, loads a module"},
		{
			Name: "socket", Errno: EPROTONOSUPPORT,
			Args: []Arg{{Index: 0, Op: Equal, Value: afNetlink}, {Index: 2, Op: Differs, Value: 0}},
			Why:  "of netlink only the routing table, which resolvers read; audit, netfilter and the others have a history of holes, and callers take EPROTONOSUPPORT for a kernel without them",
		},
		{Name: "socket", Args: kind(afInet, 3), Why: "raw IP packets"},
		{Name: "socket", Args: kind(afInet6, 3), Why: "raw IP packets"},
		{Name: "socket", Args: kind(afInet, 10), Why: "SOCK_PACKET, which the kernel turns into AF_PACKET"},
		{Name: "socket", Errno: EPROTONOSUPPORT, Args: kind(afInet, 5), Why: "SOCK_SEQPACKET is SCTP, which loads a module"},
		{Name: "socket", Errno: EPROTONOSUPPORT, Args: kind(afInet6, 5), Why: "SOCK_SEQPACKET is SCTP, which loads a module"},
		{Name: "socket", Errno: EPROTONOSUPPORT, Args: kind(afInet, 6), Why: "SOCK_DCCP loads a module, a hole once (CVE-2017-6074)"},
		{Name: "socket", Errno: EPROTONOSUPPORT, Args: kind(afInet6, 6), Why: "SOCK_DCCP loads a module, a hole once (CVE-2017-6074)"},
		{Name: "socket", Errno: EPROTONOSUPPORT, Args: protocol(132), Why: "IPPROTO_SCTP loads a module, also as SOCK_STREAM"},
		{Name: "socket", Errno: EPROTONOSUPPORT, Args: protocol(115), Why: "IPPROTO_L2TP loads a module, also as SOCK_DGRAM"},
		{Name: "socket", Errno: EPROTONOSUPPORT, Args: protocol(256), Why: "IPPROTO_SMC loads a module, also as SOCK_STREAM"},
		{
			Name: "socketpair", Errno: EAFNOSUPPORT, Args: []Arg{{Index: 0, Op: Differs, Value: afUnix}},
			Why: "only Unix sockets come in pairs; asking another family loads its module",
		},
	}
}

func bit(index uint, mask uint64) []Arg {
	return []Arg{{Index: index, Mask: mask, Value: mask}}
}

func family(number uint64) []Arg {
	return []Arg{{Index: 0, Op: Equal, Value: number}}
}

func kind(family, number uint64) []Arg {
	return []Arg{{Index: 0, Op: Equal, Value: family}, {Index: 1, Mask: sockTypeMask, Value: number}}
}

func protocol(number uint64) []Arg {
	return []Arg{{Index: 2, Mask: low32, Value: number}}
}

package seccomp

import (
	"fmt"
	"slices"
	"testing"
)

// verdict is what a program answers: 0 allows, else it is the errno.
type verdict = Errno

const allow verdict = 0

// vector is one call and what it must meet. The table does not look at
// [Rules]: a row that goes missing there is missed here.
type vector struct {
	name string
	call string // a key of numbers, or empty
	nr   uint32 // the number, where call is empty
	arch string // the only architecture, or empty
	args [6]uint64
	want verdict
}

func (v vector) number(arch string) (uint32, bool) {
	if v.arch != "" && v.arch != arch {
		return 0, false
	}
	if v.call == "" {
		return v.nr, true
	}
	n := numbers[v.call].on(arch)
	return n, n != absent
}

var vectors = join(
	each(EPERM, "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig",
		"fsmount", "fspick", "mount_setattr", "unshare", "setns", "open_by_handle_at",
		"io_uring_setup", "io_uring_enter", "io_uring_register", "add_key", "request_key", "keyctl", "bpf",
		"perf_event_open", "userfaultfd", "fanotify_init", "kcmp", "pidfd_getfd", "process_madvise", "uselib",
		"lookup_dcookie", "nfsservctl", "init_module", "finit_module", "delete_module", "kexec_load",
		"kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog",
		"sethostname", "setdomainname", "clock_settime", "settimeofday", "clock_adjtime", "adjtimex", "iopl",
		"ioperm", "vhangup"),
	each(ENOSYS, "clone3", "memfd_secret", "modify_ldt"),
	each(allow, "openat", "read", "write", "close", "mmap", "futex", "newfstatat", "fstat", "statx", "execve",
		"execveat", "vfork", "ptrace", "process_vm_readv", "process_vm_writev", "seccomp", "prctl",
		"landlock_restrict_self", "memfd_create", "connect", "bind", "sendmsg", "inotify_add_watch",
		"name_to_handle_at", "faccessat2", "close_range", "openat2", "pidfd_open", "pidfd_send_signal",
		"epoll_pwait2", "futex_waitv", "rseq", "kill", "fchmodat", "setrlimit", "setpriority", "ioprio_set",
		"sched_setaffinity", "sched_setscheduler", "sched_setattr"),
	cloneVectors, limitVectors, personalityVectors, ioctlVectors, socketVectors, numberVectors,
)

var cloneVectors = []vector{
	{name: "clone as fork", call: "clone", args: [6]uint64{0x01200011}, want: allow},
	{name: "clone as pthread_create", call: "clone", args: [6]uint64{0x003d0f00}, want: allow},
	{name: "clone mount namespace", call: "clone", args: [6]uint64{0x00020011}, want: EPERM},
	{name: "clone cgroup namespace", call: "clone", args: [6]uint64{0x02000011}, want: EPERM},
	{name: "clone host name namespace", call: "clone", args: [6]uint64{0x04000011}, want: EPERM},
	{name: "clone IPC namespace", call: "clone", args: [6]uint64{0x08000011}, want: EPERM},
	{name: "clone user namespace", call: "clone", args: [6]uint64{0x10000011}, want: EPERM},
	{name: "clone process namespace", call: "clone", args: [6]uint64{0x20000011}, want: EPERM},
	{name: "clone network namespace", call: "clone", args: [6]uint64{0x40000011}, want: EPERM},
	{name: "clone user namespace, high bits", call: "clone", args: [6]uint64{1<<40 | 0x10000011}, want: EPERM},
}

// limitVectors point at memory that nobody has: a kernel that got to look at
// them would answer EFAULT before it looks for the process.
var limitVectors = []vector{
	{name: "limits, own", call: "prlimit64", args: [6]uint64{0, 7, 0x10, 0}, want: allow},
	{name: "limits, own, high bits in the process", call: "prlimit64", args: [6]uint64{1 << 32, 7, 0x10, 0}, want: allow},
	{name: "limits, own, read", call: "prlimit64", args: [6]uint64{0, 7, 0, 0x10}, want: allow},
	{name: "limits of process 1, read", call: "prlimit64", args: [6]uint64{1, 7, 0, 0x10}, want: allow},
	{name: "limits of process 1", call: "prlimit64", args: [6]uint64{1, 7, 0x10, 0}, want: EPERM},
	{name: "limits of process 1, processor time, with the old", call: "prlimit64", args: [6]uint64{1, 0, 0x10, 0x10}, want: EPERM},
	{name: "limits of process 1, high bits in the process", call: "prlimit64", args: [6]uint64{1<<32 | 1, 7, 0x10, 0}, want: EPERM},
	{name: "limits of process 1, high pointer", call: "prlimit64", args: [6]uint64{1, 7, 1 << 63, 0}, want: EPERM},
	{name: "limits of process 1, pointer's low half zero", call: "prlimit64", args: [6]uint64{1, 7, 1 << 32, 0}, want: EPERM},
	{name: "limits of another process", call: "prlimit64", args: [6]uint64{4194304, 7, 0x10, 0}, want: EPERM},
	{name: "limits of process -1", call: "prlimit64", args: [6]uint64{0xffffffff, 7, 0x10, 0}, want: EPERM},
}

var personalityVectors = []vector{
	{name: "personality ordinary", call: "personality", args: [6]uint64{0}, want: allow},
	{name: "personality ask", call: "personality", args: [6]uint64{0xffffffff}, want: allow},
	{name: "personality ask, sign extended", call: "personality", args: [6]uint64{0xffffffffffffffff}, want: allow},
	{name: "personality no randomisation", call: "personality", args: [6]uint64{0x40000}, want: allow},
	{name: "personality executable data", call: "personality", args: [6]uint64{0x400000}, want: EPERM},
	{name: "personality both", call: "personality", args: [6]uint64{0x440000}, want: EPERM},
	{name: "personality 32 bits", call: "personality", args: [6]uint64{8}, want: EPERM},
	{name: "personality page zero, high bits", call: "personality", args: [6]uint64{1<<32 | 0x100000}, want: EPERM},
}

var ioctlVectors = []vector{
	{name: "TCGETS", call: "ioctl", args: [6]uint64{0, 0x5401}, want: allow},
	{name: "TIOCSWINSZ", call: "ioctl", args: [6]uint64{0, 0x5414}, want: allow},
	{name: "TIOCSCTTY", call: "ioctl", args: [6]uint64{0, 0x540e}, want: allow},
	{name: "TIOCSTI", call: "ioctl", args: [6]uint64{0, 0x5412}, want: EPERM},
	{name: "TIOCSTI, high bits", call: "ioctl", args: [6]uint64{0, 1<<32 | 0x5412}, want: EPERM},
	{name: "TIOCLINUX", call: "ioctl", args: [6]uint64{0, 0x541c}, want: EPERM},
	{name: "TIOCLINUX, high bits", call: "ioctl", args: [6]uint64{0, 1<<63 | 0x541c}, want: EPERM},
	{name: "TIOCSETD", call: "ioctl", args: [6]uint64{0, 0x5423}, want: EPERM},
	{name: "TIOCSETD, high bits", call: "ioctl", args: [6]uint64{0, 1<<33 | 0x5423}, want: EPERM},
}

// socketVectors go through every family up to 50, then the odd ones.
var socketVectors = join(families(), []vector{
	{name: "AF_UNIX stream, close on exec", call: "socket", args: [6]uint64{1, 0x80001, 0}, want: allow},
	{name: "AF_INET stream", call: "socket", args: [6]uint64{2, 0x80801, 6}, want: allow},
	{name: "AF_INET datagram", call: "socket", args: [6]uint64{2, 0x80802, 17}, want: allow},
	{name: "AF_INET multipath", call: "socket", args: [6]uint64{2, 1, 262}, want: allow},
	{name: "AF_INET6 stream", call: "socket", args: [6]uint64{10, 1, 0}, want: allow},
	{name: "AF_INET6 datagram", call: "socket", args: [6]uint64{10, 2, 0}, want: allow},
	{name: "netlink route", call: "socket", args: [6]uint64{16, 0x80003, 0}, want: allow},
	{name: "netlink sock_diag", call: "socket", args: [6]uint64{16, 3, 4}, want: EPROTONOSUPPORT},
	{name: "netlink audit", call: "socket", args: [6]uint64{16, 3, 9}, want: EPROTONOSUPPORT},
	{name: "netlink netfilter", call: "socket", args: [6]uint64{16, 3, 12}, want: EPROTONOSUPPORT},
	{name: "netlink uevent", call: "socket", args: [6]uint64{16, 2, 15}, want: EPROTONOSUPPORT},
	{name: "AF_VSOCK, high bits", call: "socket", args: [6]uint64{1<<32 | 40, 1, 0}, want: EAFNOSUPPORT},
	{name: "AF_AX25, high bits", call: "socket", args: [6]uint64{1<<32 | 3, 1, 0}, want: EAFNOSUPPORT},
	{name: "AF_INET raw, high bits", call: "socket", args: [6]uint64{1<<32 | 2, 3, 1}, want: EAFNOSUPPORT},
	{name: "family -1", call: "socket", args: [6]uint64{0xffffffff, 1, 0}, want: EAFNOSUPPORT},
	{name: "AF_INET raw", call: "socket", args: [6]uint64{2, 3, 1}, want: EPERM},
	{name: "AF_INET raw, close on exec", call: "socket", args: [6]uint64{2, 0x80003, 255}, want: EPERM},
	{name: "AF_INET raw, high bits in the type", call: "socket", args: [6]uint64{2, 1<<32 | 3, 1}, want: EPERM},
	{name: "AF_INET6 raw", call: "socket", args: [6]uint64{10, 3, 58}, want: EPERM},
	{name: "SOCK_PACKET", call: "socket", args: [6]uint64{2, 10, 0x300}, want: EPERM},
	{name: "AF_INET seqpacket", call: "socket", args: [6]uint64{2, 5, 0}, want: EPROTONOSUPPORT},
	{name: "AF_INET6 seqpacket", call: "socket", args: [6]uint64{10, 5, 0}, want: EPROTONOSUPPORT},
	{name: "AF_INET DCCP", call: "socket", args: [6]uint64{2, 6, 33}, want: EPROTONOSUPPORT},
	{name: "AF_INET6 DCCP", call: "socket", args: [6]uint64{10, 6, 33}, want: EPROTONOSUPPORT},
	{name: "SCTP", call: "socket", args: [6]uint64{2, 1, 132}, want: EPROTONOSUPPORT},
	{name: "SCTP, high bits", call: "socket", args: [6]uint64{10, 1, 1<<32 | 132}, want: EPROTONOSUPPORT},
	{name: "L2TP", call: "socket", args: [6]uint64{2, 2, 115}, want: EPROTONOSUPPORT},
	{name: "SMC", call: "socket", args: [6]uint64{2, 1, 256}, want: EPROTONOSUPPORT},
	{name: "pair of Unix sockets", call: "socketpair", args: [6]uint64{1, 0x80001, 0}, want: allow},
	{name: "pair of TIPC sockets", call: "socketpair", args: [6]uint64{30, 1, 0}, want: EAFNOSUPPORT},
	{name: "pair of TIPC sockets, high bits", call: "socketpair", args: [6]uint64{1<<32 | 30, 1, 0}, want: EAFNOSUPPORT},
})

var numberVectors = []vector{
	{name: "uretprobe", nr: 335, arch: "amd64", want: allow},
	{name: "uprobe", nr: 336, arch: "amd64", want: allow},
	{name: "amd64 gap, first", nr: 337, arch: "amd64", want: ENOSYS},
	{name: "amd64 gap, last", nr: 423, arch: "amd64", want: ENOSYS},
	{name: "arm64 own gap, first", nr: 244, arch: "arm64", want: ENOSYS},
	{name: "arm64 own gap, last", nr: 259, arch: "arm64", want: ENOSYS},
	{name: "arm64 wait4", nr: 260, arch: "arm64", want: allow},
	{name: "arm64 gap, first", nr: 295, arch: "arm64", want: ENOSYS},
	{name: "arm64 clock_settime64", nr: 404, arch: "arm64", want: ENOSYS},
	{name: "arm64 gap, last", nr: 423, arch: "arm64", want: ENOSYS},
	{name: "cachestat", nr: 451, want: allow},
	{name: "fchmodat2", nr: 452, want: allow},
	{name: "map_shadow_stack", nr: 453, want: allow},
	{name: "futex_wake", nr: 454, want: allow},
	{name: "futex_wait", nr: 455, want: allow},
	{name: "futex_requeue", nr: 456, want: allow},
	{name: "statmount", nr: 457, want: ENOSYS},
	{name: "listmount", nr: 458, want: ENOSYS},
	{name: "lsm_get_self_attr", nr: 459, want: allow},
	{name: "lsm_set_self_attr", nr: 460, want: ENOSYS},
	{name: "lsm_list_modules", nr: 461, want: allow},
	{name: "mseal", nr: 462, want: allow},
	{name: "setxattrat", nr: 463, want: allow},
	{name: "getxattrat", nr: 464, want: allow},
	{name: "listxattrat", nr: 465, want: allow},
	{name: "removexattrat", nr: 466, want: allow},
	{name: "open_tree_attr", nr: 467, want: EPERM},
	{name: "file_getattr", nr: 468, want: allow},
	{name: "file_setattr", nr: 469, want: ENOSYS},
	{name: "listns", nr: 470, want: ENOSYS},
	{name: "rseq_slice_yield", nr: 471, want: allow},
	{name: "tomorrow's first call", nr: 472, want: ENOSYS},
	{name: "x32 numbers without their bit", nr: 520, want: ENOSYS},
	{name: "x32 read", nr: 0x40000000, want: ENOSYS},
	{name: "x32 ptrace", nr: 0x40000000 + 521, want: ENOSYS},
	{name: "x32 io_uring_setup", nr: 0x40000000 + 425, want: ENOSYS},
	{name: "highest number but one", nr: 0xfffffffe, want: ENOSYS},
	{name: "call skipped by a debugger", nr: 0xffffffff, want: allow},
}

func families() []vector {
	var all []vector
	for n := uint64(0); n <= 50; n++ {
		want := EAFNOSUPPORT
		if n == afUnix || n == afInet || n == afInet6 || n == afNetlink {
			want = allow
		}
		all = append(all, vector{name: fmt.Sprintf("family %d", n), call: "socket", args: [6]uint64{n, 2, 0}, want: want})
	}
	return all
}

func each(want verdict, calls ...string) []vector {
	var all []vector
	for _, c := range calls {
		all = append(all, vector{name: c, call: c, want: want})
	}
	return all
}

func join(parts ...[]vector) []vector {
	var all []vector
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// TestVerdicts runs every vector through the programs in the repository.
func TestVerdicts(t *testing.T) {
	for _, m := range machines {
		for _, v := range vectors {
			n, ok := v.number(m.arch)
			if !ok {
				continue
			}
			t.Run(m.arch+"/"+v.name, func(t *testing.T) {
				if got := interpret(t, Program(m.arch), m.token, n, v.args); got != v.want {
					t.Errorf("call %d with %#x: errno %d, want %d", n, v.args, got, v.want)
				}
			})
		}
	}
}

// TestOtherArchitecture tries every number of another entry to the kernel.
func TestOtherArchitecture(t *testing.T) {
	others := map[string]uint32{"i386": 0x40000003, "arm": 0x40000028, "none": 0, "riscv64": 0xc00000f3}
	for _, m := range machines {
		for name, token := range others {
			for n := uint32(0); n < 600; n++ {
				if got := interpret(t, Program(m.arch), token, n, [6]uint64{}); got != ENOSYS {
					t.Fatalf("%s program, %s call %d: errno %d, want ENOSYS", m.arch, name, n, got)
				}
			}
		}
		for _, n := range machines {
			if n != m && interpret(t, Program(m.arch), n.token, 0, [6]uint64{}) != ENOSYS {
				t.Errorf("%s program allows a call of %s", m.arch, n.arch)
			}
		}
	}
}

// TestHotCallsTestNoArgument holds that the kernel can cache the verdict on
// the calls that every program makes most: it does so when a program comes to
// its answer from number and architecture alone.
func TestHotCallsTestNoArgument(t *testing.T) {
	for _, m := range machines {
		for _, call := range []string{"openat", "read", "write", "close", "mmap", "futex", "newfstatat", "fstat", "statx", "execve"} {
			r := run(t, Program(m.arch), m.token, numbers[call].on(m.arch), [6]uint64{})
			if r.readArgument {
				t.Errorf("%s: %s is decided by an argument", m.arch, call)
			}
		}
	}
}

// TestRules holds what the table itself owes: a reason in every row, and a
// decision that is a refusal unless it says otherwise.
func TestRules(t *testing.T) {
	for _, r := range Rules() {
		if r.Name == "" || r.Why == "" {
			t.Errorf("rule %+v lacks a name or a reason", r)
		}
		if len(r.Unless) > 0 && slices.ContainsFunc(r.Args, func(a Arg) bool { return a.Op != Differs }) {
			t.Errorf("rule %+v has a test that is not assembled beside Unless", r)
		}
	}
	last := uint32(0)
	for _, c := range Reviewed() {
		if c.Why == "" || c.Number <= last || c.Allow && c.Errno != 0 {
			t.Errorf("call %+v lacks a reason, is out of order or both allows and refuses", c)
		}
		last = c.Number
	}
	if last != highestReviewed {
		t.Errorf("highest reviewed number is %d, the table ends at %d", highestReviewed, last)
	}
	if got := answer(Rule{}.Errno); got.K != retErrno|uint32(EPERM) {
		t.Errorf("the zero rule answers %#x, want EPERM", got.K)
	}
	if (Call{}).Allow {
		t.Error("the zero call is allowed")
	}
	if Program("mips") != nil {
		t.Error("an architecture without a program has one")
	}
}

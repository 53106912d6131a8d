package stage

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"agentguard/sandbox/seccomp"
)

// confine takes everything from the calling thread that the command must not
// have: capabilities, the way to new privileges, writes outside the plan's
// roots, and the refused system calls, in this order because each step may
// still need what a later one takes.
func confine(c *Config, tell func(abi int)) error {
	if err := dropBounding(); err != nil {
		return err
	}
	if err := dropThread(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("closing the way to new privileges: %w", err)
	}
	abi := 0
	if c.Landlock {
		var err error
		if abi, err = restrict(c.Write); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	tell(abi)
	if !c.Seccomp {
		return nil
	}
	return filter(seccomp.Program(runtime.GOARCH))
}

func dropBounding() error {
	for capability := uintptr(0); capability <= 63; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err == unix.EINVAL {
			break // beyond the kernel's last one
		}
		if err != nil {
			return fmt.Errorf("dropping capability %d for good: %w", capability, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clearing ambient capabilities: %w", err)
	}
	return nil
}

// dropThread empties the calling thread's capability sets.
func dropThread() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}

// dropAll empties the capability sets of every thread of process 1, which
// needs none once the command runs.
func dropAll() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	if e != 0 {
		return fmt.Errorf("dropping process 1's capabilities: %w", e)
	}
	return nil
}

// accessByABI is every file right that Landlock's versions know, by the
// version that brought it.
var accessByABI = []uint64{
	1: 1<<13 - 1, // execute to make_sym
	2: ll.AccessFSRefer,
	3: ll.AccessFSTruncate,
	5: ll.AccessFSIoctlDev,
}

// readOnly are the rights that the whole private root has: what is there at
// all was granted.
const readOnly = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir

// restrict puts the calling thread into a domain that writes below the given
// roots only and signals nobody outside the run.
func restrict(roots []string) (abi int, err error) {
	abi, err = ll.LandlockGetABIVersion()
	if err != nil {
		return 0, fmt.Errorf("reading its version: %w", err)
	}
	var attr ll.RulesetAttr
	for v, access := range accessByABI {
		if v <= abi {
			attr.HandledAccessFS |= access
		}
	}
	if abi >= 6 {
		attr.Scoped = ll.ScopeSignal | ll.ScopeAbstractUnixSocket
	}
	ruleset, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return 0, fmt.Errorf("making the rule set: %w", err)
	}
	defer unix.Close(ruleset)
	if err := allow(ruleset, "/", readOnly); err != nil {
		return 0, err
	}
	for _, root := range roots {
		if err := allow(ruleset, root, attr.HandledAccessFS); err != nil {
			return 0, err
		}
	}
	if err := ll.LandlockRestrictSelf(ruleset, 0); err != nil {
		return 0, fmt.Errorf("entering the domain: %w", err)
	}
	return abi, nil
}

// fileOnly are the rights that a rule about something other than a directory
// may name; the kernel refuses a rule with any other.
const fileOnly = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev

func allow(ruleset int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("opening %q: %w", path, err)
	}
	defer unix.Close(fd)
	dir, err := isDir(fd)
	if err != nil {
		return err
	}
	if !dir {
		access &= fileOnly
	}
	rule := ll.PathBeneathAttr{ParentFd: fd, AllowedAccess: access}
	if err := ll.LandlockAddPathBeneathRule(ruleset, &rule, 0); err != nil {
		return fmt.Errorf("a rule for %q: %w", path, err)
	}
	return nil
}

// filter puts the calling thread under a seccomp program, and with it
// everything that the thread starts.
func filter(program []seccomp.Instruction) error {
	if len(program) == 0 {
		return fmt.Errorf("no system call filter for %s", runtime.GOARCH)
	}
	fprog := struct {
		length uint16
		filter *seccomp.Instruction
	}{uint16(len(program)), &program[0]}
	_, _, e := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	if e != 0 {
		return fmt.Errorf("installing the system call filter: %w", e)
	}
	return nil
}

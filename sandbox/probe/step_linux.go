package probe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// step does what one step is named for.
func step(name string, args []string, stdin io.Reader, stdout io.Writer) error {
	switch name {
	case stepNothing:
		return nil
	case stepTarget:
		return target(stdin, stdout)
	case stepSetns:
		return setns()
	case stepSocket:
		n, err := integers(args, 3)
		if err != nil {
			return err
		}
		return closing(unix.Socket(n[0], n[1]|unix.SOCK_CLOEXEC, n[2]))
	case stepInject:
		n, err := integers(args, 1)
		if err != nil {
			return err
		}
		return inject(uintptr(n[0]))
	}
	if len(args) != 1 {
		return fmt.Errorf("%s wants one directory", name)
	}
	return mountStep(name, args[0])
}

// mountStep does what needs a mount namespace; it keeps what it does from
// reaching any other.
func mountStep(name, dir string) error {
	if name == stepChroot {
		return unix.Chroot(dir)
	}
	// Where this is refused, what follows is tried all the same, on the
	// sandbox's own mounts.
	private := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	switch name {
	case stepMount:
		return unix.Mount("none", dir, "tmpfs", 0, "")
	case stepOpenTree:
		return closing(unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC))
	case stepUnmount:
		if private == nil {
			if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
				return err
			}
		}
		return unix.Unmount(dir, unix.MNT_DETACH)
	case stepRemount:
		if private == nil {
			if err := errors.Join(
				unix.Mount(dir, dir, "", unix.MS_BIND, ""),
				unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""),
			); err != nil {
				return err
			}
		}
		return unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT, "")
	}
	return fmt.Errorf("no step %q", name)
}

// target waits to be signalled or traced, and ends with its standard input.
func target(stdin io.Reader, stdout io.Writer) error {
	// A host with Yama lets only an ancestor trace; whoever tries here is a
	// sibling. On one without it the call is refused, which changes nothing.
	const anybody = ^uintptr(0)
	_ = unix.Prctl(unix.PR_SET_PTRACER, anybody, 0, 0, 0)
	if _, err := io.WriteString(stdout, targetReady); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, stdin)
	return err
}

// setns enters the namespace that the thread is in already.
func setns() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, err := os.Open("/proc/self/ns/uts")
	if err != nil {
		return fmt.Errorf("no namespace to try with: %v", err) // hides the errno: it refuses nothing
	}
	defer f.Close()
	return unix.Setns(int(f.Fd()), unix.CLONE_NEWUTS)
}

// inject types a character on standard input's terminal. A kernel that was set
// to refuse this itself answers EIO, so the call got there.
func inject(number uintptr) error {
	c := [1]byte{'x'}
	err := pointerIoctl(0, number, &c)
	if errors.Is(err, unix.EIO) {
		return nil
	}
	return err
}

func integers(args []string, want int) ([]int, error) {
	if len(args) != want {
		return nil, fmt.Errorf("%d numbers, want %d", len(args), want)
	}
	var n []int
	for _, a := range args {
		i, err := strconv.Atoi(a)
		if err != nil {
			return nil, err
		}
		n = append(n, i)
	}
	return n, nil
}

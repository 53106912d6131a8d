package stage

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// procReadOnly are the parts of /proc through which root of the host, seen
// inside as itself, could still change the kernel's settings without any
// capability; procEmpty are those that tell of the host.
var (
	procReadOnly = []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "driver", "mtrr", "dynamic_debug"}
	procEmpty    = []string{"kcore", "keys", "key-users", "kmsg", "timer_list", "sched_debug", "latency_stats", "kallsyms", "kpagecount", "kpageflags", "kpagecgroup", "vmallocinfo", "slabinfo", "config.gz"}
)

func (b *builder) mountProc(target string) error {
	if err := b.mountNew(target, "proc", unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_NODEV, nil); err != nil {
		return err
	}
	// No process of the run makes a user namespace, whose root could mount.
	if err := write(target+"/sys/user/max_user_namespaces", "0"); err != nil {
		return fmt.Errorf("closing user namespaces: %w", err)
	}
	for _, name := range procReadOnly {
		err := b.over(&Mount{Kind: Freeze, Target: target + "/" + name, Optional: true})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range procEmpty {
		if err := b.mask(target + "/" + name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// mask shows nothing in the place of what is at target. What is not there
// needs no mask.
func (b *builder) mask(target string) error {
	fd, err := beneath(b.root, target, unix.O_PATH)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	dir, err := isDir(fd)
	if err != nil {
		return err
	}
	empty, err := b.emptyFile()
	if dir {
		empty, err = b.makeDir("/.empty.d", 0o555)
	}
	if err != nil {
		return err
	}
	defer unix.Close(empty)
	return graft(empty, fd, unix.MOUNT_ATTR_RDONLY)
}

// emptyFile is a nameless file's stand-in: it exists in the private root only
// until the descriptor is taken.
func (b *builder) emptyFile() (int, error) {
	const name = ".empty"
	fd, err := unix.Openat(b.root, name, unix.O_CREAT|unix.O_EXCL|unix.O_RDONLY|unix.O_CLOEXEC, 0o444)
	if errors.Is(err, unix.EEXIST) {
		return unix.Openat(b.root, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	return fd, err
}

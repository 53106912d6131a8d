package stage

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// builder makes the command's file tree in the private root, whose mounts all
// belong to the run's own user namespace.
type builder struct {
	root int             // the private root
	host int             // the host's tree
	own  map[uint64]bool // devices of file systems of the run's own, where names may be made
}

// build carries out the plan and puts the host's tree out of reach.
func build(plan []Mount) error {
	// Modes here are as the plan says; the command has the caller's mask.
	defer unix.Umask(unix.Umask(0))
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the private root: %w", err)
	}
	defer unix.Close(root)
	host, err := unix.Open(HostRoot, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the host's tree: %w", err)
	}
	defer unix.Close(host)
	b := &builder{root: root, host: host, own: map[uint64]bool{}}
	if err := b.ours(root); err != nil {
		return err
	}
	for i := range plan {
		if err := b.apply(&plan[i]); err != nil {
			return fmt.Errorf("%s %q: %w", plan[i].Kind, plan[i].Target, err)
		}
	}
	if err := unix.Unmount(HostRoot, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("putting the host's tree away: %w", err)
	}
	if err := unix.Rmdir(HostRoot); err != nil {
		return fmt.Errorf("removing %s: %w", HostRoot, err)
	}
	// The private root itself holds only mount points from here on.
	return setAttr(root, unix.MOUNT_ATTR_RDONLY, false)
}

func (b *builder) apply(m *Mount) error {
	switch m.Kind {
	case Dir:
		fd, err := b.makeDir(m.Target, m.Perm)
		return closing(fd, err)
	case Link:
		return b.inParent(m.Target, func(dir int, name string) error {
			return unix.Symlinkat(m.Source, dir, name)
		})
	case File:
		return b.writeFile(m)
	case Tmpfs:
		return b.mountNew(m.Target, "tmpfs", unix.MOUNT_ATTR_NODEV, map[string]string{"mode": fmt.Sprintf("%o", m.Perm)})
	case ReadOnly, Writable, Device:
		return b.bind(m)
	case Proc:
		return b.mountProc(m.Target)
	case Pts:
		return b.mountNew(m.Target, "devpts", unix.MOUNT_ATTR_NOEXEC, map[string]string{"ptmxmode": "0666", "mode": "0620"})
	case Pin, Freeze, Seal:
		return b.over(m)
	case Mask:
		return b.mask(m.Target)
	}
	return fmt.Errorf("unknown step %d of the plan", m.Kind)
}

// bind shows one place of the host.
func (b *builder) bind(m *Mount) error {
	src, err := beneath(b.host, m.Source, unix.O_PATH)
	if m.Optional && absent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening it on the host: %w", err)
	}
	defer unix.Close(src)
	dir, err := isDir(src)
	if err != nil {
		return err
	}
	target, err := b.mountPoint(m.Target, dir)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	attr := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	switch m.Kind {
	case ReadOnly:
		attr |= unix.MOUNT_ATTR_RDONLY
	case Device:
		attr = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	}
	return graft(src, target, attr)
}

// over binds a place that the plan has already shown over itself.
func (b *builder) over(m *Mount) error {
	fd, err := beneath(b.root, m.Target, unix.O_PATH)
	if m.Optional && absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	switch m.Kind {
	case Freeze:
		return graft(fd, fd, unix.MOUNT_ATTR_RDONLY)
	case Pin:
		return graft(fd, fd, 0)
	}
	return setAttr(fd, unix.MOUNT_ATTR_RDONLY, false)
}

// graft mounts a copy of what src shows on target. Both are descriptors, so
// nothing can be swapped in between.
func graft(src, target int, attr uint64) error {
	tree, err := unix.OpenTree(src, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("copying the mount: %w", err)
	}
	defer unix.Close(tree)
	if err := setAttr(tree, attr, true); err != nil {
		return err
	}
	if err := unix.MoveMount(tree, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mounting: %w", err)
	}
	return nil
}

func setAttr(fd int, attr uint64, recursive bool) error {
	if attr == 0 {
		return nil
	}
	flags := uint(unix.AT_EMPTY_PATH)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	if err := unix.MountSetattr(fd, "", flags, &unix.MountAttr{Attr_set: attr}); err != nil {
		return fmt.Errorf("setting the mount's attributes: %w", err)
	}
	return nil
}

// mountNew mounts a file system of the run's own.
func (b *builder) mountNew(target, kind string, attr int, params map[string]string) error {
	at, err := b.mountPoint(target, true)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("opening a %s: %w", kind, err)
	}
	defer unix.Close(fs)
	for k, v := range params {
		if err := unix.FsconfigSetString(fs, k, v); err != nil {
			return fmt.Errorf("setting %s=%s of a %s: %w", k, v, kind, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return fmt.Errorf("making a %s: %w", kind, err)
	}
	top, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attr|unix.MOUNT_ATTR_NOSUID)
	if err != nil {
		return fmt.Errorf("making a %s: %w", kind, err)
	}
	defer unix.Close(top)
	if err := unix.MoveMount(top, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mounting a %s: %w", kind, err)
	}
	return b.ours(top)
}

func write(path, text string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(text))
	return closing(fd, err)
}

// writeFile puts a small file into the private root.
func (b *builder) writeFile(m *Mount) error {
	return b.inParent(m.Target, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, m.Perm)
		if err != nil {
			return err
		}
		for p := m.Data; len(p) > 0 && err == nil; {
			var n int
			n, err = unix.Write(fd, p)
			p = p[n:]
		}
		return closing(fd, err)
	})
}

// mountPoint opens target, making it where the run owns the file system.
func (b *builder) mountPoint(target string, dir bool) (int, error) {
	fd, err := beneath(b.root, target, unix.O_PATH)
	if err == nil || !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	if dir {
		return b.makeDir(target, 0o755)
	}
	if err := b.writeFile(&Mount{Target: target, Perm: 0o644}); err != nil {
		return -1, err
	}
	return beneath(b.root, target, unix.O_PATH)
}

// makeDir opens target with all its parents made. It makes names only in file
// systems of the run's own: the host gets no mount points.
func (b *builder) makeDir(target string, perm uint32) (int, error) {
	at, err := unix.Openat(b.root, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	names := split(target)
	for i, name := range names {
		mode := uint32(0o755)
		if i == len(names)-1 {
			mode = perm
		}
		next, err := b.step(at, name, mode)
		_ = unix.Close(at) // only a handle
		if err != nil {
			return -1, fmt.Errorf("%q: %w", name, err)
		}
		at = next
	}
	return at, nil
}

func (b *builder) step(at int, name string, mode uint32) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(at, name, flags, 0)
	if !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	if err := b.isOurs(at); err != nil {
		return -1, err
	}
	if err := unix.Mkdirat(at, name, mode); err != nil {
		return -1, err
	}
	return unix.Openat(at, name, flags, 0)
}

// inParent calls fn with target's parent, which must be the run's own.
func (b *builder) inParent(target string, fn func(dir int, name string) error) error {
	i := strings.LastIndexByte(target, '/')
	dir, err := b.makeDir(target[:i], 0o755)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := b.isOurs(dir); err != nil {
		return err
	}
	return fn(dir, target[i+1:])
}

func (b *builder) ours(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	b.own[st.Dev] = true
	return nil
}

func (b *builder) isOurs(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if !b.own[st.Dev] {
		return errors.New("it does not exist on the host, and nothing is created there")
	}
	return nil
}

// beneath opens an absolute path below dir without following any link. Where
// the last component is one, the link itself is opened (with O_PATH).
func beneath(dir int, path string, flags int) (int, error) {
	rel := strings.TrimLeft(path, "/")
	if rel == "" {
		rel = "."
	}
	return unix.Openat2(dir, rel, &unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
}

func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}

func isDir(fd int) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, err
	}
	return st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

func closing(fd int, err error) error {
	if fd >= 0 {
		if e := unix.Close(fd); err == nil {
			err = e
		}
	}
	return err
}

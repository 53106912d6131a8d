//go:build amd64 || arm64

package broker

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// payloadMain is the command of a run.
func payloadMain(role string) int {
	f, ok := corners[role]
	if role == "conformance" {
		f, ok = conformance, true
	}
	if !ok {
		fmt.Println("no payload", role)
		return 98
	}
	if err := f(); err != nil {
		fmt.Println("payload:", err)
		return 1
	}
	return 0
}

// kept keeps every string handed to the kernel alive: what sys gets is a number.
var kept = map[string][]byte{}

func bytePtr(s string) uintptr {
	b, ok := kept[s]
	if !ok {
		b = append([]byte(s), 0)
		kept[s] = b
	}
	return uintptr(unsafe.Pointer(&b[0]))
}

func sys(nr uintptr, args ...uintptr) (uintptr, syscall.Errno) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, e := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	return r, e
}

const here = ^uintptr(99) // AT_FDCWD

// fixture makes the objects that the conformance list works on.
func fixture(dir string) error {
	unix.Umask(0)
	mk := func(name string, err error) error {
		if err != nil {
			return fmt.Errorf("fixture %s: %w", name, err)
		}
		return nil
	}
	j := func(n string) string { return filepath.Join(dir, n) }
	for _, err := range []error{
		mk("dir", os.MkdirAll(j("dir"), 0o755)),
		mk("dir/in", os.WriteFile(j("dir/in"), []byte("in"), 0o644)),
		mk("empty", os.Mkdir(j("empty"), 0o755)),
		mk("file", os.WriteFile(j("file"), []byte("text"), 0o644)),
		mk("ro", os.WriteFile(j("ro"), []byte("text"), 0o444)),
		mk("hard", os.Link(j("file"), j("hard"))),
		mk("link", os.Symlink("file", j("link"))),
		mk("dlink", os.Symlink("dir", j("dlink"))),
		mk("slink", os.Symlink("dir/", j("slink"))),
		mk("broken", os.Symlink("newfile", j("broken"))),
		mk("deep", os.Symlink("dlink/in", j("deep"))),
		mk("loop", os.Symlink("loop", j("loop"))),
		mk("up", os.Symlink("../"+filepath.Base(dir)+"/file", j("up"))),
		mk("fifo", unix.Mkfifo(j("fifo"), 0o644)),
		mk("closed", os.Mkdir(j("closed"), 0o755)),
		mk("closed/x", os.WriteFile(j("closed/x"), nil, 0o644)),
		mk("closed mode", os.Chmod(j("closed"), 0)),
		mk("readonly", os.Mkdir(j("readonly"), 0o755)),
		mk("readonly/x", os.WriteFile(j("readonly/x"), nil, 0o644)),
		mk("readonly mode", os.Chmod(j("readonly"), 0o555)),
		mk("setgid", os.Mkdir(j("setgid"), 0o755)),
		mk("setgid mode", os.Chmod(j("setgid"), 0o755|fs.ModeSetgid)),
		mk("sticky", os.Mkdir(j("sticky"), 0o777)),
		mk("sticky mode", os.Chmod(j("sticky"), 0o777|fs.ModeSticky)),
		mk("sticky/x", os.WriteFile(j("sticky/x"), nil, 0o666)),
	} {
		if err != nil {
			return err
		}
	}
	unix.Umask(0o027)
	return nil
}

// tree describes everything below dir.
func tree(dir string) string {
	var b strings.Builder
	var walk func(string)
	walk = func(rel string) {
		ents, err := os.ReadDir(filepath.Join(dir, rel))
		if err != nil {
			fmt.Fprintf(&b, " %s:unreadable", rel)
		}
		for _, e := range ents {
			p := filepath.Join(rel, e.Name())
			var st unix.Stat_t
			if err := unix.Lstat(filepath.Join(dir, p), &st); err != nil {
				continue
			}
			size := st.Size
			if st.Mode&typeMask == typeDir {
				size = 0
			}
			text, _ := os.Readlink(filepath.Join(dir, p))
			fmt.Fprintf(&b, " %.40q:%o:%d:%d:%s", p, st.Mode, st.Nlink, size, text)
			if e.IsDir() {
				walk(p)
			}
		}
	}
	walk("")
	return b.String()
}

var confNames = []string{
	"file", "file/", "dir", "dir/", "dir/.", "dir/..", "empty", "empty/", "empty/.", "empty//", "absent", "absent/", "absent//", "absent/x", "file/x",
	"link", "link/", "dlink", "dlink/", "dlink/in", "dlink/new", "slink", "slink/in", "slink/new", "broken", "broken/", "deep", "loop", "loop/x", "up", "hard", "ro", "fifo",
	"", ".", "./", "..", "/", "//", "dir/../file", "dir/../new", "dir/new", "./file", "././new", "closed/x", "closed/new", "readonly/x", "readonly/new",
	"setgid/new", "sticky/x", "sticky/new", "dir/in/", "dir/in/..", "na\xffme\xfe", "sp ace\n\t", strings.Repeat("n", 255), strings.Repeat("n", 256),
	strings.Repeat("./", 2040) + "file", strings.Repeat("./", 2100) + "file", "/proc/self/cwd/file", "/proc/self/cwd/new", "/proc/thread-self/cwd/dlink/new",
	"/proc/self/root/tmp/../tmp", "/proc/self/absent", "/proc/self/fd/77", "/dev/fd/77", "/dev/fd/78", "/dev/null", "/dev/full", "/", "/proc/self/fd/78/new", "/dev/fd/79", "/proc/self/exe",
	"/proc/self/comm", "/proc/self/mem", "/proc/self/oom_score_adj", "/proc/self/fd/", "/proc/self/fd/abc", "/proc/self", "/proc/thread-self", "/proc/self/../self/cwd/file",
}

type confOp struct {
	name string
	do   func(path string) (uintptr, syscall.Errno)
}

func openOp(flags int) confOp {
	return confOp{fmt.Sprintf("open(%#o)", flags), func(p string) (uintptr, syscall.Errno) {
		fd, e := sys(unix.SYS_OPENAT, here, bytePtr(p), uintptr(flags), 0o666)
		if e != 0 {
			return 0, e
		}
		defer unix.Close(int(fd))
		fl, _ := unix.FcntlInt(fd, unix.F_GETFL, 0)
		fl &^= unix.O_NOFOLLOW // a file opened by its descriptor does not remember it
		cl, _ := unix.FcntlInt(fd, unix.F_GETFD, 0)
		var st unix.Stat_t
		_ = unix.Fstat(int(fd), &st)
		return uintptr(fl)<<32 | uintptr(cl)<<31 | uintptr(st.Mode), 0
	}}
}

func confOps() []confOp {
	var ops []confOp
	for _, f := range []int{
		unix.O_WRONLY, unix.O_RDWR | unix.O_CLOEXEC, unix.O_WRONLY | unix.O_CREAT, unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL, unix.O_WRONLY | unix.O_TRUNC | unix.O_APPEND,
		unix.O_RDONLY | unix.O_CREAT, unix.O_RDWR | unix.O_NOFOLLOW, unix.O_RDWR | unix.O_CREAT | unix.O_NOFOLLOW, unix.O_WRONLY | unix.O_DIRECTORY, unix.O_RDONLY | unix.O_TRUNC,
		unix.O_RDWR | unix.O_TMPFILE, unix.O_RDONLY | unix.O_TMPFILE, unix.O_RDWR | unix.O_TMPFILE | unix.O_NOFOLLOW, unix.O_RDWR | unix.O_CREAT | unix.O_DIRECTORY, unix.O_PATH | unix.O_CREAT, unix.O_PATH | unix.O_NOFOLLOW,
		3, unix.O_WRONLY | unix.O_EXCL, unix.O_RDONLY | unix.O_CREAT | unix.O_DIRECTORY | unix.O_EXCL, unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_CLOEXEC | unix.O_APPEND,
	} {
		ops = append(ops, openOp(f|unix.O_NONBLOCK))
	}
	at := func(name string, nr uintptr, rest ...uintptr) {
		ops = append(ops, confOp{name, func(p string) (uintptr, syscall.Errno) {
			return sys(nr, append([]uintptr{here, bytePtr(p)}, rest...)...)
		}})
	}
	at("mkdirat", unix.SYS_MKDIRAT, 0o2777)
	at("mknodat-reg", unix.SYS_MKNODAT, 0o666, 0)
	at("mknodat-fifo", unix.SYS_MKNODAT, typeFIFO|0o666, 0)
	at("mknodat-chr", unix.SYS_MKNODAT, typeChar|0o666, 0x103)
	at("mknodat-dir", unix.SYS_MKNODAT, typeDir|0o666, 0)
	at("unlinkat", unix.SYS_UNLINKAT, 0)
	at("rmdir", unix.SYS_UNLINKAT, flagRemoveDir)
	at("unlinkat-bad", unix.SYS_UNLINKAT, 0x10)
	at("fchmodat", unix.SYS_FCHMODAT, 0o751)
	at("fchmodat2", unix.SYS_FCHMODAT2, 0o700, flagNoFollow)
	at("fchmodat2-bad", unix.SYS_FCHMODAT2, 0o700, 0x4000)
	for _, other := range []string{"file", "dir", "empty", "absent2", "link", "dir/", "absent2/", "dir/in", ".", "fifo", "broken", "dlink/new2"} {
		for _, flags := range []uintptr{0, renameNoReplace, renameExchange, 4, 3} {
			if flags != 0 && other != "file" && other != "dir" && other != "absent2" {
				continue
			}
			at("rename-to-"+other+fmt.Sprint(flags), unix.SYS_RENAMEAT2, here, bytePtr(other), flags)
			ops = append(ops, confOp{"rename-from-" + other + fmt.Sprint(flags), func(p string) (uintptr, syscall.Errno) {
				return sys(unix.SYS_RENAMEAT2, here, bytePtr(other), here, bytePtr(p), flags)
			}})
		}
		at("link-to-"+other, unix.SYS_LINKAT, here, bytePtr(other), 0)
		at("link-follow-to-"+other, unix.SYS_LINKAT, here, bytePtr(other), flagFollow)
		ops = append(ops, confOp{"link-from-" + other, func(p string) (uintptr, syscall.Errno) {
			return sys(unix.SYS_LINKAT, here, bytePtr(other), here, bytePtr(p), 0)
		}})
	}
	for _, text := range []string{"file", "", "any/where", strings.Repeat("t", 4095), strings.Repeat("t", 4096)} {
		ops = append(ops, confOp{fmt.Sprintf("symlinkat-%.9s-%d", text, len(text)), func(p string) (uintptr, syscall.Errno) {
			return sys(unix.SYS_SYMLINKAT, bytePtr(text), here, bytePtr(p))
		}})
	}
	for _, n := range []int{0, 2, 100, -1} {
		ops = append(ops, confOp{fmt.Sprint("truncate", n), func(p string) (uintptr, syscall.Errno) {
			return sys(unix.SYS_TRUNCATE, bytePtr(p), uintptr(n))
		}})
	}
	return ops
}

// conformance tries every operation on every name, in a fresh directory each
// where the last one was changed, and prints what came of it.
func conformance() error {
	base, err := os.Getwd()
	if err != nil {
		return err
	}
	names := confNames
	n, dirty, before := 0, true, ""
	for _, op := range confOps() {
		for _, name := range names {
			if dirty {
				_ = os.Chdir(base)
				n++
				dir := filepath.Join(base, fmt.Sprint("fix", n%100, "-", n))
				if err := fixture(dir); err != nil {
					return err
				}
				if err := os.Chdir(dir); err != nil {
					return err
				}
				if err := prepareFDs(); err != nil {
					return err
				}
				before = tree(".")
			}
			val, e := op.do(name)
			after := tree(".")
			dirty = after != before
			change := ""
			if dirty {
				change = after
			}
			fmt.Printf("%s %.60q: %#x %s%s\n", op.name, name, val, e.Error(), change)
		}
	}
	return nil
}

// prepareFDs opens descriptors with known numbers: a file, a directory, a pipe.
func prepareFDs() error {
	for fd, name := range map[int]string{77: "file", 78: "dir"} {
		n, err := unix.Open(name, unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		if err := unix.Dup3(n, fd, 0); err != nil {
			return err
		}
		unix.Close(n)
	}
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return err
	}
	if err := unix.Dup3(p[1], 79, 0); err != nil {
		return err
	}
	if err := unix.Dup3(p[0], 80, 0); err != nil {
		return err
	}
	unix.Close(p[0])
	return unix.Close(p[1])
}

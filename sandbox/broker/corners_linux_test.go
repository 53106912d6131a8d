//go:build amd64 || arm64

package broker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// corners are payloads that check one hard corner each, from inside a run.
var corners map[string]func() error

func init() {
	corners = map[string]func() error{
		"frozen-absent": frozenAbsent, "frozen-present": frozenPresent, "frozen-rename": frozenRename,
		"proc-one": procOne, "magic-links": magicLinks, "fifo-opens": fifoOpens, "fifo-signals": fifoSignals,
		"killed-callers": killedCallers, "terminals": terminals, "descriptors": descriptors, "umasks": umasks,
		"many-threads": manyThreads, "not-dumpable": notDumpable, "stopped": stopped, "traced": traced,
		"spawned": spawned, "deep": deep, "tmpfile": tmpfile, "git": gitWorks, "flags": openFlags,
		"lease": leases, "signals": signalStorm, "dotdot": dotDot, "inodes": inodes, "openat2": noOpenat2, "nested": nested, "bench-open": benchOpen,
	}
}

func cornerNames() []string {
	var names []string
	for n := range corners {
		if !strings.HasPrefix(n, "bench-") && !strings.HasPrefix(n, "stress-") && !strings.HasPrefix(n, "dying-") && n != "nested" {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// checks collects what was not as expected.
type checks struct{ bad []error }

func (c *checks) want(what string, got error, want syscall.Errno) {
	e := errno(unwrapErrno(got))
	if e != want {
		c.bad = append(c.bad, fmt.Errorf("%s: got %v, want %v", what, got, want.Error()))
	}
}

func (c *checks) ok(what string, err error) { c.want(what, err, 0) }

func (c *checks) that(what string, ok bool) {
	if !ok {
		c.bad = append(c.bad, errors.New(what))
	}
}

func (c *checks) err() error { return errors.Join(c.bad...) }

func unwrapErrno(err error) error {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return err
}

func open(name string, flags int) error {
	fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0o666)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func put(name string) error { return os.WriteFile(name, []byte("x"), 0o644) }

func frozenAbsent() error {
	var c checks
	dir := unix.AT_FDCWD
	c.ok("mkdir", os.MkdirAll("a/b/c", 0o755))
	c.ok("dir link", os.Symlink("a/b", "short"))
	c.ok("dangling link", os.Symlink("frozen.txt", "dangling"))
	c.ok("dangling link 2", os.Symlink("../b/FROZEN.TXT", "a/b/dangling"))
	c.ok("file", put("file"))
	for _, n := range []string{"frozen.txt", "Frozen.TXT", "a/b/c/frozen.txt", "./a/../frozen.txt", "short/frozen.txt", "/proc/self/cwd/frozen.txt", "/proc/thread-self/cwd/short/c/frozen.txt", "a//b///frozen.txt"} {
		for _, f := range []int{unix.O_WRONLY | unix.O_CREAT, unix.O_RDONLY | unix.O_CREAT, unix.O_RDWR | unix.O_CREAT | unix.O_EXCL, unix.O_RDWR | unix.O_CREAT | unix.O_NOFOLLOW} {
			c.want(fmt.Sprintf("open %s %#o", n, f), open(n, f), unix.EPERM)
		}
		c.want("mknod "+n, unix.Mknodat(dir, n, typeRegular|0o644, 0), unix.EPERM)
		c.want("mkfifo "+n, unix.Mkfifo(n, 0o644), unix.EPERM)
		c.want("mkdir "+n, unix.Mkdir(n, 0o755), unix.EPERM)
		c.want("symlink "+n, unix.Symlink("file", n), unix.EPERM)
		c.want("link "+n, unix.Link("file", n), unix.EPERM)
		c.want("rename "+n, unix.Rename("file", n), unix.EPERM)
		c.want("noreplace "+n, unix.Renameat2(dir, "file", dir, n, renameNoReplace), unix.EPERM)
		c.want("unlink "+n, unix.Unlink(n), unix.ENOENT)
		c.want("truncate "+n, unix.Truncate(n, 0), unix.ENOENT)
		c.want("write "+n, open(n, unix.O_WRONLY), unix.ENOENT)
	}
	c.want("mkdir/", unix.Mkdir("frozen.txt/", 0o755), unix.EPERM)
	c.want("mkdir//", unix.Mkdir("frozen.txt//", 0o755), unix.EPERM)
	c.want("dangling", open("dangling", unix.O_WRONLY|unix.O_CREAT), unix.EPERM)
	c.want("dangling 2", open("a/b/dangling", unix.O_WRONLY|unix.O_CREAT), unix.EPERM)
	c.want("creat", open("short/dangling", unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC), unix.EPERM)
	d, err := unix.Open("a/b", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	c.ok("dir", err)
	_, err = unix.Openat(d, "frozen.txt", unix.O_CREAT|unix.O_WRONLY, 0o644)
	c.want("openat dirfd", err, unix.EPERM)
	c.want("dev fd", open(fmt.Sprintf("/dev/fd/%d/frozen.txt", d), unix.O_CREAT|unix.O_WRONLY), unix.EPERM)
	c.want("mkdirat dirfd", unix.Mkdirat(d, "frozen.txt", 0o755), unix.EPERM)
	_, err = os.Lstat("a/b/frozen.txt")
	c.want("lstat", err, unix.ENOENT)
	return c.err()
}

// frozenPresent finds frozen files where an earlier, unguarded name became one:
// they are brought in by the test's own directory (see hostFiles).
func frozenPresent() error {
	var c checks
	dir := unix.AT_FDCWD
	c.ok("file", put("file"))
	n := "host/frozen.txt"
	for _, f := range []int{unix.O_WRONLY, unix.O_RDWR, unix.O_RDONLY | unix.O_TRUNC, unix.O_WRONLY | unix.O_CREAT, unix.O_WRONLY | unix.O_APPEND, unix.O_WRONLY | unix.O_NOFOLLOW} {
		c.want(fmt.Sprintf("open %#o", f), open(n, f), unix.EPERM)
		c.want(fmt.Sprintf("link %#o", f), open("host/link", f&^unix.O_NOFOLLOW), unix.EPERM)
	}
	c.want("excl", open(n, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL), unix.EEXIST)
	c.want("mkdir", unix.Mkdir(n, 0o755), unix.EEXIST)
	c.want("truncate", unix.Truncate(n, 0), unix.EPERM)
	c.want("chmod", unix.Chmod(n, 0o777), unix.EPERM)
	c.want("unlink", unix.Unlink(n), unix.EPERM)
	c.want("rename from", unix.Rename(n, "other"), unix.EPERM)
	c.want("rename onto", unix.Rename("file", n), unix.EPERM)
	c.want("exchange", unix.Renameat2(dir, "file", dir, n, renameExchange), unix.EPERM)
	c.want("exchange back", unix.Renameat2(dir, n, dir, "file", renameExchange), unix.EPERM)
	c.want("link from", unix.Link(n, "other"), unix.EPERM)
	c.want("link from, followed", unix.Linkat(dir, "host/link", dir, "other", flagFollow), unix.EPERM)
	c.want("parent away", unix.Rename("host", "elsewhere"), unix.EPERM)
	fd, err := unix.Open(n, unix.O_RDONLY, 0)
	c.ok("read", err)
	c.want("reopen", open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY), unix.EPERM)
	c.want("reopen dev", open(fmt.Sprintf("/dev/fd/%d", fd), unix.O_RDWR|unix.O_TRUNC), unix.EPERM)
	c.want("fchmod", unix.Fchmod(fd, 0o777), unix.EPERM)
	c.want("link fd", unix.Linkat(dir, fmt.Sprintf("/proc/self/fd/%d", fd), dir, "other", flagFollow), unix.EPERM)
	c.want("link empty", unix.Linkat(fd, "", dir, "other", flagEmpty), unix.EPERM)
	p, err := unix.Open(n, unix.O_PATH, 0)
	c.ok("O_PATH", err)
	c.want("reopen path", open(fmt.Sprintf("/proc/self/fd/%d", p), unix.O_WRONLY), unix.EPERM)
	got, err := os.ReadFile(n)
	c.that("content changed", err == nil && string(got) == "host")
	return c.err()
}

func frozenRename() error {
	var c checks
	dir := unix.AT_FDCWD
	c.ok("x", os.MkdirAll("x/deeper", 0o755))
	c.ok("x/tasks.json", put("x/tasks.json"))
	c.want("dir becomes .vscode", unix.Rename("x", ".vscode"), unix.EPERM)
	c.ok("empty .VSCode", unix.Mkdir(".VSCode", 0o755))
	c.want("file into it", unix.Rename("x/tasks.json", ".VSCode/tasks.json"), unix.EPERM)
	c.want("exchange dirs", unix.Renameat2(dir, "x", dir, ".VSCode", renameExchange), unix.EPERM)
	c.want("exchange dirs back", unix.Renameat2(dir, ".VSCode", dir, "x", renameExchange), unix.EPERM)
	c.want("replace empty", unix.Rename("x", ".VSCode"), unix.EPERM)
	c.ok("git", os.MkdirAll("git/hooks", 0o755))
	c.ok("git hook", put("git/hooks/pre-commit"))
	c.want("becomes .git", unix.Rename("git", ".git"), unix.EPERM)
	c.ok("links", os.MkdirAll("plain/logs", 0o755))
	c.ok("link in it", os.Symlink("/etc/passwd", "plain/logs/HEAD"))
	c.want("becomes .git with a link", unix.Rename("plain", ".git"), unix.EPERM)
	c.ok("deep", os.MkdirAll("p/q/r/.vs/s", 0o755))
	c.ok("deep file", put("p/q/r/.vs/tasks.json"))
	c.want("deep rename", unix.Rename("p/q/r/.vs", "p/q/r/.vscode"), unix.EPERM)
	c.ok("harmless rename", unix.Rename("p/q", "p/w"))
	c.ok("unread", os.Mkdir("unread", 0o300))
	c.want("unread directory", unix.Rename("unread", "unread2"), unix.EPERM)
	c.ok("modules", os.MkdirAll("node_modules", 0o755))
	c.ok("free tree", unix.Rename("x", "node_modules/.x"))
	return c.err()
}

// dotDot renames a directory that another path goes up from.
func dotDot() error {
	var c checks
	c.ok("dirs", os.MkdirAll("one/two/three", 0o755))
	c.ok("vscode", os.MkdirAll("v/.vscode/sub", 0o755))
	d, err := unix.Open("one/two/three", unix.O_PATH, 0)
	c.ok("open", err)
	c.ok("move", unix.Rename("one/two/three", "v/.vscode/sub/three"))
	_, err = unix.Openat(d, "../../tasks.json", unix.O_CREAT|unix.O_WRONLY, 0o644)
	c.want("up into a frozen name", err, unix.EPERM)
	fd, err := unix.Openat(d, "../../other.json", unix.O_CREAT|unix.O_WRONLY, 0o644)
	c.ok("up into a free name", err)
	unix.Close(fd)
	_, err = os.Stat("v/.vscode/other.json")
	c.ok("where it went", err)
	c.ok("chdir", unix.Fchdir(d))
	c.ok("remove the directory we are in", unix.Rmdir("../three"))
	c.want("create in a removed directory", open("new", unix.O_CREAT|unix.O_WRONLY), unix.ENOENT)
	return c.err()
}

// inodes opens a frozen file by another name of it.
func inodes() error {
	var c checks
	c.want("other name of a frozen inode", open("host/alias", unix.O_WRONLY), unix.EPERM)
	c.want("truncate", unix.Truncate("host/alias", 0), unix.EPERM)
	c.want("chmod", unix.Chmod("host/alias", 0o700), unix.EPERM)
	c.want("link", unix.Link("host/alias", "third"), unix.EPERM)
	return c.err()
}

func procOne() error {
	var c checks
	paths := []string{"/proc/1/mem", "/proc/1/fd/0", "/proc/1/fd/3", "/proc/1/cwd/new", "/proc/1/root/tmp/new", "/proc/1/environ", "/proc/1/comm", "/proc/1/oom_score_adj",
		"/proc/1/task/1/mem", "/proc/1/task/1/cwd/new", "/proc/self/../1/mem", "/proc/1/exe", "/proc/1/map_files/x"}
	tasks, _ := os.ReadDir("/proc/1/task")
	c.that("no tasks seen", len(tasks) > 3)
	for _, t := range tasks {
		paths = append(paths, "/proc/"+t.Name()+"/mem", "/proc/"+t.Name()+"/fd/0", "/proc/"+t.Name()+"/cwd/new", "/proc/1/task/"+t.Name()+"/mem")
	}
	for _, p := range paths {
		for _, f := range []int{unix.O_RDWR, unix.O_WRONLY | unix.O_CREAT, unix.O_WRONLY | unix.O_TRUNC} {
			err := open(p, f)
			c.that(fmt.Sprintf("open %s %#o: %v", p, f, err), err != nil)
		}
	}
	c.that("mkdir below process 1's directory", unix.Mkdir("/proc/1/cwd/sub", 0o755) != nil)
	c.that("link of process 1's descriptor", unix.Linkat(unix.AT_FDCWD, "/proc/1/fd/3", unix.AT_FDCWD, "stolen", flagFollow) != nil)
	c.that("chmod through process 1", unix.Chmod("/proc/1/cwd/.", 0o777) != nil)
	c.want("memory", open("/proc/1/mem", unix.O_RDWR), unix.EACCES)
	c.want("own memory", open("/proc/self/mem", unix.O_RDWR), 0)
	c.want("own memory, thread", open("/proc/thread-self/mem", unix.O_RDWR), 0)
	return c.err()
}

// offMain runs f on a thread that is not the process's first, and is given up.
func offMain(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			done <- offMain(f) // this thread is held meanwhile
			return
		}
		done <- f()
	}()
	return <-done
}

func magicLinks() error {
	var c checks
	f, err := os.Create("target")
	c.ok("create", err)
	for i, p := range []string{"/proc/self/fd/%d", "/proc/thread-self/fd/%d", "/dev/fd/%d", "/proc/self/task/../fd/%d", fmt.Sprintf("/proc/%d/fd/%%d", os.Getpid())} {
		p = fmt.Sprintf(p, f.Fd())
		fd, err := unix.Open(p, unix.O_WRONLY|unix.O_TRUNC, 0)
		c.ok("open "+p, err)
		_, err = unix.Write(fd, []byte(fmt.Sprint("via", i)))
		c.ok("write", err)
		unix.Close(fd)
		got, _ := os.ReadFile("target")
		c.that(p+" went elsewhere: "+string(got), string(got) == fmt.Sprint("via", i))
	}
	c.ok("unlink", os.Remove("target"))
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.O_RDWR, 0)
	c.ok("reopen of a removed file", err)
	unix.Close(fd)
	// A thread with descriptors of its own.
	c.ok("thread with its own context", offMain(func() error {
		if err := unix.Unshare(unix.CLONE_FILES | unix.CLONE_FS); err != nil {
			return err
		}
		if err := os.Mkdir("threaddir", 0o755); err != nil {
			return err
		}
		if err := unix.Chdir("threaddir"); err != nil {
			return err
		}
		fd, err := unix.Open("inthread", unix.O_CREAT|unix.O_RDWR, 0o644)
		if err != nil {
			return err
		}
		if err := unix.Dup3(fd, 200, 0); err != nil {
			return err
		}
		return open("/proc/thread-self/fd/200", unix.O_WRONLY|unix.O_APPEND)
	}))
	_, err = os.Stat("threaddir/inthread")
	c.ok("the thread's directory", err)
	c.want("not the process's descriptor", open("/proc/self/fd/200", unix.O_WRONLY), unix.ENOENT)
	// Another process of the run, as the kernel allows it.
	cmd := exec.Command("/bin/sleep", "100")
	cmd.Dir = "threaddir"
	c.ok("start", cmd.Start())
	c.ok("into its directory", put(fmt.Sprintf("/proc/%d/cwd/fromoutside", cmd.Process.Pid)))
	_, err = os.Stat("threaddir/fromoutside")
	c.ok("there", err)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	c.that("a process that ended", put(fmt.Sprintf("/proc/%d/cwd/late", cmd.Process.Pid)) != nil)
	return c.err()
}

func fifoOpens() error {
	var c checks
	var wg sync.WaitGroup
	errs := make(chan error, 40)
	for i := range 20 {
		n := fmt.Sprint("fifo", i)
		c.ok("mkfifo", unix.Mkfifo(n, 0o644))
		wg.Go(func() {
			w, err := os.OpenFile(n, os.O_WRONLY, 0)
			if err == nil {
				_, err = w.WriteString(n)
				w.Close()
			}
			errs <- err
		})
	}
	// Others go on meanwhile.
	for i := range 200 {
		c.ok("create beside blocked opens", put(fmt.Sprint("beside", i%7)))
	}
	for i := range 20 {
		n := fmt.Sprint("fifo", i)
		got, err := os.ReadFile(n)
		c.ok("read", err)
		c.that("content "+string(got), string(got) == n)
	}
	wg.Wait()
	for range 20 {
		c.ok("writer", <-errs)
	}
	c.want("nonblocking without a reader", open("fifo0", unix.O_WRONLY|unix.O_NONBLOCK), unix.ENXIO)
	c.ok("both ends", open("fifo0", unix.O_RDWR))
	return c.err()
}

func fifoSignals() error {
	var c checks
	c.ok("mkfifo", unix.Mkfifo("fifo", 0o644))
	// sh without SA_RESTART handlers: the trap runs, the open fails or starts over.
	out, err := exec.Command("/bin/sh", "-c", `trap 'echo trapped; exit 7' USR1; (sleep 0.3; kill -USR1 $$) & echo x >fifo; echo after`).CombinedOutput()
	c.that(fmt.Sprintf("trap: %q %v", out, err), strings.Contains(string(out), "trapped"))
	// A default fatal signal.
	cmd := exec.Command("/bin/sh", "-c", "echo x >fifo")
	c.ok("start", cmd.Start())
	time.Sleep(100 * time.Millisecond)
	c.ok("kill", cmd.Process.Signal(unix.SIGTERM))
	err = cmd.Wait()
	c.that(fmt.Sprintf("ended by the signal: %v", err), strings.Contains(fmt.Sprint(err), "terminated"))
	// A restarting handler: Go's.
	ch := make(chan os.Signal, 10)
	signal.Notify(ch, unix.SIGUSR2)
	opened := make(chan error, 1)
	go func() { opened <- open("fifo", unix.O_WRONLY) }()
	time.Sleep(50 * time.Millisecond)
	c.ok("signal", unix.Kill(os.Getpid(), unix.SIGUSR2))
	<-ch
	c.ok("reader", open("fifo", unix.O_RDONLY))
	c.ok("restarted", <-opened)
	return c.err()
}

func killedCallers() error {
	var c checks
	c.ok("mkfifo", unix.Mkfifo("fifo", 0o644))
	for range 10 {
		cmd := exec.Command("/bin/sh", "-c", "echo x >fifo")
		c.ok("start", cmd.Start())
		time.Sleep(20 * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for i := range 20 {
		cmd := exec.Command("/bin/sh", "-c", "while :; do echo x >busy; rm busy; mkdir d; rmdir d; done")
		c.ok("start", cmd.Start())
		time.Sleep(time.Duration(i) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		c.ok("after", put("after"))
	}
	time.Sleep(100 * time.Millisecond)
	// This process is the only one of its name left below process 1.
	out, _ := exec.Command("/bin/sh", "-c", "grep -l '^PPid:.1$' /proc/[0-9]*/status | while read s; do grep '^Name:.exe' $s; done | wc -l").Output()
	c.that("helpers left: "+string(out), strings.TrimSpace(string(out)) == "1")
	return c.err()
}

func terminals() error {
	var c checks
	c.want("no controlling terminal", open("/dev/tty", unix.O_RDWR), unix.ENXIO)
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("ptmx: %w", err)
	}
	c.ok("unlock", unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(m, unix.TIOCGPTN)
	c.ok("number", err)
	s, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	c.ok("slave", err)
	cmd := exec.Command("/bin/sh", "-c", "echo to-the-terminal >/dev/tty; tty </dev/tty")
	cmd.Stdin, cmd.Stdout = s, s
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	c.ok("session", cmd.Run())
	buf := make([]byte, 200)
	k, err := unix.Read(m, buf)
	c.ok("read", err)
	c.that(fmt.Sprintf("terminal said %q", buf[:k]), bytes.Contains(buf[:k], []byte("to-the-terminal")))
	return c.err()
}

func descriptors() error {
	var c checks
	lim := unix.Rlimit{Cur: 40, Max: 40}
	c.ok("limit", unix.Setrlimit(unix.RLIMIT_NOFILE, &lim))
	var fds []int
	var last error
	for range 60 {
		fd, err := unix.Open("same", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		if err != nil {
			last = err
			break
		}
		fds = append(fds, fd)
	}
	c.want("out of descriptors", last, unix.EMFILE)
	for _, fd := range fds {
		unix.Close(fd)
	}
	c.ok("afterwards", open("same", unix.O_WRONLY))
	fl, err := unix.Open("flags", unix.O_CREAT|unix.O_WRONLY, 0o644)
	c.ok("without close-on-exec", err)
	got, _ := unix.FcntlInt(uintptr(fl), unix.F_GETFD, 0)
	c.that("close-on-exec was added", got == 0)
	c.want("bad descriptor", func() error { _, err := unix.Openat(35, "x", unix.O_CREAT|unix.O_WRONLY, 0o644); return err }(), unix.EBADF)
	c.want("not a directory", func() error {
		_, err := unix.Openat(fl, "x", unix.O_CREAT|unix.O_WRONLY, 0o644)
		return err
	}(), unix.ENOTDIR)
	c.ok("absolute name, bad descriptor", func() error {
		_, err := unix.Openat(35, "/dev/null", unix.O_WRONLY, 0)
		return err
	}())
	return c.err()
}

func modeOf(name string) os.FileMode {
	st, err := os.Lstat(name)
	if err != nil {
		return 0
	}
	return st.Mode().Perm()
}

func umasks() error {
	var c checks
	for _, mask := range []int{0, 0o22, 0o77, 0o27, 0o777, 0o2} {
		unix.Umask(mask)
		n := fmt.Sprintf("m%o", mask)
		c.ok("dir", unix.Mkdir(n+"d", 0o777))
		c.that(fmt.Sprintf("mkdir %o: %o", mask, modeOf(n+"d")), int(modeOf(n+"d")) == 0o777&^mask)
		_ = open(n+"f", unix.O_CREAT|unix.O_WRONLY)
		c.that(fmt.Sprintf("open %o: %o", mask, modeOf(n+"f")), int(modeOf(n+"f")) == 0o666&^mask)
		c.ok("fifo", unix.Mkfifo(n+"p", 0o666))
		c.that(fmt.Sprintf("mknod %o: %o", mask, modeOf(n+"p")), int(modeOf(n+"p")) == 0o666&^mask)
	}
	unix.Umask(0o22)
	// Children inherit, and what one sets is not another's.
	c.ok("shell", exec.Command("/bin/sh", "-c", `umask 077; (umask 0; sleep 0.05; : >s1); : >s2; (: >s3); umask 027; /bin/sh -c ': >s4'; umask 0; umask 077; : >s5`).Run())
	for n, want := range map[string]os.FileMode{"s1": 0o666, "s2": 0o600, "s3": 0o600, "s4": 0o640, "s5": 0o600} {
		c.that(fmt.Sprintf("%s: %o", n, modeOf(n)), modeOf(n) == want)
	}
	// Threads with their own mask, interleaved.
	var wg sync.WaitGroup
	for i, mask := range []int{0o77, 0, 0o22, 0o27} {
		wg.Go(func() {
			runtime.LockOSThread()
			if unix.Unshare(unix.CLONE_FS) != nil {
				return
			}
			for j := range 50 {
				unix.Umask(mask)
				n := fmt.Sprintf("t%d-%d", i, j)
				_ = open(n, unix.O_CREAT|unix.O_WRONLY)
				if int(modeOf(n)) != 0o666&^mask {
					fmt.Printf("%s: %o\n", n, modeOf(n))
					os.Exit(3)
				}
			}
		})
	}
	wg.Wait()
	return c.err()
}

func manyThreads() error {
	var c checks
	var wg sync.WaitGroup
	errs := make(chan error, 64)
	for i := range 64 {
		wg.Go(func() {
			runtime.LockOSThread()
			var err error
			for j := range 60 {
				n := fmt.Sprintf("th%d", i)
				err = errors.Join(err, put(n), os.Mkdir(n+"d", 0o755), os.Rename(n, n+"d/x"), os.Link(n+"d/x", n+"l"), os.Remove(n+"d/x"), os.Remove(n+"d"), os.Remove(n+"l"))
				if e := open("frozen.txt", unix.O_CREAT|unix.O_WRONLY); e != unix.EPERM {
					err = errors.Join(err, fmt.Errorf("frozen in round %d: %v", j, e))
				}
			}
			errs <- err
		})
	}
	wg.Wait()
	for range 64 {
		c.ok("thread", <-errs)
	}
	return c.err()
}

func notDumpable() error {
	var c checks
	c.ok("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	c.ok("relative", put("relative"))
	c.ok("mkdir", os.Mkdir("d", 0o755))
	d, err := unix.Open("d", unix.O_PATH, 0)
	c.ok("open", err)
	fd, err := unix.Openat(d, "in", unix.O_CREAT|unix.O_WRONLY, 0o644)
	c.ok("openat", err)
	c.ok("own descriptor", open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY))
	c.want("frozen", open("frozen.txt", unix.O_CREAT|unix.O_WRONLY), unix.EPERM)
	return c.err()
}

func stopped() error {
	var c checks
	cmd := exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 200 ]; do echo $i >count.$i; i=$((i+1)); done")
	c.ok("start", cmd.Start())
	for range 20 {
		_ = cmd.Process.Signal(unix.SIGSTOP)
		c.ok("meanwhile", put("meanwhile"))
		time.Sleep(3 * time.Millisecond)
		_ = cmd.Process.Signal(unix.SIGCONT)
		time.Sleep(3 * time.Millisecond)
	}
	c.ok("end", cmd.Wait())
	_, err := os.Stat("count.199")
	c.ok("last", err)
	// Stopped while its open waits: it starts over.
	c.ok("mkfifo", unix.Mkfifo("fifo", 0o644))
	cmd = exec.Command("/bin/sh", "-c", "echo through >fifo")
	c.ok("start", cmd.Start())
	time.Sleep(60 * time.Millisecond)
	_ = cmd.Process.Signal(unix.SIGSTOP)
	time.Sleep(60 * time.Millisecond)
	_ = cmd.Process.Signal(unix.SIGCONT)
	got, err := os.ReadFile("fifo")
	c.ok("read", err)
	c.that("content "+string(got), string(got) == "through\n")
	c.ok("end", cmd.Wait())
	return c.err()
}

func traced() error {
	if err := traceeMemory(); err != nil {
		return err
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		return nil // nothing to trace with
	}
	var c checks
	out, err := exec.Command(strace, "-f", "-o", "trace.out", "/bin/sh", "-c", "echo a >traced; mkdir td; mv traced td/; echo b >frozen.txt || echo refused; cat td/traced").CombinedOutput()
	c.that(fmt.Sprintf("strace: %q %v", out, err), strings.Contains(string(out), "refused") && strings.Contains(string(out), "a\n"))
	text, _ := os.ReadFile("trace.out")
	c.that("the trace shows the refusal", bytes.Contains(text, []byte("EPERM")))
	return c.err()
}

// traceeMemory opens the memory of a process that is traced, and of one that
// is not.
func traceeMemory() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var c checks
	cmd := exec.Command("/bin/sleep", "100")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	c.ok("start", cmd.Start())
	var ws unix.WaitStatus
	_, err := unix.Wait4(cmd.Process.Pid, &ws, 0, nil)
	c.ok("stopped at exec", err)
	mem := fmt.Sprintf("/proc/%d/mem", cmd.Process.Pid)
	c.ok("memory of a traced process", open(mem, unix.O_RDWR))
	c.ok("detach", unix.PtraceDetach(cmd.Process.Pid))
	c.want("memory of another process", open(mem, unix.O_RDWR), unix.EACCES)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return c.err()
}

// spawned redirects in a vfork child, which shares its parent's memory.
func spawned() error {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil
	}
	var c checks
	out, err := exec.Command(python, "-c", `
import os
for i in range(50):
    pid = os.posix_spawn("/bin/echo", ["echo", "spawned"], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "out%d" % i, os.O_WRONLY|os.O_CREAT, 0o644)])
    os.waitpid(pid, 0)
try:
    pid = os.posix_spawn("/bin/echo", ["echo"], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "frozen.txt", os.O_WRONLY|os.O_CREAT, 0o644)])
    os.waitpid(pid, 0)
    print("not refused")
except PermissionError:
    print("refused")
`).CombinedOutput()
	c.that(fmt.Sprintf("python: %q %v", out, err), string(out) == "refused\n")
	got, _ := os.ReadFile("out49")
	c.that("content "+string(got), string(got) == "spawned\n")
	return c.err()
}

// deep goes below what a path can name.
func deep() error {
	var c checks
	name := strings.Repeat("d", 200)
	dir, err := unix.Open(".", unix.O_PATH, 0)
	c.ok("open", err)
	var depth int
	for depth = 0; depth < 40; depth++ {
		if err := unix.Mkdirat(dir, name, 0o755); err != nil {
			c.want("too deep to judge", err, unix.ENAMETOOLONG)
			break
		}
		fd, err := unix.Openat(dir, "frozen.txt", unix.O_CREAT|unix.O_WRONLY, 0o644)
		if err == nil {
			unix.Close(fd)
		}
		c.want(fmt.Sprint("frozen at depth ", depth), err, unix.EPERM)
		next, err := unix.Openat(dir, name, unix.O_PATH, 0)
		c.ok("down", err)
		unix.Close(dir)
		dir = next
	}
	c.that(fmt.Sprint("depth ", depth), depth >= 18 && depth < 40)
	raw := "\xff\xfe\x80 \n\t\"'"
	c.ok("not UTF-8", put(raw))
	c.ok("remove", os.Remove(raw))
	c.want("too long", put(strings.Repeat("x", 256)), unix.ENAMETOOLONG)
	c.ok("longest", put(strings.Repeat("x", 255)))
	return c.err()
}

func tmpfile() error {
	var c checks
	at := unix.AT_FDCWD
	fd, err := unix.Open(".", unix.O_TMPFILE|unix.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("O_TMPFILE: %w", err)
	}
	_, err = unix.Write(fd, []byte("tmp"))
	c.ok("write", err)
	link := fmt.Sprintf("/proc/self/fd/%d", fd)
	c.want("frozen", unix.Linkat(at, link, at, "frozen.txt", flagFollow), unix.EPERM)
	c.ok("free", unix.Linkat(at, link, at, "named", flagFollow))
	c.want("frozen, empty path", unix.Linkat(fd, "", at, "frozen.txt", flagEmpty), unix.EPERM)
	got, _ := os.ReadFile("named")
	c.that("content", string(got) == "tmp")
	fd, err = unix.Open(".", unix.O_TMPFILE|unix.O_RDWR|unix.O_EXCL, 0o644)
	c.ok("unlinkable", err)
	c.want("cannot be named", unix.Linkat(at, fmt.Sprintf("/proc/self/fd/%d", fd), at, "named2", flagFollow), unix.ENOENT)
	return c.err()
}

func gitWorks() error {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil
	}
	var c checks
	run := func(args ...string) string {
		cmd := exec.Command(git, args...)
		cmd.Env = append(os.Environ(), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		if err != nil {
			c.bad = append(c.bad, fmt.Errorf("git %v: %w: %s", args, err, out))
		}
		return string(out)
	}
	run("init", "-q", "repo")
	c.ok("file", put("repo/file"))
	run("-C", "repo", "add", ".")
	run("-C", "repo", "commit", "-q", "-m", "first")
	run("-C", "repo", "branch", "other")
	run("-C", "repo", "switch", "-q", "other")
	run("-C", "repo", "gc", "-q")
	run("clone", "-q", "--no-hardlinks", "repo", "clone")
	run("-C", "repo", "worktree", "add", "-q", "../tree")
	c.want("hook", put("repo/.git/hooks/pre-commit"), unix.EPERM)
	c.want("hook in the clone", put("clone/.git/hooks/post-checkout"), unix.EPERM)
	c.want("link", os.Symlink("/etc/passwd", "repo/.git/COMMIT_EDITMSG2"), unix.EPERM)
	c.that("clean", run("-C", "repo", "status", "--porcelain") == "")
	return c.err()
}

func openFlags() error {
	var c checks
	c.ok("file", put("file"))
	for _, f := range []int{unix.O_WRONLY, unix.O_RDWR | unix.O_APPEND, unix.O_WRONLY | unix.O_NONBLOCK, unix.O_RDWR | unix.O_SYNC, unix.O_WRONLY | unix.O_DSYNC, unix.O_RDWR | unix.O_NOATIME} {
		fd, err := unix.Open("file", f, 0)
		if err != nil {
			c.ok(fmt.Sprintf("open %#o", f), err)
			continue
		}
		got, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		c.that(fmt.Sprintf("flags %#o became %#o", f, got), got&^0o100000 == f)
		unix.Close(fd)
	}
	return c.err()
}

// leases makes an open wait for a lease of another process.
func leases() error {
	var c checks
	fd, err := unix.Open("leased", unix.O_CREAT|unix.O_RDONLY, 0o644)
	c.ok("create", err)
	unix.Close(fd)
	fd, err = unix.Open("leased", unix.O_RDONLY, 0)
	c.ok("open", err)
	signal.Ignore(unix.SIGIO)
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return nil // no leases here
	}
	opened := make(chan error, 2)
	go func() { opened <- open("leased", unix.O_WRONLY) }()
	go func() { opened <- unix.Truncate("leased", 0) }()
	time.Sleep(50 * time.Millisecond)
	for i := range 50 {
		c.ok("beside", put(fmt.Sprint("beside", i)))
	}
	c.that("the lease was not waited for", len(opened) == 0)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	c.ok("release", err)
	c.ok("open", <-opened)
	c.ok("truncate", <-opened)
	return c.err()
}

// signalStorm opens files under a storm of handled signals: none may be torn.
func signalStorm() error {
	var c checks
	ch := make(chan os.Signal, 1000)
	signal.Notify(ch, unix.SIGUSR1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Kill(os.Getpid(), unix.SIGUSR1)
			}
		}
	})
	for i := range 5000 {
		fd, err := unix.Open(fmt.Sprint("s", i%5), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
		if err != nil {
			c.ok("open", err)
			break
		}
		if fd == 0 {
			c.that("an open returned 0", false)
			break
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			c.ok("descriptor", err)
			break
		}
		unix.Close(fd)
	}
	close(stop)
	wg.Wait()
	return c.err()
}

func noOpenat2() error {
	var c checks
	how := unix.OpenHow{Flags: unix.O_RDONLY}
	_, err := unix.Openat2(unix.AT_FDCWD, ".", &how)
	c.want("openat2", err, unix.ENOSYS)
	return c.err()
}

// nested asks for a second listener.
func nested() error {
	runtime.LockOSThread()
	_, err := Install()
	var e *UnavailableError
	if !errors.As(err, &e) || e.Err != unix.EBUSY {
		return fmt.Errorf("a second listener: %w, want busy", err)
	}
	return nil
}

// benchOpen prints the median nanoseconds of a create, a rewrite and an unlink.
func benchOpen() error {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	n = min(max(n, 200), 20000)
	for _, f := range []func(name string) error{
		func(name string) error { return open(name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY) },
		func(name string) error { return open(name, unix.O_CREAT|unix.O_WRONLY) },
		unix.Unlink,
	} {
		times := make([]time.Duration, n)
		for i := range times {
			name := fmt.Sprint("f", i)
			start := time.Now()
			if err := f(name); err != nil {
				return err
			}
			times[i] = time.Since(start)
		}
		slices.Sort(times)
		fmt.Println(times[n/2].Nanoseconds())
	}
	return nil
}

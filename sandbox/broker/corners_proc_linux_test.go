//go:build amd64 || arm64

package broker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

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

func noOpenat2() error {
	var c checks
	how := unix.OpenHow{Flags: unix.O_RDONLY}
	_, err := unix.Openat2(unix.AT_FDCWD, ".", &how)
	c.want("openat2", err, unix.ENOSYS)
	return c.err()
}

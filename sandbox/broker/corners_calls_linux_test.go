//go:build amd64 || arm64

package broker

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

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

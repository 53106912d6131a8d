//go:build amd64 || arm64

package broker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
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

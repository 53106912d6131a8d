//go:build amd64 || arm64

package broker

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stressTime is how long each stress runs; BROKER_STRESS makes it longer.
func stressTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("BROKER_STRESS")); err == nil {
		return d
	}
	return 8 * time.Second
}

// TestStress races threads of the run against each other and against the host,
// which saves the frozen files meanwhile.
func TestStress(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	users(t, func(t *testing.T, w *world) {
		for _, role := range []string{"stress-swap", "stress-names"} {
			t.Run(role, func(t *testing.T) {
				w := newWorld(t, w.uid)
				stop := make(chan struct{})
				var host sync.WaitGroup
				host.Go(func() { saveAsHost(w, stop) })
				o := w.run(t, setup{Role: role})
				close(stop)
				host.Wait()
				t.Logf("%v", o.Counts)
				if o.Status != 0 {
					t.Errorf("status %d\n%.2000s", o.Status, o.Stdout)
				}
				if o.Counts["refused"] == 0 {
					t.Error("nothing was refused: the stress did not stress")
				}
				if grown := o.FDs[1] - o.FDs[0]; grown > 2 {
					t.Errorf("process 1 has %d descriptors more than before", grown)
				}
				frozenLeft(t, w.dir)
			})
		}
	})
}

// saveAsHost replaces the frozen file the way an editor does.
func saveAsHost(w *world, stop <-chan struct{}) {
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			tmp := filepath.Join(filepath.Dir(w.dir), "save")
			if os.WriteFile(tmp, []byte("host"), 0o644) == nil && os.Chown(tmp, w.uid, w.uid) == nil {
				_ = os.Rename(tmp, filepath.Join(w.dir, "host/frozen.txt")) // host may be moved by nobody: it holds a frozen name
			}
		}
	}
}

// frozenLeft looks for frozen names that the run brought into being.
func frozenLeft(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if rel == "host/frozen.txt" || rel == "host/conftest.py" {
			got, err := os.ReadFile(path)
			if err != nil || rel == "host/frozen.txt" && string(got) != "host" {
				t.Errorf("%s holds %q (%v)", rel, got, err)
			}
			return nil
		}
		if v := (testRules{}).Decide(&Query{Op: OpCreate, Path: []byte(path), Type: typeRegular}); !v.Allow {
			t.Errorf("%s came into being (rule %s)", rel, v.Rule)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func init() {
	corners["stress-swap"] = stressSwap
	corners["stress-names"] = stressNames
}

// stressSwap has threads swap the string, the directory and the ancestors of
// what other threads open.
func stressSwap() error {
	for _, d := range []string{"a/b", "p/.vscode", "q/plain", "s"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	_ = os.Symlink("../host/frozen.txt", "s/l")
	_ = put("s/f")
	until := time.Now().Add(stressTime())
	buf := append([]byte("a/b/innocent.txt"), 0)
	texts := [][]byte{[]byte("a/b/innocent.txt"), []byte("a/b/frozen.txt\x00.."), []byte("host/frozen.txt\x00.")}
	var dirFD atomic.Int64
	d, err := unix.Open("q/plain", unix.O_PATH, 0)
	if err != nil {
		return err
	}
	dirFD.Store(int64(d))
	var wg sync.WaitGroup
	var rounds atomic.Int64
	loop := func(f func()) {
		wg.Go(func() {
			runtime.LockOSThread()
			for time.Now().Before(until) {
				f()
				rounds.Add(1)
			}
		})
	}
	loop(func() { // the string
		for _, t := range texts {
			copy(buf, t)
		}
	})
	loop(func() { // the descriptor
		for _, n := range []string{"p/.vscode", "q/plain"} {
			if fd, err := unix.Open(n, unix.O_PATH, 0); err == nil {
				_ = unix.Dup3(fd, d, 0)
				unix.Close(fd)
			}
		}
	})
	loop(func() { // the ancestors
		_ = unix.Renameat2(unix.AT_FDCWD, "p", unix.AT_FDCWD, "q", renameExchange)
		_ = os.Rename("q/plain", "q/.vscode")
		_ = os.Rename("p/plain", "p/.vscode")
		_ = os.Rename("q/.vscode", "q/plain")
	})
	loop(func() { // the final link
		_ = unix.Renameat2(unix.AT_FDCWD, "s/l", unix.AT_FDCWD, "s/f", renameExchange)
	})
	for range 4 {
		loop(func() {
			fd, _, e := unix.Syscall6(unix.SYS_OPENAT, here, uintptr(unsafe.Pointer(&buf[0])), unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, 0o644, 0, 0)
			if e == 0 {
				_, _ = unix.Write(int(fd), []byte("run"))
				unix.Close(int(fd))
			}
		})
		loop(func() {
			if fd, err := unix.Openat(d, "tasks.json", unix.O_CREAT|unix.O_WRONLY, 0o644); err == nil {
				_, _ = unix.Write(fd, []byte("run"))
				unix.Close(fd)
			}
			_ = unix.Unlinkat(d, "tasks.json", 0)
			_ = os.WriteFile("q/plain/tasks.json", []byte("run"), 0o644)
		})
		loop(func() {
			for _, n := range []string{"s/l", "s/f"} {
				if fd, err := unix.Open(n, unix.O_WRONLY|unix.O_TRUNC, 0); err == nil {
					_, _ = unix.Write(fd, []byte("run"))
					unix.Close(fd)
				}
			}
		})
	}
	wg.Wait()
	fmt.Println("rounds", rounds.Load())
	// What was once written into a directory that could still become .vscode
	// is looked for by the test.
	return nil
}

// stressNames has 64 threads try everything on a few names at once.
func stressNames() error {
	until := time.Now().Add(stressTime())
	names := []string{"frozen.txt", "x", "y", "d", "d/x", "d/frozen.txt", "d/e", "d/e/Frozen.txt", "d/e/x", ".vscode", ".vscode/tasks.json", ".vscode/x", "v", "v/tasks.json", "host/frozen.txt", "host/link", "host/x", "l"}
	var wg sync.WaitGroup
	var rounds atomic.Int64
	for i := range 64 {
		wg.Go(func() {
			runtime.LockOSThread()
			r := rand.New(rand.NewPCG(uint64(i), 42))
			name := func() string { return names[r.IntN(len(names))] }
			for time.Now().Before(until) {
				rounds.Add(1)
				a, b := name(), name()
				switch r.IntN(10) {
				case 0:
					if fd, err := unix.Open(a, unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0o644); err == nil {
						_, _ = unix.Write(fd, []byte("run"))
						unix.Close(fd)
					}
				case 1:
					_ = unix.Mkdir(a, 0o755)
				case 2:
					_ = unix.Rename(a, b)
				case 3:
					_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, renameExchange)
				case 4:
					_ = unix.Link(a, b)
				case 5:
					_ = unix.Symlink(strings.TrimPrefix(a, "d/"), b)
				case 6:
					_ = unix.Unlink(a)
				case 7:
					_ = unix.Rmdir(a)
				case 8:
					_ = unix.Truncate(a, 1)
				case 9:
					_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, renameNoReplace)
				}
			}
		})
	}
	wg.Wait()
	fmt.Println("rounds", rounds.Load())
	return nil
}

func init() { corners["dying-supervisor"] = dyingSupervisor }

// TestSupervisorEnds ends the serving while callers call and while one waits
// in an open: calls fail, nothing hangs.
func TestSupervisorEnds(t *testing.T) {
	users(t, func(t *testing.T, w *world) {
		for _, split := range []bool{false, true} {
			t.Run(fmt.Sprint("split=", split), func(t *testing.T) {
				o := newWorld(t, w.uid).run(t, setup{Role: "dying-supervisor", KillSelf: true, Split: split})
				if o.Status != 0 {
					t.Errorf("status %d\n%.2000s", o.Status, o.Stdout)
				}
			})
		}
	})
}

// dyingSupervisor goes on until its calls fail.
func dyingSupervisor() error {
	if err := unix.Mkfifo("fifo", 0o644); err != nil {
		return err
	}
	waiting := make(chan error, 1)
	go func() { waiting <- open("fifo", unix.O_WRONLY) }()
	var wg sync.WaitGroup
	ends := make(chan error, 8)
	for i := range 8 {
		wg.Go(func() {
			runtime.LockOSThread()
			for {
				if err := open(fmt.Sprint("f", i), unix.O_CREAT|unix.O_WRONLY); err != nil {
					ends <- err
					return
				}
			}
		})
	}
	wg.Wait()
	for range 8 {
		if err := <-ends; err != unix.ENOSYS {
			return fmt.Errorf("a call ended with %w, want ENOSYS", err)
		}
	}
	if err := <-waiting; err == nil {
		return fmt.Errorf("an open of a FIFO without a reader succeeded")
	}
	if _, err := os.ReadDir("."); err != nil {
		return fmt.Errorf("reading goes on: %w", err)
	}
	return nil
}

package sandbox_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentguard/sandbox"
)

// outcome is what one run gave.
type outcome struct {
	status         int
	stdout, stderr string
	err            error
}

// need fails or skips a test that cannot run without a sandbox on this
// machine: under CI a missing one is a failure.
func need(t *testing.T) {
	t.Helper()
	s := sandbox.Detect(t.Context())
	if s.Err == nil {
		return
	}
	if strings.Contains(os.Getenv("AGENTGUARD_REQUIRE"), "bwrap") {
		t.Fatalf("this test needs the kernel's namespaces and bubblewrap: %v", s.Err)
	}
	t.Skipf("this test needs the kernel's namespaces and bubblewrap: %v", s.Err)
}

// spec is a sandbox around a throw-away workspace.
func spec(ws string, argv ...string) sandbox.Spec {
	plan := sandbox.Base(sandbox.Host{}, sandbox.BaseOptions{Home: "/home/tester"})
	plan = append(plan, sandbox.Mount{Kind: sandbox.Writable, Source: ws, Target: ws})
	return sandbox.Spec{
		Argv: argv, Dir: ws, Mounts: plan,
		Env:   []string{"PATH=/usr/bin:/bin", "HOME=/home/tester"},
		Write: append(sandbox.BaseWrite("/home/tester"), ws),
	}
}

func run(t *testing.T, s sandbox.Spec) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	stdout, wait1 := collect(t, &out)
	stderr, wait2 := collect(t, &errs)
	s.Stdout, s.Stderr = stdout, stderr
	p, err := sandbox.Start(t.Context(), s)
	_, _ = stdout.Close(), stderr.Close()
	if err != nil {
		wait1()
		wait2()
		return outcome{status: 125, err: err}
	}
	status, err := p.Wait()
	wait1()
	wait2()
	return outcome{status, out.String(), errs.String(), err}
}

func collect(t *testing.T, b *bytes.Buffer) (*os.File, func()) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_, _ = b.ReadFrom(r)
		_ = r.Close()
		close(done)
	}()
	return w, func() { <-done }
}

func workspace(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestStatus(t *testing.T) {
	need(t)
	ws := workspace(t)
	if err := os.WriteFile(filepath.Join(ws, "text"), []byte("echo hi\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ws, "script"), []byte("echo from-script\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		argv []string
		want int
		out  string
	}{
		{"zero", []string{"true"}, 0, ""},
		{"one", []string{"false"}, 1, ""},
		{"255", []string{"sh", "-c", "exit 255"}, 255, ""},
		{"by a signal", []string{"sh", "-c", "kill -TERM $$"}, 143, ""},
		{"not found", []string{"no-such-command"}, 127, ""},
		{"not found by path", []string{"./nodir/x"}, 127, ""},
		{"not executable", []string{"./text"}, 126, ""},
		{"a directory", []string{"/usr"}, 126, ""},
		{"script without a first line", []string{"./script"}, 0, "from-script\n"},
		{"the caller's umask", []string{"sh", "-c", "touch m; stat -c %a m"}, 0, wantMode()},
		{"output", []string{"echo", "a", "b c"}, 0, "a b c\n"},
		{"background child", []string{"sh", "-c", "sleep 100 & echo up"}, 0, "up\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := run(t, spec(ws, tc.argv...))
			if got.status != tc.want || got.stdout != tc.out {
				t.Errorf("status %d, output %q, error %v (%s); want %d, %q", got.status, got.stdout, got.err, got.stderr, tc.want, tc.out)
			}
		})
	}
}

// wantMode is what a new file gets under this process's umask.
func wantMode() string {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return fmt.Sprintf("%o\n", 0o666&^mask)
}

func TestFrozen(t *testing.T) {
	need(t)
	if _, err := exec.LookPath("bash"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, script string }{
		{"append", "echo evil >> d/f"},
		{"rename over", "echo evil > n; mv -f n d/f"},
		{"rename away", "mv d/f d/g"},
		{"remove", "rm -f d/f"},
		{"truncate", "truncate -s0 d/f"},
		{"chmod", "chmod 777 d/f"},
		{"rename the parent", "mv d e"},
		{"rename the grandparent", "mv p q"},
		{"exchange", "python3 -c 'import ctypes; print(ctypes.CDLL(None).renameat2(-100,b\"p\",-100,b\"x\",2))'; ls x/d"},
		{"replace the link", "ln -sfn /tmp l"},
		{"remove the link", "rm l"},
		{"hard link onto it", "echo evil > n; ln -f n d/f"},
		{"umount", "umount d/f; echo evil > d/f"},
		{"remount", "mount -o remount,rw,bind d/f; echo evil > d/f"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ws := workspace(t)
			for _, dir := range []string{"d", "p/d", "x"} {
				_ = os.MkdirAll(filepath.Join(ws, dir), 0o755)
			}
			for _, f := range []string{"d/f", "p/d/f"} {
				_ = os.WriteFile(filepath.Join(ws, f), []byte("good"), 0o644)
			}
			_ = os.Symlink("d", filepath.Join(ws, "l"))
			s := spec(ws, "bash", "-c", "set -e; "+tc.script)
			for _, pin := range []string{"d", "p", "p/d"} {
				s.Mounts = append(s.Mounts, sandbox.Mount{Kind: sandbox.Pin, Target: filepath.Join(ws, pin)})
			}
			for _, f := range []string{"d/f", "p/d/f", "l"} {
				s.Mounts = append(s.Mounts, sandbox.Mount{Kind: sandbox.Freeze, Target: filepath.Join(ws, f)})
			}
			got := run(t, s)
			if got.status == 0 {
				t.Errorf("it worked: %s", got.stdout)
			}
			for _, f := range []string{"d/f", "p/d/f"} {
				b, err := os.ReadFile(filepath.Join(ws, f))
				if err != nil || string(b) != "good" {
					t.Errorf("%s is %q, %v", f, b, err)
				}
			}
			if to, err := os.Readlink(filepath.Join(ws, "l")); to != "d" {
				t.Errorf("l leads to %q, %v", to, err)
			}
		})
	}
}

package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentguard/sandbox"
)

// The terminal's keys can only be tried by a process that has the terminal as
// its own, so this test binary is started once more as the supervisor: in a
// session of its own on a pseudo-terminal, with a shell as its parent where
// job control matters.
const supervisorEnv = "AGENTGUARD_TEST_SUPERVISOR"

func TestMain(m *testing.M) {
	if script := os.Getenv(supervisorEnv); script != "" {
		os.Exit(supervise(script))
	}
	os.Exit(m.Run())
}

func supervise(script string) int {
	dir, err := os.Getwd()
	if err != nil {
		return 125
	}
	s := spec(dir, "bash", "--norc", "--noprofile", "-c", script)
	s.Env = append(s.Env, "TERM=xterm")
	s.Stdin, s.Stdout, s.Stderr = os.Stdin, os.Stdout, os.Stderr
	p, err := sandbox.Start(context.Background(), s)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	status, err := p.Wait()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return status
}

// screen is the other side of a pseudo-terminal on which a shell runs.
type screen struct {
	t    *testing.T
	ptmx *os.File
	text chan string
	all  strings.Builder
}

func openScreen(t *testing.T, argv ...string) *screen {
	t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = workspace(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.Env = append(os.Environ(), "PS1=P> ", "TERM=dumb")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, ptmx: ptmx, text: make(chan string, 1024)}
	go func() {
		defer close(s.text)
		buf := make([]byte, 4096)
		for {
			n, err := ptmx.Read(buf)
			if err != nil {
				return
			}
			s.text <- string(buf[:n])
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = ptmx.Close()
	})
	return s
}

// expect reads until want has appeared after everything expected before.
func (s *screen) expect(want string) {
	s.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		if _, after, ok := strings.Cut(s.all.String(), want); ok {
			s.all.Reset()
			s.all.WriteString(after)
			return
		}
		select {
		case text, ok := <-s.text:
			if !ok {
				s.t.Fatalf("the terminal closed before %q; it showed %q", want, s.all.String())
			}
			s.all.WriteString(text)
		case <-deadline:
			s.t.Fatalf("no %q; the terminal shows %q", want, s.all.String())
		}
	}
}

func (s *screen) send(text string) {
	s.t.Helper()
	if _, err := s.ptmx.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// start types the line that runs script in a sandbox.
func (s *screen) start(script string) {
	s.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	s.send(fmt.Sprintf("%s='%s' %s\n", supervisorEnv, script, exe))
}

func shellScreen(t *testing.T) *screen {
	need(t)
	s := openScreen(t, "bash", "--norc", "--noprofile", "-i")
	s.expect("P> ")
	return s
}

func TestInterruptKey(t *testing.T) {
	s := shellScreen(t)
	s.start(`trap "echo CAU""GHT; exit 3" INT; echo u""p; while :; do read -t 0.1 x; done`)
	s.expect("up")
	s.send("\x03")
	s.expect("CAUGHT")
	s.expect("P> ")
	s.send("echo status-$?\n")
	s.expect("status-3")
}

func TestInterruptKeyWithoutHandler(t *testing.T) {
	s := shellScreen(t)
	s.start(`echo u""p; exec sleep 1000`)
	s.expect("up")
	s.send("\x03")
	s.expect("P> ")
	s.send("echo status-$?\n")
	s.expect("status-130")
}

func TestStopKey(t *testing.T) {
	s := shellScreen(t)
	s.start(`echo u""p; read x; echo go""t-$x`)
	s.expect("up")
	s.send("\x1a")
	s.expect("Stopped")
	s.expect("P> ")
	s.send("echo she''ll\n")
	s.expect("shell")
	s.send("fg\n")
	s.expect("AGENTGUARD")
	s.send("again\n")
	s.expect("got-again")
	s.expect("P> ")
}

func TestSizeFollows(t *testing.T) {
	s := shellScreen(t)
	s.resize(31, 99)
	s.start(`trap "stty size" WINCH; stty size; while :; do read -t 0.1 x && break; done`)
	s.expect("31 99")
	s.resize(40, 120)
	s.expect("40 120")
	s.send("\n")
	s.expect("P> ")
}

func (s *screen) resize(rows, cols uint16) {
	s.t.Helper()
	if err := unix.IoctlSetWinsize(int(s.ptmx.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) modes() unix.Termios {
	s.t.Helper()
	m, err := unix.IoctlGetTermios(int(s.ptmx.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *m
}

func TestModesRestored(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"after an end", `stty raw -echo; echo u""p`},
		{"after a signal", `stty raw -echo; echo u""p; kill -KILL $$`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			need(t)
			s := openScreen(t, "sh")
			s.expect("P> ")
			before := s.modes()
			s.start(tc.script)
			s.expect("up")
			s.expect("P> ")
			s.send("echo ba''ck\n")
			s.expect("back")
			if after := s.modes(); after != before {
				t.Errorf("modes %+v, want %+v", after, before)
			}
		})
	}
}

func TestJobControlInside(t *testing.T) {
	s := shellScreen(t)
	s.start(`exec bash --norc --noprofile -i`)
	s.expect("bash-")
	s.send("tty; sleep 1000 & jobs | sed s/Running/RUN/; kill %1; wait; : </dev/tty && echo te''rm\n")
	s.expect("/dev/pts/")
	s.expect("RUN")
	s.expect("term")
	s.send("exit 5\n")
	s.expect("P> ")
	s.send("echo status-$?\n")
	s.expect("status-5")
}

func TestInjectionRefused(t *testing.T) {
	s := shellScreen(t)
	s.start(`python3 -c "import fcntl,termios
try: fcntl.ioctl(0, termios.TIOCSTI, b\"x\"); print(\"SE\" \"NT\")
except OSError as e: print(\"RE\" \"FUSED\")"`)
	s.expect("REFUSED")
	s.expect("P> ")
}

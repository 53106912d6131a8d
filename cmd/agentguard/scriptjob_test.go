package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// longest bounds how long a script waits for a line or an end.
const longest = 60 * time.Second

type jobsKey struct{}

// jobs are the processes that one script started beside itself.
type jobs struct{ named map[string]*job }

// job is one of them, with the lines it wrote so far.
type job struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it ended

	mu    sync.Mutex // guards lines
	lines []string
	more  chan struct{} // has a value when a line came
}

func (j *job) read(r io.Reader, wait *sync.WaitGroup) {
	defer wait.Done()
	for s := bufio.NewScanner(r); s.Scan(); {
		j.mu.Lock()
		j.lines = append(j.lines, s.Text())
		j.mu.Unlock()
		select {
		case j.more <- struct{}{}:
		default:
		}
	}
}

// find looks for a line and forgets those up to it.
func (j *job) find(re *regexp.Regexp) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, line := range j.lines {
		if re.MatchString(line) {
			j.lines = j.lines[i+1:]
			return true
		}
	}
	return false
}

func (j *job) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

// cmdStart is `start NAME COMMAND...`: the command runs beside the script.
func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME COMMAND [ARGUMENT...]")
	}
	path := args[1]
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, args[1])); err == nil {
			path = filepath.Join(dir, args[1])
			break
		}
	}
	j := &job{cmd: exec.Command(path, args[2:]...), done: make(chan struct{}), more: make(chan struct{}, 1)}
	j.cmd.Dir = ts.MkAbs(".")
	j.cmd.Env = scriptEnviron(ts)
	stdout, err := j.cmd.StdoutPipe()
	ts.Check(err)
	stderr, err := j.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(j.cmd.Start())
	var wait sync.WaitGroup
	wait.Add(2)
	go j.read(stdout, &wait)
	go j.read(stderr, &wait)
	go func() {
		wait.Wait()
		_ = j.cmd.Wait() // finish reads the status
		close(j.done)
	}()
	ts.Defer(func() {
		select {
		case <-j.done:
		default:
			_ = j.cmd.Process.Kill()
			<-j.done
		}
	})
	ts.Value(jobsKey{}).(*jobs).named[args[0]] = j
}

// scriptEnviron is the script's environment for a process that testscript
// does not start itself.
func scriptEnviron(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"HOME", "PATH", "PWD", "TMPDIR", "WORK", "GIT_CONFIG_NOSYSTEM", "LC_ALL", "XDG_STATE_HOME"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func oneJob(ts *testscript.TestScript, name string) *job {
	j := ts.Value(jobsKey{}).(*jobs).named[name]
	if j == nil {
		ts.Fatalf("nothing was started as %q", name)
	}
	return j
}

// cmdExpect is `expect NAME REGEXP`: waits until the job wrote such a line.
func cmdExpect(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: expect NAME REGEXP")
	}
	j := oneJob(ts, args[0])
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	limit := time.After(longest)
	for !j.find(re) {
		select {
		case <-j.more:
		case <-j.done:
			if !j.find(re) {
				ts.Fatalf("%s ended and wrote no line like %q but\n%s", args[0], args[1], j.text())
			}
			return
		case <-limit:
			ts.Fatalf("%s wrote no line like %q but\n%s", args[0], args[1], j.text())
		}
	}
}

// cmdSignal is `signal NAME INT|TERM|KILL`, to that process alone.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}
	if neg || len(args) != 2 || signals[args[1]] == 0 {
		ts.Fatalf("usage: signal NAME INT|TERM|KILL")
	}
	ts.Check(oneJob(ts, args[0]).cmd.Process.Signal(signals[args[1]]))
}

// cmdFinish is `finish NAME STATUS [...]`: waits for the job's end; a job that a
// signal ended has the status -1. Lines that nothing expected are a fault,
// unless three dots say that there may be some.
func cmdFinish(ts *testscript.TestScript, neg bool, args []string) {
	rest := len(args) == 3 && args[2] == "..."
	if neg || len(args) != 2 && !rest {
		ts.Fatalf("usage: finish NAME STATUS [...]")
	}
	j := oneJob(ts, args[0])
	select {
	case <-j.done:
	case <-time.After(longest):
		ts.Fatalf("%s did not end; it wrote\n%s", args[0], j.text())
	}
	if got := strconv.Itoa(j.cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("%s: status %s, want %s; it wrote\n%s", args[0], got, args[1], j.text())
	}
	if text := j.text(); text != "" && !rest {
		ts.Fatalf("%s wrote what was not expected:\n%s", args[0], text)
	}
}

// cmdOrigin is `origin VARIABLE`: serves "hello from the origin" on loopback
// until the script ends, and sets VARIABLE to its address and VARIABLE_PORT.
func cmdOrigin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: origin VARIABLE")
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello from the origin\n") // a client that went away is its own affair
	}))
	ts.Defer(srv.Close)
	addr := strings.TrimPrefix(srv.URL, "http://")
	ts.Setenv(args[0], addr)
	ts.Setenv(args[0]+"_PORT", addr[strings.LastIndex(addr, ":")+1:])
}

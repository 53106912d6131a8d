package seccomp

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// childVariable names what the test binary does instead of testing: a filter
// cannot be taken off again, so it goes on in a process of its own.
const childVariable = "AGENTGUARD_SECCOMP_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "":
		os.Exit(m.Run())
	case "refused":
		os.Exit(reportRefused())
	case "works":
		os.Exit(reportWorks())
	}
	os.Exit(2)
}

// TestKernelRefuses makes every refused call of the vectors for real, in an
// ordinary user's process under the filter.
func TestKernelRefuses(t *testing.T) {
	got := map[string]Errno{}
	if err := json.Unmarshal(child(t, "refused"), &got); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		if _, ok := v.number(runtime.GOARCH); !ok || v.want == allow {
			continue
		}
		if e, ok := got[v.name]; !ok || e != v.want {
			t.Errorf("%s: the kernel answers errno %d, want %d", v.name, e, v.want)
		}
	}
}

// TestKernelAllows does under the filter what tools do all day.
func TestKernelAllows(t *testing.T) {
	got := map[string]string{}
	if err := json.Unmarshal(child(t, "works"), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(works) {
		t.Errorf("%d answers, want %d", len(got), len(works))
	}
	for name, problem := range got {
		if problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// TestKernelRefuses32Bit runs a program that enters the kernel through the
// 32-bit gate, first without the filter and then with it.
func TestKernelRefuses32Bit(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("only amd64 has this gate")
	}
	program := filepath.Join(t.TempDir(), "int80")
	if err := os.WriteFile(program, int80(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(program).Run(); err != nil {
		t.Skipf("this kernel has no 32-bit gate: %v", err)
	}
	got := map[string]string{}
	if err := json.Unmarshal(child(t, "works", program), &got); err != nil {
		t.Fatal(err)
	}
	if got["argument"] != "exit status 1" {
		t.Errorf("the 32-bit call under the filter: %q, want a refusal (exit status 1)", got["argument"])
	}
}

func child(t *testing.T, what string, args ...string) []byte {
	t.Helper()
	if Program(runtime.GOARCH) == nil {
		t.Skipf("no program for %s", runtime.GOARCH)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), childVariable+"="+what)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		if strings.Contains(stderr.String(), "no filter: ") && !required("seccomp") {
			t.Skip(stderr.String())
		}
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return out
}

func required(what string) bool {
	return slices.Contains(strings.Split(os.Getenv("AGENTGUARD_REQUIRE"), ","), what)
}

// reportRefused gives up root first: a call that the filter should have
// stopped must not do on this machine what it says.
func reportRefused() int {
	if os.Getuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			return complain(err)
		}
	}
	if err := load(Program(runtime.GOARCH)); err != nil {
		return complain(err)
	}
	got := map[string]Errno{}
	for _, v := range vectors {
		n, ok := v.number(runtime.GOARCH)
		if !ok || v.want == allow {
			continue
		}
		a := v.args
		_, _, e := syscall.RawSyscall6(uintptr(n), uintptr(a[0]), uintptr(a[1]), uintptr(a[2]), uintptr(a[3]), uintptr(a[4]), uintptr(a[5]))
		got[v.name] = Errno(e)
	}
	return answerJSON(got)
}

func reportWorks() int {
	if err := load(Program(runtime.GOARCH)); err != nil {
		return complain(err)
	}
	got := map[string]string{}
	for name, do := range works {
		got[name] = ""
		if err := do(); err != nil {
			got[name] = err.Error()
		}
	}
	if len(os.Args) > 1 {
		got["argument"] = "ran"
		if err := exec.Command(os.Args[1]).Run(); err != nil {
			got["argument"] = err.Error()
		}
	}
	return answerJSON(got)
}

var works = map[string]func() error{
	"start a program": func() error { return exec.Command("/bin/sh", "-c", "true | true && exit 0").Run() },
	"read interfaces": func() error { _, err := net.Interfaces(); return err },
	"tcp on loopback": func() error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}
		return c.Close()
	},
	"pair of sockets": func() error {
		p, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		_ = syscall.Close(p[1]) // the other end is all that is left to lose
		return syscall.Close(p[0])
	},
	"trace a child": func() error {
		runtime.LockOSThread() // a tracer is a thread
		defer runtime.UnlockOSThread()
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(cmd.Process.Pid, &status, 0, nil); err != nil {
			return err
		}
		if err := syscall.PtraceDetach(cmd.Process.Pid); err != nil {
			return err
		}
		return cmd.Wait()
	},
	"a limit of one's own": func() error { return exec.Command("/bin/sh", "-c", "ulimit -S -n 64 && exec true").Run() },
	"read another's limit": func() error {
		return unix.Prlimit(os.Getppid(), unix.RLIMIT_NOFILE, nil, &unix.Rlimit{})
	},
	"a filter of one's own": func() error {
		return load([]Instruction{{Code: bpfRet, K: retAllow}})
	},
}

// load puts every thread of this process under the program.
func load(p []Instruction) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no filter: %w", err)
	}
	program := struct {
		length uint16
		filter *Instruction
	}{uint16(len(p)), &p[0]}
	thread, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if e != 0 || thread != 0 {
		return fmt.Errorf("no filter: %w (thread %d)", e, thread)
	}
	return nil
}

func answerJSON(v any) int {
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		return complain(err)
	}
	return 0
}

func complain(err error) int {
	_, _ = os.Stderr.WriteString(err.Error() + "\n") // nobody else to tell
	return 1
}

// int80 is a 64-bit program that calls getpid (20 to a 32-bit kernel) through
// int 0x80 and exits with 0 if it got an answer and 1 if it was refused.
func int80() []byte {
	code := []byte{
		0xb8, 20, 0, 0, 0, // mov eax, 20
		0xcd, 0x80, // int 0x80
		0x31, 0xff, // xor edi, edi
		0x85, 0xc0, // test eax, eax
		0x79, 5, // jns over the next
		0xbf, 1, 0, 0, 0, // mov edi, 1
		0xb8, 231, 0, 0, 0, // mov eax, 231 (exit_group)
		0x0f, 0x05, // syscall
	}
	const base, headers = 0x400000, 64 + 56
	size := uint64(headers + len(code))
	var b bytes.Buffer
	for _, v := range []any{
		[16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1},
		uint16(2), uint16(62), uint32(1), uint64(base + headers), uint64(64), uint64(0), uint32(0),
		[6]uint16{64, 56, 1, 64, 0, 0},
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), size, size, uint64(4096),
		code,
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // a buffer takes everything
	}
	return b.Bytes()
}

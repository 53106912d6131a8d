//go:build amd64 || arm64

package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The tests run a small copy of a run: the test binary, started again as
// process 1 of new namespaces, installs the program on a thread, starts the
// payload from it and serves the calls.

const (
	roleEnv  = "BROKER_TEST_ROLE"
	setupEnv = "BROKER_TEST_SETUP"
)

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleEnv); role {
	case "":
		os.Exit(m.Run())
	case "init":
		os.Exit(initMain())
	default:
		os.Exit(payloadMain(role))
	}
}

// setup is what a test wants of its run.
type setup struct {
	Dir      string
	Args     []string
	Role     string // payload role of this binary instead of Args
	NoBroker bool
	KillSelf bool // process 1's serving ends while the payload runs
	Limit    uint64
	Bwrap    bool // process 1 of bubblewrap's namespaces, with CAP_SYS_PTRACE only
	Split    bool // serve a listener with several performing threads
}

type outcome struct {
	Stdout   string
	Status   int
	Counts   map[string]uint64
	Refusals []Refusal
	FDs      [2]int // open in process 1 before and after
}

// testRules freezes a few names at any depth, compared without case, and keeps
// links out of git directories.
type testRules struct{}

func (testRules) Decide(q *Query) Verdict {
	path := strings.ToLower(string(q.Path))
	base := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case base == "frozen.txt", base == "conftest.py":
		return Verdict{Rule: "name"}
	case strings.Contains(path+"/", "/.vscode/tasks.json/"):
		return Verdict{Rule: "tasks"}
	case strings.Contains(path, "/.git/hooks/") && !strings.HasSuffix(base, ".sample"):
		return Verdict{Rule: "hooks"}
	case strings.HasSuffix(path, "/.git/config") && (q.Op == OpLeave || q.Op == OpRemove):
		return Verdict{Rule: "config"}
	case strings.Contains(path, "/.git/") && (q.Type == typeLink || q.Op == OpLink):
		return Verdict{Rule: "links in a git directory", Quiet: true}
	case q.Links > 1 && q.Type == typeRegular && frozenInode(q):
		return Verdict{Rule: "inode"}
	}
	return Verdict{Allow: true}
}

func (testRules) Contents(_, to []byte) bool { return !bytes.Contains(to, []byte("/node_modules/")) }

// frozenInode compares with the file that the test's setup linked.
func frozenInode(q *Query) bool {
	var st unix.Stat_t
	return unix.Stat(filepath.Join(os.Getenv("BROKER_TEST_DIR"), "host/conftest.py"), &st) == nil && st.Ino == q.Ino && uint64(st.Dev) == q.Dev
}

func initMain() int {
	var s setup
	if err := json.Unmarshal([]byte(os.Getenv(setupEnv)), &s); err != nil {
		return fail(err)
	}
	runtime.GOMAXPROCS(8)
	if !s.Bwrap { // which has confined us
		if err := confine(filepath.Dir(os.Getenv("BROKER_TEST_EXE")), s.Dir); err != nil {
			return fail(err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fail(err)
	}
	if s.Limit > 0 {
		lim := unix.Rlimit{Cur: s.Limit, Max: s.Limit}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
			return fail(err)
		}
	}
	o, err := runInit(s)
	if err != nil {
		return fail(err)
	}
	out := os.NewFile(3, "outcome")
	if err := json.NewEncoder(out).Encode(o); err != nil {
		return fail(err)
	}
	return 0
}

// confine makes everything but the run's directory read-only, with devices of
// its own: the payloads try what they can on any name there is, as root.
func confine(dirs ...string) error {
	steps := []struct {
		what string
		err  func() error
	}{
		{"private mounts", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"devices", privateDev},
		{"proc", func() error { return unix.Mount("proc", "/proc", "proc", 0, "") }},
		{"binds", func() error {
			for _, d := range dirs {
				if err := unix.Mount(d, d, "", unix.MS_BIND, ""); err != nil {
					return err
				}
			}
			return nil
		}},
		{"read-only root", func() error {
			return unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		}},
		{"writable directories", func() error {
			for _, d := range append(dirs, "/proc") {
				if err := unix.MountSetattr(unix.AT_FDCWD, d, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
					return fmt.Errorf("%s: %w", d, err)
				}
			}
			return nil
		}},
	}
	for _, s := range steps {
		if err := s.err(); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	return nil
}

// privateDev mounts a /dev with the usual devices and its own pseudo-terminals.
func privateDev() error {
	devices := []string{"null", "zero", "full", "random", "urandom", "tty"}
	var trees []int
	for _, d := range devices {
		fd, err := unix.OpenTree(unix.AT_FDCWD, "/dev/"+d, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return err
		}
		trees = append(trees, fd)
	}
	if err := unix.Mount("dev", "/dev", "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return err
	}
	for i, d := range devices {
		if err := os.WriteFile("/dev/"+d, nil, 0o600); err != nil {
			return err
		}
		if err := unix.MoveMount(trees[i], "", unix.AT_FDCWD, "/dev/"+d, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return err
		}
		unix.Close(trees[i])
	}
	for name, text := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(text, "/dev/"+name); err != nil {
			return err
		}
	}
	if err := os.Mkdir("/dev/pts", 0o755); err != nil {
		return err
	}
	return unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID, "newinstance,ptmxmode=0666,mode=620")
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "init:", err)
	return 99
}

// restrict is what every thread that stands for the command gets.
func restrict() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	if err := setCapabilities(0, 0); err != nil {
		return err
	}
	return landlock()
}

// landlock forbids executing and reading nothing, and writing outside the
// test's directory, /dev, /proc and /tmp.
func landlock() error {
	attr := struct{ fs uint64 }{1<<1 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12 | 1<<13 | 1<<14}
	fd, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), 8, 0)
	if e != 0 {
		return nil // kernels without Landlock are tested too
	}
	defer unix.Close(int(fd))
	for _, dir := range []string{"/dev", "/proc", os.Getenv("BROKER_TEST_WRITE"), filepath.Dir(os.Getenv("BROKER_TEST_DIR"))} {
		d, err := unix.Open(dir, openPath, 0)
		if err != nil {
			return err
		}
		rule := struct {
			access uint64
			fd     int32
			_      int32
		}{access: attr.fs, fd: int32(d)}
		_, _, e := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, 1, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		unix.Close(d)
		if e != 0 {
			return e
		}
	}
	if _, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); e != 0 {
		return e
	}
	return nil
}

func openFDs() int {
	ents, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(ents)
}

// world is a directory and an identity for runs.
type world struct {
	dir, exe string
	uid      int
}

// newWorld makes a directory that uid may write, and a copy of the test binary
// that uid may execute.
func newWorld(t testing.TB, uid int) *world {
	t.Helper()
	needUserNamespaces(t)
	if uid != os.Getuid() && os.Getuid() != 0 {
		t.Skip("only root can test another user")
	}
	dir, err := os.MkdirTemp("", "broker-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	exe := filepath.Join(dir, "exe")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(dir, "ws")
	for _, err := range []error{os.WriteFile(exe, self, 0o755), os.Chmod(dir, 0o755), os.Mkdir(ws, 0o755), os.Chown(ws, uid, uid)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	hostFiles(t, ws, uid)
	return &world{ws, exe, uid}
}

// hostFiles puts frozen files where the payloads expect them, as the host
// would have before the run.
func hostFiles(t testing.TB, ws string, uid int) {
	t.Helper()
	host := filepath.Join(ws, "host")
	for _, err := range []error{
		os.Mkdir(host, 0o755), os.WriteFile(filepath.Join(host, "frozen.txt"), []byte("host"), 0o644),
		os.Symlink("frozen.txt", filepath.Join(host, "link")),
		os.WriteFile(filepath.Join(host, "conftest.py"), nil, 0o644), os.Link(filepath.Join(host, "conftest.py"), filepath.Join(host, "alias")),
		os.Chown(host, uid, uid), os.Chown(filepath.Join(host, "frozen.txt"), uid, uid), os.Chown(filepath.Join(host, "conftest.py"), uid, uid),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func needUserNamespaces(t testing.TB) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID}
	err := cmd.Run()
	if err == nil {
		return
	}
	if strings.Contains(os.Getenv("AGENTGUARD_REQUIRE"), "userns") {
		t.Fatalf("user namespaces: %v", err)
	}
	t.Skipf("no user namespaces: %v", err)
}

// run starts a run and waits for it.
func (w *world) run(t testing.TB, s setup) *outcome {
	t.Helper()
	o, err := w.try(s)
	if err != nil {
		t.Fatal(err)
	}
	if o.Counts["continued"] != 0 {
		t.Errorf("%d brokered calls were left to the caller, want 0", o.Counts["continued"])
	}
	return o
}

func (w *world) try(s setup) (*outcome, error) {
	if s.Dir == "" {
		s.Dir = w.dir
	}
	if os.Getenv("BROKER_TEST_SPLIT") != "" {
		s.Split = true
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	r, pipe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.exe)
	if s.Bwrap {
		cmd = exec.CommandContext(ctx, "bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--as-pid-1", "--die-with-parent", "--cap-add", "CAP_SYS_PTRACE",
			"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", filepath.Dir(w.dir), filepath.Dir(w.dir), w.exe)
	}
	cmd.ExtraFiles = []*os.File{pipe}
	cmd.Env = append(os.Environ(), roleEnv+"=init", setupEnv+"="+string(text), "BROKER_TEST_EXE="+w.exe, "BROKER_TEST_WRITE="+filepath.Dir(w.dir), "BROKER_TEST_DIR="+s.Dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	inside := w.uid
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: inside, HostID: w.uid, Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: inside, HostID: w.uid, Size: 1}},
		GidMappingsEnableSetgroups: false,
		Credential:                 &syscall.Credential{Uid: uint32(inside), Gid: uint32(inside), NoSetGroups: true},
		AmbientCaps:                []uintptr{unix.CAP_SYS_PTRACE, unix.CAP_SYS_ADMIN},
		Pdeathsig:                  syscall.SIGKILL,
	}
	if s.Bwrap {
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: uint32(w.uid), Gid: uint32(w.uid), NoSetGroups: os.Getuid() != 0}}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Start()
	pipe.Close()
	if err != nil {
		return nil, err
	}
	var o outcome
	decodeErr := json.NewDecoder(r).Decode(&o)
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("run: %w\n%s\n%s", err, stderr.String(), stdout.String())
	}
	o.Stdout = stdout.String() + stderr.String()
	return &o, errors.Join(decodeErr)
}

// sh runs a shell script.
func (w *world) sh(t testing.TB, script string) *outcome {
	t.Helper()
	return w.run(t, setup{Args: []string{"/bin/sh", "-c", script}})
}

// users are the identities that every case is tried with.
func users(t *testing.T, f func(t *testing.T, w *world)) {
	for _, uid := range []int{0, 65534} {
		if uid == 0 && os.Getuid() != 0 {
			uid = os.Getuid()
		}
		t.Run(fmt.Sprintf("uid%d", uid), func(t *testing.T) { f(t, newWorld(t, uid)) })
	}
}

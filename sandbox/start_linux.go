package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"agentguard/sandbox/stage"
)

// bwrapPaths is where bubblewrap may be; PATH is not asked, because the
// workspace may be on it.
var bwrapPaths = []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"}

func findBwrap() (string, error) {
	for _, path := range bwrapPaths {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil {
			continue
		}
		if st.Uid != 0 || st.Mode&0o022 != 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return "", &UnavailableError{Need: "a bubblewrap that only root can change", Why: path + " can be changed by others"}
		}
		return path, nil
	}
	return "", &UnavailableError{Need: "bubblewrap is not installed", Why: "looked for " + strings.Join(bwrapPaths, ", ")}
}

// run is one command from start to end, as its supervisor sees it.
type run struct {
	spec    *Spec
	p       *Process
	ctl     *net.UnixConn
	handed  *os.File // the configuration, empty until the command is known
	cmd     *exec.Cmd
	stderr  bytes.Buffer // what bwrap itself says
	term    *terminal    // nil without one
	signals chan Signal
	started chan error    // one value: whether the command was started
	once    sync.Once     // guards started
	ended   bool          // the stage told the command's status
	silent  chan struct{} // closed when the stage has no more to say
}

func prepare(ctx context.Context, spec *Spec) (*run, error) {
	r := &run{spec: spec, signals: make(chan Signal), started: make(chan error, 1), silent: make(chan struct{})}
	r.p = &Process{signal: r.signals, done: make(chan struct{})}
	files, err := r.open()
	if err != nil {
		closeAll(files)
		if r.ctl != nil {
			_ = r.ctl.Close() // nobody is at the other end
		}
		return nil, err
	}
	spawned := make(chan error, 1)
	go r.hold(spawned)
	err = <-spawned
	closeAll(files) // or the end of the other side would not be seen
	if err != nil {
		_, _ = r.ctl.Close(), r.handed.Close() // nobody is at the other end
		return nil, err
	}
	go r.talk(ctx)
	return r, nil
}

// start hands the stage its configuration, which it waits for.
func (r *run) start(spec Spec) (*Process, error) {
	defer r.handed.Close()
	if len(spec.Argv) == 0 {
		r.cancel()
		return nil, &SetupError{Why: "no command"}
	}
	spec.As, spec.Stdin, spec.Stdout, spec.Stderr = r.spec.As, r.spec.Stdin, r.spec.Stdout, r.spec.Stderr
	*r.spec = spec
	if _, err := r.handed.WriteAt(r.config().Encode(), 0); err != nil {
		r.cancel()
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	_, _ = r.ctl.Write(stage.Message{Op: stage.OpGo}.Encode()) // a stage that is gone is told by the loop
	if err := <-r.started; err != nil {
		<-r.p.done
		return nil, r.explain(err)
	}
	return r.p, nil
}

func (r *run) cancel() {
	_ = r.ctl.Close() // ends the stage
	_ = r.handed.Close()
	<-r.p.done
}

// hold starts bwrap from a thread that lives as long as the run: the kernel
// ends bwrap with the thread that started it.
func (r *run) hold(spawned chan<- error) {
	runtime.LockOSThread()
	err := r.cmd.Start()
	spawned <- err
	if err == nil {
		_ = r.cmd.Wait() // how the run ended is told on the control socket
		<-r.silent
		if err := r.term.end(); err != nil && r.p.err == nil {
			r.p.err = err
		}
		close(r.p.done)
	}
}

// open opens all that bwrap and the stage are handed.
func (r *run) open() ([]*os.File, error) {
	bwrap, err := findBwrap()
	if err != nil {
		return nil, err
	}
	var files []*os.File
	keep := func(f *os.File, err error) error {
		if err == nil {
			files = append(files, f)
		}
		return err
	}
	if err := keep(memFile("arguments", []byte(strings.Join(Args(), "\x00")+"\x00"))); err != nil {
		return files, err
	}
	r.term, err = openTerminal(r.spec)
	if err != nil {
		return files, err
	}
	if r.handed, err = memFile("configuration", nil); err != nil {
		return files, err
	}
	if err := keep(duplicate(r.handed)); err != nil {
		return files, err
	}
	theirs, err := r.connect()
	if err := keep(theirs, err); err != nil {
		return files, err
	}
	if err := keep(os.Open("/proc/self/exe")); err != nil {
		return files, fmt.Errorf("opening agentguard's own binary: %w", err)
	}
	for _, f := range []*os.File{r.spec.Stdin, r.spec.Stdout, r.spec.Stderr} {
		if err := keep(duplicate(f)); err != nil {
			return files, err
		}
	}
	r.cmd = &exec.Cmd{
		Path: bwrap, Args: []string{"bwrap", "--args", "3", "--", stage.Path, stage.Word},
		Env: []string{}, Dir: "/", ExtraFiles: files, Stderr: &r.stderr,
		// Out of reach of the terminal's keys: what they send is relayed.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if as := r.spec.As; as != nil {
		r.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: as.UID, Gid: as.GID}
	}
	return files, nil
}

func (r *run) config() *stage.Config {
	c := &stage.Config{
		Argv: r.spec.Argv, Env: r.spec.Env, Dir: r.spec.Dir, Mounts: r.spec.Mounts, Write: r.spec.Write,
		Broker:   r.spec.Broker,
		Landlock: r.spec.Without&LayerLandlock == 0 && landlockVersion() > 0,
		Seccomp:  r.spec.Without&LayerSeccomp == 0,
	}
	if r.spec.Network == Proxy {
		c.Port = ProxyPort
	}
	r.term.describe(c)
	return c
}

// connect makes the control socket, which keeps message borders.
func (r *run) connect() (*os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making the control socket: %w", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "control")
	defer ours.Close()
	theirs := os.NewFile(uintptr(fds[1]), "control")
	c, err := net.FileConn(ours)
	if err != nil {
		_ = theirs.Close() // nobody is at the other end
		return nil, fmt.Errorf("making the control socket: %w", err)
	}
	r.ctl = c.(*net.UnixConn)
	return theirs, nil
}

// memFile is a file without a name that holds b, for the child to read.
func memFile(name string, b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("agentguard "+name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making the %s file: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = f.Write(b); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		_ = f.Close() // never handed out
		return nil, fmt.Errorf("writing the %s file: %w", name, err)
	}
	return f, nil
}

func duplicate(f *os.File) (*os.File, error) {
	if f == nil {
		return os.OpenFile(os.DevNull, os.O_RDWR, 0)
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicating %s: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // the child has its own
	}
}

// explain turns what went wrong before the command's start into an error that
// a person can act on.
func (r *run) explain(err error) error {
	said := strings.TrimSpace(r.stderr.String())
	if setup := (*SetupError)(nil); errors.As(err, &setup) || said == "" {
		return err
	}
	said = strings.TrimPrefix(said, "bwrap: ")
	switch {
	case strings.Contains(said, stage.Path) && strings.Contains(said, "No such file"):
		return &UnavailableError{Need: "this agentguard is linked dynamically and cannot start in an empty root; build it with CGO_ENABLED=0"}
	case strings.Contains(said, "user namespace"), strings.Contains(said, "uid map"),
		strings.Contains(said, "amespace failed"), strings.Contains(said, "namespaces"):
		return &UnavailableError{Need: "the system does not let bubblewrap make a user namespace", Why: said}
	}
	return &UnavailableError{Need: "bubblewrap failed", Why: said}
}

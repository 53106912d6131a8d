// Package broker decides every system call of a run that can bring a file name
// into being or open one for writing, by the canonical path of what it names,
// and performs the calls it allows itself.
//
// A seccomp program ([Program], [Install]) makes the kernel hand such calls to
// a listener; [Serve] reads the caller's arguments, resolves them on
// descriptors, asks [Rules], performs the call on a thread that has the run's
// identity, and hands the result back. Nothing is checked and then left to the
// caller to do, so there is no window in which the caller could swap a string,
// a descriptor or a directory. "Continue" is answered to umask alone, which
// takes no pointer and names nothing; [Counters] tells both numbers.
//
// Two kinds of threads serve. The reading thread opens what belongs to a caller
// (memory, working directory, descriptors) where that takes CAP_SYS_PTRACE,
// which it alone has. A performing thread resolves, decides and performs; it
// holds no capability and is inside the same Landlock rules as the command,
// because [Config.Restrict] puts it there. With [Config.Command] the command is
// forked from the one performing thread, which may then read callers itself
// unless they are not dumpable; with [Config.Listener] the reading thread reads
// every caller and several threads perform.
//
// Does not decide reads, does not see names that the kernel makes for bind(2)
// or a core dump, and knows nothing of descriptors that were open for writing
// before the program was installed. Does not guard against the host: a
// directory that the host renames while a call is performed keeps the judgement
// of its old name. Does not make a terminal the controlling one on open (the
// TIOCSCTTY ioctl still does), and does not judge the keys of a structured
// file: a frozen file is frozen as a whole.
package broker

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Op is what a call would do to one name.
type Op uint8

// The operations. The zero Op is the most common one and no more allowed than
// another.
const (
	OpWrite   Op = iota // open an existing file for writing, or truncate it
	OpCreate            // a new file, FIFO, socket or device node
	OpMkdir             // a new directory
	OpSymlink           // a new symbolic link
	OpLink              // the new name of a hard link
	OpArrive            // a name that a rename brings, or one below a renamed directory
	OpLeave             // a name that a rename or a hard link takes its object from
	OpRemove            // unlink or rmdir
	OpMode              // chmod
)

var opNames = [...]string{"write", "create", "mkdir", "symlink", "link", "arrive", "leave", "remove", "chmod"}

// String returns the operation's name.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// Query is one question: may this be done to this name?
type Query struct {
	Op   Op
	Path []byte // canonical, absolute, raw bytes; valid until Decide returns
	Type uint32 // S_IFMT bits of the object, existing or to be made; 0 for an unlink
	// Dev, Ino and Links tell an existing file apart; Links is 0 when the
	// broker had no need to look. A file with several links may be a frozen
	// one under another name.
	Dev, Ino uint64
	Links    uint32
}

// Verdict is an answer. The zero Verdict denies.
type Verdict struct {
	Allow bool
	Rule  string // the entry or rule that decided, for the report
	Quiet bool   // refuse without a report: the caller is expected to try another way
}

// Rules answers queries. Both methods are called from several threads at once
// and must neither block nor keep the slices they are given.
type Rules interface {
	Decide(*Query) Verdict
	// Contents says whether renaming directory from to path to can change the
	// verdict on anything below it. When it can, every entry below is decided
	// by its old name (OpLeave) and its new one (OpArrive).
	Contents(from, to []byte) bool
}

// Refusal is one call that was refused by a rule.
type Refusal struct {
	Op   Op
	Call string // name of the system call
	Path string // canonical
	Rule string
	PID  int // thread that called, in the run's process namespace
	Comm string
}

// Config is what Serve needs.
type Config struct {
	// Command is what the run is to execute. Serve starts it itself, from the
	// performing thread, which then serves alone: fastest, and inside exactly
	// the command's Landlock rules. Without it, Listener is served by several
	// performing threads, each inside rules of its own.
	Command  *Command
	Listener int // descriptor returned by Install; Serve closes it
	Rules    Rules
	// Restrict is called once on every performing thread, which is locked to
	// it for good, and must leave that thread as restricted as the command:
	// no_new_privs, no capability, Landlock, the main seccomp program, but
	// not the program of this package. Serve fails when a capability is left.
	// The main program must let through what a performing thread needs beyond
	// ordinary file calls: openat2, seccomp, clone without namespaces, statx,
	// and process_vm_readv (refused, every call takes the reading thread), and
	// must refuse chroot, pivot_root, setns, unshare of namespaces and the mount
	// calls, because a caller's root is taken to be this process's.
	Restrict func() error
	// Report receives refusals, one at a time, on a goroutine of its own.
	Report     func(Refusal)
	Counters   *Counters // may be nil
	Performers int       // performing threads; 0 means a default
	// Entries bounds how many entries below a renamed directory are judged;
	// beyond it the rename is refused. 0 means a default.
	Entries int
}

// Command is what a run executes. It inherits descriptors 0, 1 and 2 and no
// other one, no ignored signal but those ignored already, and no blocked one.
type Command struct {
	Path string // absolute, or relative to Dir
	Args []string
	Env  []string
	Dir  string // "" leaves the directory of this process
	// Setpgid gives it a process group of its own, Foreground makes that the
	// terminal's on descriptor 0, Setsid a session of its own.
	Setpgid, Foreground, Setsid bool
	// Started is told the process number and, when it could not be executed,
	// why. Either way the process is to be waited for by the caller: its end is
	// a SIGCHLD like any other child's.
	Started func(pid int, err error)
}

// Counters counts what a broker did. All fields may be read at any time.
type Counters struct {
	Calls     atomic.Uint64 // calls received, umask included
	Answered  atomic.Uint64 // calls answered, refusals included
	Refused   atomic.Uint64 // calls refused by a rule
	Continued atomic.Uint64 // calls left to the caller to perform: always 0
	Umask     atomic.Uint64 // umask calls seen
	Helpers   atomic.Uint64 // helper processes started for opens that may block
	Gone      atomic.Uint64 // callers that died before the answer
	Slow      atomic.Uint64 // paths resolved by hand, component by component
	Dropped   atomic.Uint64 // refusals not reported because Report was behind
}

// UnavailableError says that this kernel, or this place in it, cannot broker.
type UnavailableError struct {
	Need string // what is missing
	Err  error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("brokering file names needs %s: %v", e.Need, e.Err)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Available tries, on the calling thread, what a broker needs: the kernel's
// user notification with killable waits, openat2, and reading the memory and
// the working directory of a child that is not dumpable. It returns nil or an
// [*UnavailableError]. The caller must be locked to its thread, hold
// CAP_SYS_PTRACE there and see its own process namespace in /proc.
func Available() error { return available() }

// Install puts [Program] on the calling thread, which must be locked, have
// no_new_privs set and be the one that forks the command, and returns the
// listener. From then on the brokered calls of that thread wait for [Serve].
// A thread whose ancestors already have a listener gets an
// [*UnavailableError] wrapping EBUSY.
func Install() (listener int, err error) { return install() }

// Serve answers the listener's calls until ctx ends or nobody is left to call.
// ready, when not nil, is closed once every performing thread is restricted
// and calls are answered. When Serve returns, the listener is closed and every
// further brokered call fails with ENOSYS; nothing hangs.
//
// Serve turns its calling goroutine's thread into the reading thread: it drops
// every capability there but CAP_SYS_PTRACE and never gives the thread back.
func Serve(ctx context.Context, cfg Config, ready chan<- struct{}) error {
	return serve(ctx, cfg, ready)
}

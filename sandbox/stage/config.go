// Package stage is the inner part of a run: it becomes process 1 of the
// sandbox, builds what the command sees, confines a thread of its own and
// starts the command from that thread.
//
// It is a leaf whose init function takes over the process when the supervisor
// started it, before the packages of the supervisor are initialised: that is
// a third of a run's start. Everything it does is listed in a [Config], and
// any step that fails ends the run before the command exists. Once the command
// runs it reaps, relays signals, serves the broker with the rules that the
// Config names, and reports the end.
//
// Does not stop what those rules and the plan allow, and without a broker stops
// nothing by itself while the command runs: what holds then are the mounts, the
// Landlock domain, the seccomp program, the empty capability sets and the
// namespaces. Does not judge what lies in a repository that the run itself
// made, but for a live hook.
package stage

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Path and Word are the arguments with which the supervisor has bubblewrap
// start its own binary as the stage. An ordinary call cannot have them by
// accident, and one that has them on purpose finds no configuration and ends.
const (
	Path = HostRoot + "/proc/self/fd/6" // ExeFD
	Word = "stage"
)

// The descriptors that the supervisor hands over, by number.
const (
	ConfigFD  = 4
	ControlFD = 5
	ExeFD     = 6
	StdinFD   = 7 // stdout and stderr follow
)

// HostRoot is where the host's file tree is found until the stage has built
// the command's; it is gone before the command starts.
const HostRoot = "/host"

// Kind is what one [Mount] does. The zero value is invalid, so a forgotten
// kind stops the run.
type Kind uint8

// The kinds, applied in the order in which the plan lists them.
const (
	_        Kind = iota
	Dir           // make a directory in the private root
	Link          // make a symbolic link in the private root; Source is its text
	File          // write a small file in the private root; Data is its content
	Tmpfs         // mount an empty file system
	ReadOnly      // show the host's Source at Target, read-only
	Writable      // show the host's Source at Target, writable
	Device        // show the host's device node Source at Target
	Proc          // mount a proc of the run's own pid namespace, dangerous parts read-only
	Pts           // mount a devpts of the run's own
	Pin           // bind Target over itself, so that it can be neither renamed nor removed
	Freeze        // bind Target over itself read-only
	Mask          // show an empty read-only file or directory in Target's place
	Seal          // make the mount at Target itself read-only, not what is mounted below it
)

// String names a step for error messages.
func (k Kind) String() string {
	names := [...]string{"nothing", "directory", "link", "file", "tmpfs", "read-only", "writable", "device", "proc", "devpts", "pin", "freeze", "mask", "seal"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Mount is one step of building what the command sees. Paths are absolute,
// clean and free of symbolic links; a component that turns out to be one
// stops the run.
type Mount struct {
	Kind     Kind
	Source   string
	Target   string
	Data     []byte
	Perm     uint32 // of what Dir, File and Tmpfs make
	Optional bool   // leave out, instead of stopping, when the source or a frozen path is absent
}

// Config is everything the stage does, handed over in one piece before it
// starts. It holds no secret: credentials never enter the sandbox.
type Config struct {
	Argv     []string
	Env      []string
	Dir      string   // working directory of the command
	Mounts   []Mount  // in order
	Write    []string // roots below which Landlock lets the command write
	Landlock bool     // false only where the kernel has none, which the caller has told
	Seccomp  bool     // false only in tests of the other layers
	Broker   Broker   // the name guard
	Port     uint16   // of the loopback listener to make and hand out; 0 for none
	TTY      [3]bool  // which of stdin, stdout, stderr are the pseudo-terminal
	Termios  []byte   // the kernel's struct termios2 of the caller's terminal, raw
	Winsize  [4]uint16
}

// Broker says which names may not come into being. The zero value has no
// broker, which the caller has told.
type Broker struct {
	Mode      BrokerMode
	Areas     []Area
	Balanced  bool     // the profile; false is strict
	Protect   []string // globs, as in the policy
	Unprotect []string
	There     []string // frozen paths that are there at the start: these cannot be removed, later ones can
	Others    []string // paths of other work trees' state, which are not this run's to write
	Inodes    []Inode  // frozen files that have further names
}

// BrokerMode says what to do where the kernel has no broker.
type BrokerMode uint8

// The modes.
const (
	BrokerOff     BrokerMode = iota
	BrokerAuto               // go on without, and say so
	BrokerRequire            // do not start
)

// Area is a writable tree of the host in which names are judged.
type Area struct {
	Dir    string   // as it appears inside
	Prefix string   // under which its paths are judged, as ".git" for a git directory elsewhere
	Dirs   []string // directories that are there at the start, relative to Dir
	Git    bool     // only what git itself would execute is judged
}

// Inode is one frozen file by its identity.
type Inode struct {
	Dev, Ino uint64
	Path     string
}

const codecMagic = "agst2"

// Encode returns c in the form that [Decode] reads: length-prefixed byte
// strings, because arguments and paths are bytes and not text.
func (c *Config) Encode() []byte {
	e := encoder{b: []byte(codecMagic)}
	e.strings(c.Argv)
	e.strings(c.Env)
	e.string(c.Dir)
	e.uint(uint32(len(c.Mounts)))
	for _, m := range c.Mounts {
		e.uint(uint32(m.Kind))
		e.string(m.Source)
		e.string(m.Target)
		e.string(string(m.Data))
		e.uint(m.Perm)
		e.bool(m.Optional)
	}
	e.strings(c.Write)
	e.broker(&c.Broker)
	e.bool(c.Landlock)
	e.bool(c.Seccomp)
	e.uint(uint32(c.Port))
	for _, t := range c.TTY {
		e.bool(t)
	}
	e.string(string(c.Termios))
	for _, w := range c.Winsize {
		e.uint(uint32(w))
	}
	return e.b
}

// Decode reads what Encode wrote and refuses anything else.
func Decode(b []byte) (*Config, error) {
	if len(b) < len(codecMagic) || string(b[:len(codecMagic)]) != codecMagic {
		return nil, errors.New("not a stage configuration of this version")
	}
	d := decoder{b: b[len(codecMagic):]}
	c := &Config{Argv: d.strings(), Env: d.strings(), Dir: d.string()}
	for n := d.count(); n > 0 && d.err == nil; n-- {
		c.Mounts = append(c.Mounts, Mount{
			Kind: Kind(d.uint()), Source: d.string(), Target: d.string(),
			Data: []byte(d.string()), Perm: d.uint(), Optional: d.bool(),
		})
	}
	c.Write = d.strings()
	c.Broker = d.broker()
	c.Landlock, c.Seccomp = d.bool(), d.bool()
	c.Port = uint16(d.uint())
	for i := range c.TTY {
		c.TTY[i] = d.bool()
	}
	c.Termios = []byte(d.string())
	for i := range c.Winsize {
		c.Winsize[i] = uint16(d.uint())
	}
	if d.err == nil && len(d.b) != 0 {
		d.err = fmt.Errorf("%d bytes left over", len(d.b))
	}
	if d.err == nil && len(c.Argv) == 0 {
		d.err = errors.New("no command")
	}
	if d.err != nil {
		return nil, fmt.Errorf("reading the stage configuration: %w", d.err)
	}
	return c, nil
}

type encoder struct{ b []byte }

func (e *encoder) uint(v uint32) { e.b = binary.LittleEndian.AppendUint32(e.b, v) }

func (e *encoder) string(s string) {
	e.uint(uint32(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) strings(ss []string) {
	e.uint(uint32(len(ss)))
	for _, s := range ss {
		e.string(s)
	}
}

func (e *encoder) long(v uint64) {
	e.uint(uint32(v))
	e.uint(uint32(v >> 32))
}

func (e *encoder) broker(b *Broker) {
	e.uint(uint32(b.Mode))
	e.uint(uint32(len(b.Areas)))
	for _, a := range b.Areas {
		e.string(a.Dir)
		e.string(a.Prefix)
		e.strings(a.Dirs)
		e.bool(a.Git)
	}
	e.bool(b.Balanced)
	e.strings(b.Protect)
	e.strings(b.Unprotect)
	e.strings(b.There)
	e.strings(b.Others)
	e.uint(uint32(len(b.Inodes)))
	for _, i := range b.Inodes {
		e.long(i.Dev)
		e.long(i.Ino)
		e.string(i.Path)
	}
}

func (e *encoder) bool(v bool) {
	if v {
		e.uint(1)
	} else {
		e.uint(0)
	}
}

// decoder reads until its first error; after that every value is zero.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) uint() uint32 {
	if d.err != nil {
		return 0
	}
	if len(d.b) < 4 {
		d.err = errors.New("cut short")
		return 0
	}
	v := binary.LittleEndian.Uint32(d.b)
	d.b = d.b[4:]
	return v
}

// count is a number of things that take at least four bytes each, so that a
// forged one cannot make the caller allocate more than was sent.
func (d *decoder) count() uint32 {
	n := d.uint()
	if d.err == nil && uint64(n)*4 > uint64(len(d.b)) {
		d.err = fmt.Errorf("%d values in %d bytes", n, len(d.b))
		return 0
	}
	return n
}

func (d *decoder) string() string {
	n := d.uint()
	if d.err == nil && uint64(n) > uint64(len(d.b)) {
		d.err = errors.New("cut short")
	}
	if d.err != nil {
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) strings() []string {
	var ss []string
	for n := d.count(); n > 0 && d.err == nil; n-- {
		ss = append(ss, d.string())
	}
	return ss
}

func (d *decoder) long() uint64 {
	low := uint64(d.uint())
	return low | uint64(d.uint())<<32
}

func (d *decoder) broker() Broker {
	b := Broker{Mode: BrokerMode(d.uint())}
	for n := d.count(); n > 0 && d.err == nil; n-- {
		b.Areas = append(b.Areas, Area{Dir: d.string(), Prefix: d.string(), Dirs: d.strings(), Git: d.bool()})
	}
	b.Balanced, b.Protect, b.Unprotect = d.bool(), d.strings(), d.strings()
	b.There, b.Others = d.strings(), d.strings()
	for n := d.count(); n > 0 && d.err == nil; n-- {
		b.Inodes = append(b.Inodes, Inode{Dev: d.long(), Ino: d.long(), Path: d.string()})
	}
	return b
}

func (d *decoder) bool() bool {
	switch v := d.uint(); {
	case d.err != nil:
		return false
	case v > 1:
		d.err = fmt.Errorf("%d is no truth value", v)
		return false
	default:
		return v == 1
	}
}

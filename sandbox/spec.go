// Package sandbox starts one command so that it sees and can change only what
// a [Spec] says: a private root in which nothing exists that was not granted,
// frozen paths bound read-only with their parents pinned, an empty network
// namespace, no capability, a Landlock domain and a system call filter.
//
// On Linux bubblewrap makes the namespaces and an inner stage of this binary
// (package stage) builds the rest and becomes process 1. Start fails closed:
// when any part cannot be put in force the command is not started and the
// error says what is missing.
//
// Does not stop what the Spec grants: a writable root is writable but for the
// names that its Broker freezes. Without a Broker a frozen name that does not
// exist yet can come into being, and a frozen file that the host itself
// replaces while the run lasts is held no more: the kernel drops the mount.
// Does not stop a hole in the kernel, timing side channels, or the use of all
// memory, processor time and disk that the user may use.
package sandbox

import (
	"fmt"
	"os"

	"agentguard/sandbox/stage"
)

// Mount is one step of the plan that builds what the command sees; the steps
// are applied in order and a later one covers an earlier one.
type Mount = stage.Mount

// Kind is what a step does.
type Kind = stage.Kind

// The steps of a plan.
const (
	Dir      = stage.Dir
	Link     = stage.Link
	File     = stage.File
	Tmpfs    = stage.Tmpfs
	ReadOnly = stage.ReadOnly
	Writable = stage.Writable
	Device   = stage.Device
	Proc     = stage.Proc
	Pts      = stage.Pts
	Pin      = stage.Pin
	Freeze   = stage.Freeze
	Mask     = stage.Mask
	Seal     = stage.Seal
)

// Broker says which names may not come into being while the command runs.
type Broker = stage.Broker

// BrokerMode says what to do where the kernel has no broker.
type BrokerMode = stage.BrokerMode

// Area is a writable tree in which names are judged.
type Area = stage.Area

// Inode is one frozen file by its identity.
type Inode = stage.Inode

// The modes of a broker.
const (
	BrokerOff     = stage.BrokerOff
	BrokerAuto    = stage.BrokerAuto
	BrokerRequire = stage.BrokerRequire
)

// NameRefusal is one name that was refused.
type NameRefusal struct {
	Call string // name of the system call
	Path string // canonical, as it is inside
	Rule string
	Comm string // name of the program, as it calls itself
}

// Network is what of the network exists inside.
type Network uint8

// The networks. The zero value is None: an empty namespace with a loopback
// interface of its own and nothing that leads out.
const (
	None  Network = iota
	Proxy         // one loopback listener is handed out to whoever serves it
)

// ProxyPort is the listener's port inside, on 127.0.0.1. The network namespace
// is the run's own, so it is free, and the plan can be made before the start.
const ProxyPort = 31280

// Layer is one of the mechanisms that hold a command. A Spec may leave one
// out so that a test can show what the others hold by themselves.
type Layer uint8

// The layers that can be left out.
const (
	LayerLandlock Layer = 1 << iota
	LayerSeccomp
)

// Identity is whom the command runs as, when not as the caller.
type Identity struct {
	UID, GID uint32
}

// Spec is all that Start needs; it is a value, and building it touches
// nothing.
type Spec struct {
	Argv    []string
	Env     []string // the whole environment
	Dir     string   // working directory, absolute
	Mounts  []Mount
	Write   []string          // roots below which Landlock lets the command write; all must exist in the plan
	Broker  Broker            // the name guard; the zero value has none
	Refused func(NameRefusal) // told each name that was refused, one at a time; may be nil
	Network Network
	As      *Identity // nil: the caller
	Without Layer     // weakened, for tests of the other layers; zero leaves nothing out

	Stdin, Stdout, Stderr *os.File // nil: the null device
}

// UnavailableError says what of the sandbox the machine lacks.
type UnavailableError struct {
	Need string // what is missing, for a person
	Why  string // what was seen
}

func (e *UnavailableError) Error() string {
	if e.Why == "" {
		return "no sandbox: " + e.Need
	}
	return "no sandbox: " + e.Need + " (" + e.Why + ")"
}

// SetupError says that a part of the sandbox could not be put in force; the
// command was not started.
type SetupError struct{ Why string }

func (e *SetupError) Error() string { return "setting up the sandbox: " + e.Why }

// NotStartedError says that the sandbox was in force and the command could not
// be executed in it.
type NotStartedError struct {
	Argv0  string
	Status int // 126 or 127
	Why    string
}

func (e *NotStartedError) Error() string { return fmt.Sprintf("%q: %s", e.Argv0, e.Why) }

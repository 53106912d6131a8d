package seccomp

// Errno is what a refused call returns.
type Errno uint16

// The answers a refused call gets. They have the same numbers on every
// architecture of Linux that has a program here.
const (
	EPERM           Errno = 1
	ENOSYS          Errno = 38 // makes libraries fall back to an older call
	EPROTONOSUPPORT Errno = 93
	EAFNOSUPPORT    Errno = 97
)

// Op is how an argument is compared.
type Op uint8

// The comparisons.
const (
	Masked  Op = iota // argument & Mask == Value
	Equal             // the whole 64 bits
	Differs           // the whole 64 bits
	Above             // unsigned, the whole 64 bits
)

// Arg is a test of one argument. Where the kernel cuts an argument to 32 bits,
// the test is Masked to them, or refuses every value that has more.
type Arg struct {
	Index uint
	Op    Op
	Mask  uint64 // only for Masked
	Value uint64
}

// Rule refuses one system call, or one use of it.
type Rule struct {
	Name   string   // as the kernel names the call
	Errno  Errno    // what it returns; 0 stands for EPERM
	Args   []Arg    // all of them hold for the refusal; none means any use; beside Unless only Differs
	Unless []uint32 // values of the first argument, cut to 32 bits, that stay allowed
	Arch   string   // the only Go architecture that has the call; empty means all
	Why    string
}

// Call is the decision about one call by its number, for those libseccomp has
// no name for.
type Call struct {
	Name   string
	Number uint32
	Arch   string // the only Go architecture that has the call; empty means all
	Allow  bool
	Errno  Errno // what it returns when not allowed; 0 stands for EPERM
	Why    string
}

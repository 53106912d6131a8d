// Package seccomp gives the filter that a sandboxed command runs under: the
// refused system calls as a table with a reason each ([Rules], [Reviewed]),
// and the BPF programs made from it for amd64 and arm64 ([Program]).
//
// The programs are data in this package. libseccomp makes them at generate
// time (generate_test.go), never on a user's machine, so that the binary stays
// pure Go and two builds of one version filter alike.
//
// What is refused falls in five kinds: calls that change what the sandbox
// shows (mounts, namespaces, roots), kernel interfaces with a history of
// holes that no development tool needs (io_uring, bpf, keyrings, odd socket
// families), calls that reach into another process where the kernel asks for
// no more than the same user (limits, descriptors, pages), calls that this
// package has not read yet (every number above the highest reviewed one), and
// every entry but the machine's own (i386, x32).
//
// Does not look at memory: a filter sees numbers, never the path or the
// address behind a pointer, so names are the work of mounts, Landlock and the
// broker. Does not refuse ptrace or process_vm_readv: debuggers must work on a
// run's own children, and the process namespace and Landlock keep them to
// those. Does not refuse priority and scheduling of another process, which
// slow it and do not blind it. Does not stop a call that is allowed from hitting a kernel bug.
package seccomp

//go:generate env CGO_ENABLED=1 go test -tags libseccomp -run ^TestGenerated$ -count=1 . -update

// Instruction is one step of a classic BPF program, laid out as the kernel's
// struct sock_filter.
type Instruction struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}

// Program gives the filter for a Go architecture name, or nil for one that has
// none; a caller that gets nil must not start the command. The slice is shared
// and must not be written to.
func Program(arch string) []Instruction {
	switch arch {
	case "amd64":
		return filterAMD64[:]
	case "arm64":
		return filterARM64[:]
	}
	return nil
}

//lint:file-ignore U1000 half of it is used with -tags libseccomp only

package seccomp

import (
	"fmt"
	"strings"
)

// The parts of classic BPF that the kernel's cache of constant verdicts
// understands, plus nothing: hot calls must stay in it.
const (
	bpfLoad  = 0x20 // ld [k]
	bpfEqual = 0x15
	bpfAbove = 0x25 // jgt, unsigned
	bpfFrom  = 0x35 // jge, unsigned
	bpfRet   = 0x06

	retAllow = 0x7fff0000
	retErrno = 0x00050000

	offsetNumber = 0
	offsetArch   = 4
	offsetArg0   = 16 // its low half: both architectures are little-endian

	// skipped is the number a debugger writes to skip a call. The kernel
	// answers it with ENOSYS by itself and keeps a result the debugger set.
	skipped = 0xffffffff
)

// machine is what the kernel and libseccomp call an architecture.
type machine struct {
	arch  string // Go's name
	token uint32 // AUDIT_ARCH_*
}

var machines = []machine{
	{"amd64", 0xc000003e},
	{"arm64", 0xc00000b7},
}

// prologue assembles what libseccomp cannot express, to run before its
// program: another architecture, a number nobody reviewed, a number it has no
// name for, an int with several allowed values.
func prologue(m machine, rules []Rule, calls []Call, number func(string) uint32) []Instruction {
	p := []Instruction{
		{Code: bpfLoad, K: offsetArch},
		{Code: bpfEqual, Jt: 1, K: m.token},
		answer(ENOSYS),
		{Code: bpfLoad, K: offsetNumber},
		{Code: bpfEqual, Jf: 1, K: skipped},
		{Code: bpfRet, K: retAllow},
	}
	spans := Spans(m.arch)
	for i, s := range spans {
		if i > 0 {
			p = append(p,
				Instruction{Code: bpfFrom, Jf: 2, K: spans[i-1].Last + 1},
				Instruction{Code: bpfFrom, Jt: 1, K: s.First},
				answer(ENOSYS))
		}
	}
	p = append(p, Instruction{Code: bpfAbove, Jf: 1, K: spans[len(spans)-1].Last}, answer(ENOSYS))
	for _, c := range calls {
		if !c.Allow && (c.Arch == "" || c.Arch == m.arch) {
			p = append(p, Instruction{Code: bpfEqual, Jf: 1, K: c.Number}, answer(c.Errno))
		}
	}
	for _, r := range rules {
		if len(r.Unless) > 0 && (r.Arch == "" || r.Arch == m.arch) {
			p = append(p, unless(r, number(r.Name))...)
		}
	}
	return p
}

// unless refuses a call whose first argument, cut to 32 bits, is not in the
// rule's list, and whose other arguments, whole, all differ from the rule's.
// It is the last look at such a call, so that nothing after it needs the
// number again.
func unless(r Rule, number uint32) []Instruction {
	n := len(r.Unless) + 4*len(r.Args)
	p := []Instruction{
		{Code: bpfEqual, Jf: uint8(n + 3), K: number},
		{Code: bpfLoad, K: offsetArg0},
	}
	for i, v := range r.Unless {
		p = append(p, Instruction{Code: bpfEqual, Jt: uint8(n - i), K: v})
	}
	for i, a := range r.Args {
		low := offsetArg0 + 8*uint32(a.Index)
		p = append(p,
			Instruction{Code: bpfLoad, K: low},
			Instruction{Code: bpfEqual, Jf: 2, K: uint32(a.Value)},
			Instruction{Code: bpfLoad, K: low + 4},
			Instruction{Code: bpfEqual, Jt: uint8(4*(len(r.Args)-i) - 3), K: uint32(a.Value >> 32)})
	}
	return append(p, answer(r.Errno), Instruction{Code: bpfRet, K: retAllow})
}

func answer(e Errno) Instruction {
	if e == 0 {
		e = EPERM
	}
	return Instruction{Code: bpfRet, K: retErrno | uint32(e)}
}

// listing writes instructions one a line, with targets as line numbers.
func listing(p []Instruction) string {
	var b strings.Builder
	for i, in := range p {
		fmt.Fprintf(&b, "%3d  ", i)
		switch in.Code {
		case bpfLoad:
			fmt.Fprintf(&b, "ld [%d]\n", in.K)
		case bpfRet:
			fmt.Fprintf(&b, "ret %s\n", answerText(in.K))
		default:
			op := map[uint16]string{bpfEqual: "jeq", bpfAbove: "jgt", bpfFrom: "jge"}[in.Code]
			fmt.Fprintf(&b, "%s %d → %d, else %d\n", op, in.K, i+1+int(in.Jt), i+1+int(in.Jf))
		}
	}
	return b.String()
}

func answerText(k uint32) string {
	if k == retAllow {
		return "ALLOW"
	}
	return fmt.Sprintf("ERRNO(%d)", k&0xffff)
}

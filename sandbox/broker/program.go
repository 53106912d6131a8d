package broker

import "fmt"

// Instr is one classic BPF instruction, laid out like struct sock_filter.
type Instr struct {
	Code   uint16
	JT, JF uint8
	K      uint32
}

const (
	bpfLoad   = 0x20 // BPF_LD | BPF_W | BPF_ABS
	bpfEqual  = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
	bpfGreaEq = 0x35 // BPF_JMP | BPF_JGE | BPF_K
	bpfAnySet = 0x45 // BPF_JMP | BPF_JSET | BPF_K
	bpfRet    = 0x06 // BPF_RET | BPF_K

	retAllow  = 0x7fff0000
	retNotify = 0x7fc00000
	retErrno  = 0x00050000
	noSys     = 38 // ENOSYS

	offNR    = 0
	offArch  = 4
	offArgs  = 16
	x32Bit   = 0x40000000
	archX86  = 0xc000003e
	archARM  = 0xc00000b7
	writeAny = flagAccess | flagCreat | flagTrunc | flagTmpfile
)

// Program returns the seccomp program of an architecture ("amd64", "arm64"):
// brokered calls are handed to the listener, opens only when they could write
// or create, openat2 does not exist, everything else is allowed. A call of
// another architecture or of x32 does not exist either.
func Program(arch string) ([]Instr, error) {
	var audit uint32
	switch arch {
	case "amd64":
		audit = archX86
	case "arm64":
		audit = archARM
	default:
		return nil, fmt.Errorf("no seccomp program for architecture %q", arch)
	}
	p := []Instr{
		{bpfLoad, 0, 0, offArch},
		{bpfEqual, 1, 0, audit},
		{bpfRet, 0, 0, retErrno | noSys},
		{bpfLoad, 0, 0, offNR},
		{bpfGreaEq, 0, 1, x32Bit},
		{bpfRet, 0, 0, retErrno | noSys},
	}
	for i := range calls {
		p = append(p, calls[i].instructions(arch)...)
	}
	return append(p, Instr{bpfRet, 0, 0, retAllow}), nil
}

// instructions compares the loaded number with one row and decides on a match.
func (c *call) instructions(arch string) []Instr {
	nr := c.number(arch)
	if nr < 0 {
		return nil
	}
	match := func(then ...Instr) []Instr {
		return append([]Instr{{bpfEqual, 0, uint8(len(then)), uint32(nr)}}, then...)
	}
	switch {
	case c.kind == kindAbsent:
		return match(Instr{bpfRet, 0, 0, retErrno | noSys})
	case c.kind == kindOpen && c.flags >= 0:
		// With O_PATH the kernel ignores every bit that writes or creates.
		return match(
			Instr{bpfLoad, 0, 0, offArgs + 8*uint32(c.flags)},
			Instr{bpfAnySet, 1, 0, flagPath},
			Instr{bpfAnySet, 1, 0, writeAny},
			Instr{bpfRet, 0, 0, retAllow},
			Instr{bpfRet, 0, 0, retNotify},
		)
	}
	return match(Instr{bpfRet, 0, 0, retNotify})
}

package seccomp

import "testing"

// ran is what a program did with one call.
type ran struct {
	answer       uint32
	readArgument bool
}

// interpret gives the program's verdict on a call.
func interpret(t *testing.T, p []Instruction, arch, number uint32, args [6]uint64) verdict {
	t.Helper()
	switch a := run(t, p, arch, number, args).answer; {
	case a == retAllow:
		return allow
	case a&0xffff0000 == retErrno && a&0xffff != 0:
		return Errno(a & 0xffff)
	default:
		t.Fatalf("answer %#x is neither allow nor an errno", a)
		return EPERM
	}
}

// run is the kernel's interpreter, for the instructions a seccomp program may
// have and ours do: loads from struct seccomp_data, jumps forward, and, ret.
func run(t *testing.T, p []Instruction, arch, number uint32, args [6]uint64) ran {
	t.Helper()
	var acc uint32
	var r ran
	for pc := 0; pc < len(p); pc++ {
		in := p[pc]
		taken := false
		switch in.Code {
		case bpfLoad:
			acc = load32(t, in.K, arch, number, args)
			r.readArgument = r.readArgument || in.K >= offsetArg0
			continue
		case 0x54: // and
			acc &= in.K
			continue
		case bpfRet:
			r.answer = in.K
			return r
		case 0x05: // ja
			pc += int(in.K)
			continue
		case bpfEqual:
			taken = acc == in.K
		case bpfAbove:
			taken = acc > in.K
		case bpfFrom:
			taken = acc >= in.K
		case 0x45: // jset
			taken = acc&in.K != 0
		default:
			t.Fatalf("instruction %d: code %#x is not one the interpreter knows", pc, in.Code)
		}
		if taken {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	t.Fatal("the program ends without an answer")
	return r
}

// load32 reads struct seccomp_data as a little-endian machine lays it out.
func load32(t *testing.T, offset, arch, number uint32, args [6]uint64) uint32 {
	t.Helper()
	switch {
	case offset == offsetNumber:
		return number
	case offset == offsetArch:
		return arch
	case offset >= offsetArg0 && offset < 64 && offset%4 == 0:
		a := args[(offset-offsetArg0)/8]
		if offset%8 == 4 {
			a >>= 32
		}
		return uint32(a)
	}
	t.Fatalf("load from offset %d", offset)
	return 0
}

package broker

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// interpret runs a program on one call, as the kernel would.
func interpret(p []Instr, data []byte) (uint32, error) {
	var a uint32
	for pc := 0; pc < len(p); pc++ {
		in := p[pc]
		jump := func(cond bool) {
			if cond {
				pc += int(in.JT)
			} else {
				pc += int(in.JF)
			}
		}
		switch in.Code {
		case bpfLoad:
			a = binary.LittleEndian.Uint32(data[in.K:])
		case bpfEqual:
			jump(a == in.K)
		case bpfGreaEq:
			jump(a >= in.K)
		case bpfAnySet:
			jump(a&in.K != 0)
		case bpfRet:
			return in.K, nil
		default:
			return 0, fmt.Errorf("instruction %#x", in.Code)
		}
	}
	return 0, fmt.Errorf("the program ended without a verdict")
}

func TestProgram(t *testing.T) {
	audit := map[string]uint32{"amd64": archX86, "arm64": archARM}
	for arch, id := range audit {
		p, err := Program(arch)
		if err != nil {
			t.Fatal(err)
		}
		ask := func(nr int32, archID uint32, arg int, val uint64) uint32 {
			data := make([]byte, 64)
			binary.LittleEndian.PutUint32(data[offNR:], uint32(nr))
			binary.LittleEndian.PutUint32(data[offArch:], archID)
			if arg >= 0 {
				binary.LittleEndian.PutUint64(data[offArgs+8*arg:], val)
			}
			got, err := interpret(p, data)
			if err != nil {
				t.Fatalf("%s: %v", arch, err)
			}
			return got
		}
		brokered := map[int32]bool{}
		for _, c := range calls {
			nr := c.number(arch)
			if nr < 0 {
				continue
			}
			brokered[nr] = true
			want := uint32(retNotify)
			if c.kind == kindAbsent {
				want = retErrno | noSys
			}
			if c.kind == kindOpen && c.flags >= 0 {
				testOpenFlags(t, arch+"/"+c.name, func(flags uint64) uint32 { return ask(nr, id, int(c.flags), flags) })
				continue
			}
			if got := ask(nr, id, -1, 0); got != want {
				t.Errorf("%s %s = %#x, want %#x", arch, c.name, got, want)
			}
		}
		for nr := int32(0); nr < 600; nr++ {
			if got := ask(nr, id, -1, 0); !brokered[nr] && got != retAllow {
				t.Errorf("%s call %d = %#x, want allow", arch, nr, got)
			}
		}
		for name, got := range map[string]uint32{
			"x32":         ask(x32Bit|2, id, -1, 0),
			"other arch":  ask(2, id^1, -1, 0),
			"i386 on any": ask(5, 0x40000003, -1, 0),
		} {
			if got != retErrno|noSys {
				t.Errorf("%s %s = %#x, want ENOSYS", arch, name, got)
			}
		}
	}
	if _, err := Program("riscv64"); err == nil {
		t.Error("Program(riscv64) made a program for an architecture without a table")
	}
}

func testOpenFlags(t *testing.T, name string, ask func(uint64) uint32) {
	t.Helper()
	for _, c := range []struct {
		what  string
		flags uint64
		want  uint32
	}{
		{"read", 0, retAllow},
		{"read, high bits", 1 << 40, retAllow},
		{"write", 1, retNotify},
		{"both", 2, retNotify},
		{"neither", 3, retNotify},
		{"create", flagCreat, retNotify},
		{"truncate", flagTrunc, retNotify},
		{"tmpfile", flagTmpfile, retNotify},
		{"path", flagPath, retAllow},
		{"path with create bits", flagPath | flagCreat | 2, retAllow},
		{"close on exec", 0o2000000, retAllow},
	} {
		if got := ask(c.flags); got != c.want {
			t.Errorf("%s %s = %#x, want %#x", name, c.what, got, c.want)
		}
	}
}

func TestZeroVerdictDenies(t *testing.T) {
	var v Verdict
	if v.Allow {
		t.Error("the zero Verdict allows")
	}
}

func TestSticky(t *testing.T) {
	all := sticky{1, 2, 2}
	dir := func(mode, uid uint32) owner { return owner{typeDir | mode, uid} }
	for _, c := range []struct {
		name      string
		set       sticky
		dir, file owner
		want      bool
	}{
		{"own file", all, dir(0o1777, 0), owner{typeRegular, 5}, true},
		{"other's file in a sticky world-writable directory", all, dir(0o1777, 0), owner{typeRegular, 6}, false},
		{"file of the directory's owner", all, dir(0o1777, 6), owner{typeRegular, 6}, true},
		{"not sticky", all, dir(0o0777, 0), owner{typeRegular, 6}, true},
		{"group-writable, strict", all, dir(0o1775, 0), owner{typeFIFO, 6}, false},
		{"group-writable, lax", sticky{1, 1, 1}, dir(0o1775, 0), owner{typeFIFO, 6}, true},
		{"switched off", sticky{}, dir(0o1777, 0), owner{typeRegular, 6}, true},
		{"device", all, dir(0o1777, 0), owner{typeChar, 6}, false},
	} {
		if got := c.set.open(5, c.dir, c.file); got != c.want {
			t.Errorf("open %s = %v, want %v", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		name      string
		set       sticky
		dir, link owner
		want      bool
	}{
		{"own link", all, dir(0o1777, 0), owner{typeLink, 5}, true},
		{"other's link", all, dir(0o1777, 0), owner{typeLink, 6}, false},
		{"link of the directory's owner", all, dir(0o1777, 6), owner{typeLink, 6}, true},
		{"not world-writable", all, dir(0o1775, 0), owner{typeLink, 6}, true},
		{"switched off", sticky{}, dir(0o1777, 0), owner{typeLink, 6}, true},
	} {
		if got := c.set.follow(5, c.dir, c.link); got != c.want {
			t.Errorf("follow %s = %v, want %v", c.name, got, c.want)
		}
	}
}

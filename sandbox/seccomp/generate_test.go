//go:build linux && cgo && libseccomp

package seccomp

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	libseccomp "github.com/seccomp/libseccomp-golang"
)

var update = flag.Bool("update", false, "write the programs and their listings")

// generated names what is written for each architecture. The file names avoid
// Go's own names for architectures, which would hide the one from the tests of
// the other.
var generated = map[string]struct {
	arch          libseccomp.ScmpArch
	file, varname string
}{
	"amd64": {libseccomp.ArchAMD64, "zfilter_x86_64.go", "filterAMD64"},
	"arm64": {libseccomp.ArchARM64, "zfilter_aarch64.go", "filterARM64"},
}

// TestGenerated holds the programs and listings in the repository to what the
// table gives under the libseccomp that made them.
func TestGenerated(t *testing.T) {
	for _, m := range machines {
		t.Run(m.arch, func(t *testing.T) {
			text := filepath.Join("..", "..", "testdata", "golden", "seccomp", m.arch+".pfc")
			program, pfc := build(t, m, Rules(), Reviewed())
			source := goSource(m.arch, program)
			if *update {
				write(t, generated[m.arch].file, source)
				write(t, text, pfc)
				return
			}
			have, err := os.ReadFile(text)
			if err != nil {
				t.Fatal(err)
			}
			made, _, _ := strings.Cut(string(have), "\n")
			if made != madeBy() {
				t.Skipf("the repository's program was %s, this machine's would be %s", made, madeBy())
			}
			if string(have) != pfc {
				t.Errorf("%s differs from what the table gives; run go generate", text)
			}
			if !slices.Equal(Program(m.arch), program) {
				t.Errorf("Program(%q) differs from what the table gives; run go generate", m.arch)
			}
		})
	}
}

// TestNumbers holds the numbers that the other tests write by hand to
// libseccomp's, and finds a reviewed span with a number that nobody names.
func TestNumbers(t *testing.T) {
	for _, m := range machines {
		for name, n := range numbers {
			if n.on(m.arch) == absent {
				continue
			}
			want := nativeNumber(t, m, name)
			if got := n.on(m.arch); got != want {
				t.Errorf("%s: number of %s is %d, libseccomp says %d", m.arch, name, got, want)
			}
		}
		ours := map[uint32]bool{}
		for _, c := range Reviewed() {
			ours[c.Number] = true
		}
		for _, s := range Spans(m.arch) {
			for n := s.First; n <= s.Last; n++ {
				_, err := libseccomp.ScmpSyscall(n).GetNameByArch(generated[m.arch].arch)
				if err != nil && !ours[n] {
					t.Errorf("%s: number %d is in a reviewed span and has no name", m.arch, n)
				}
			}
		}
	}
}

// TestEachRowMatters takes each row out of the table in turn; a vector must
// then meet another verdict on some architecture.
func TestEachRowMatters(t *testing.T) {
	rules, calls := Rules(), Reviewed()
	for i, r := range rules {
		t.Run(fmt.Sprintf("%s/%d", r.Name, i), func(t *testing.T) {
			without := slices.Delete(slices.Clone(rules), i, i+1)
			if !someVectorFails(t, without, calls) {
				t.Errorf("no vector misses the row %q (%s)", r.Name, r.Why)
			}
		})
	}
	for i, c := range calls {
		if c.Allow {
			continue // TestVerdicts has a vector for each
		}
		t.Run(c.Name, func(t *testing.T) {
			if !someVectorFails(t, rules, slices.Delete(slices.Clone(calls), i, i+1)) {
				t.Errorf("no vector misses the row %q", c.Name)
			}
		})
	}
}

func someVectorFails(t *testing.T, rules []Rule, calls []Call) bool {
	for _, m := range machines {
		program, _ := build(t, m, rules, calls)
		for _, v := range vectors {
			if n, ok := v.number(m.arch); ok && interpret(t, program, m.token, n, v.args) != v.want {
				return true
			}
		}
	}
	return false
}

// build makes the program and its listing.
func build(t *testing.T, m machine, rules []Rule, calls []Call) ([]Instruction, string) {
	t.Helper()
	f, err := libseccomp.NewFilter(libseccomp.ActAllow)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	arch := generated[m.arch].arch
	native, err := libseccomp.GetNativeArch()
	if err != nil {
		t.Fatal(err)
	}
	if native != arch {
		must(t, f.AddArch(arch), "adding "+m.arch)
		must(t, f.RemoveArch(native), "removing the native architecture")
	}
	must(t, f.SetBadArchAction(errno(ENOSYS)), "setting the action for another architecture")
	for _, r := range rules {
		if len(r.Unless) > 0 || r.Arch != "" && r.Arch != m.arch {
			continue
		}
		addRule(t, f, r)
	}
	first := prologue(m, rules, calls, func(name string) uint32 { return nativeNumber(t, m, name) })
	var raw, pfc bytes.Buffer
	export(t, &raw, f.ExportBPF)
	export(t, &pfc, f.ExportPFC)
	program := append(first, decode(t, raw.Bytes())...)
	return program, madeBy() + "\n# before it, by our own assembler:\n" + listing(first) + "\n" + pfc.String()
}

func addRule(t *testing.T, f *libseccomp.ScmpFilter, r Rule) {
	t.Helper()
	call, err := libseccomp.GetSyscallFromName(r.Name)
	if err != nil {
		t.Fatalf("number of %q: %v", r.Name, err)
	}
	var conditions []libseccomp.ScmpCondition
	for _, a := range r.Args {
		values := []uint64{a.Value}
		if a.Op == Masked {
			values = []uint64{a.Mask, a.Value}
		}
		op := map[Op]libseccomp.ScmpCompareOp{
			Masked: libseccomp.CompareMaskedEqual, Equal: libseccomp.CompareEqual,
			Differs: libseccomp.CompareNotEqual, Above: libseccomp.CompareGreater,
		}[a.Op]
		c, err := libseccomp.MakeCondition(a.Index, op, values...)
		if err != nil {
			t.Fatalf("condition of %q: %v", r.Name, err)
		}
		conditions = append(conditions, c)
	}
	if len(conditions) == 0 {
		err = f.AddRuleExact(call, errno(r.Errno))
	} else {
		err = f.AddRuleConditionalExact(call, errno(r.Errno), conditions)
	}
	must(t, err, "adding a rule for "+r.Name)
}

func errno(e Errno) libseccomp.ScmpAction {
	return libseccomp.ActErrno.SetReturnCode(int16(answer(e).K & 0xffff))
}

func must(t *testing.T, err error, doing string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", doing, err)
	}
}

func nativeNumber(t *testing.T, m machine, name string) uint32 {
	t.Helper()
	n, err := libseccomp.GetSyscallFromNameByArch(name, generated[m.arch].arch)
	if err != nil {
		t.Fatalf("number of %q on %s: %v", name, m.arch, err)
	}
	return uint32(n)
}

// export reads what libseccomp writes to a file.
func export(t *testing.T, to io.Writer, do func(*os.File) error) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	must(t, do(file), "exporting")
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, file); err != nil {
		t.Fatal(err)
	}
}

func decode(t *testing.T, raw []byte) []Instruction {
	t.Helper()
	p := make([]Instruction, len(raw)/8)
	if err := binary.Read(bytes.NewReader(raw), binary.NativeEndian, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func madeBy() string {
	major, minor, micro := libseccomp.GetLibraryVersion()
	return fmt.Sprintf("# made by libseccomp %d.%d.%d", major, minor, micro)
}

func goSource(arch string, p []Instruction) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Code generated by go generate (%s). DO NOT EDIT.\n\npackage seccomp\n\n", strings.TrimPrefix(madeBy(), "# "))
	fmt.Fprintf(&b, "var %s = [...]Instruction{\n", generated[arch].varname)
	for _, in := range p {
		fmt.Fprintf(&b, "\t{%#02x, %d, %d, %#x},\n", in.Code, in.Jt, in.Jf, in.K)
	}
	b.WriteString("}\n")
	return b.String()
}

func write(t *testing.T, name, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755), "making a directory")
	must(t, os.WriteFile(name, []byte(content), 0o644), "writing")
}

package probe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// enter32 runs a program that makes its call through the 32-bit gate.
func enter32(env Env) error {
	if runtime.GOARCH != "amd64" {
		return absent("only amd64 has this gate")
	}
	program := filepath.Join(env.Workspace, "src", "int80")
	if err := os.WriteFile(program, int80(), 0o755); err != nil {
		return fmt.Errorf("no program to try with: %v", err) // hides the errno: it refuses nothing
	}
	err := exec.Command(program).Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case !ok:
		return err
	case exit.ExitCode() == 1:
		return refused("the call through the gate was refused")
	case exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGSYS:
		return refused("the call through the gate killed the caller")
	case exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGSEGV:
		return absent("this kernel has no such gate")
	}
	return err
}

// int80 is a 64-bit program that calls getpid (20 to a 32-bit kernel) through
// int 0x80 and exits with 0 if it got an answer and 1 if it was refused.
func int80() []byte {
	code := []byte{
		0xb8, 20, 0, 0, 0, // mov eax, 20
		0xcd, 0x80, // int 0x80
		0x31, 0xff, // xor edi, edi
		0x85, 0xc0, // test eax, eax
		0x79, 5, // jns over the next
		0xbf, 1, 0, 0, 0, // mov edi, 1
		0xb8, 231, 0, 0, 0, // mov eax, 231 (exit_group)
		0x0f, 0x05, // syscall
	}
	return static(code)
}

// static makes an executable file for amd64 of machine code.
func static(code []byte) []byte {
	const base, headers = 0x400000, 64 + 56
	size := uint64(headers + len(code))
	var b bytes.Buffer
	for _, v := range []any{
		[16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1},
		uint16(2), uint16(62), uint32(1), uint64(base + headers), uint64(64), uint64(0), uint32(0),
		[6]uint16{64, 56, 1, 64, 0, 0},
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), size, size, uint64(4096),
		code,
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // a buffer takes everything
	}
	return b.Bytes()
}

// pointerIoctl is an ioctl with all 64 bits of its number.
func pointerIoctl(fd int, number uintptr, c *[1]byte) error {
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), number, uintptr(unsafe.Pointer(c))); e != 0 {
		return e
	}
	return nil
}

// duplicate gives a descriptor that stays open across exec, with a number that
// no program has by chance.
func duplicate(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 200) }

//go:build amd64 || arm64

package broker

import (
	"bytes"
	"strings"
	"testing"
)

func TestStatusField(t *testing.T) {
	const text = "Name:\tUmask:\t0777\nUmask:\t0022\nTgid:\t7\nThreads:\t12\nSigPnd:\t00000000000000ff\nEmpty:\t\n"
	for _, c := range []struct {
		field string
		base  int
		want  uint64
		ok    bool
	}{
		{"Umask:", 8, 0o22, true}, // a process's name cannot pose as a field
		{"Threads:", 10, 12, true},
		{"SigPnd:", 16, 0xff, true},
		{"Empty:", 10, 0, false},
		{"Absent:", 10, 0, false},
	} {
		if got, ok := statusField([]byte(text), c.field, c.base); got != c.want || ok != c.ok {
			t.Errorf("statusField(%q) = %d, %v, want %d, %v", c.field, got, ok, c.want, c.ok)
		}
	}
}

func TestProcOf(t *testing.T) {
	for _, c := range []struct {
		path, inside string
		pid          int
		ok           bool
	}{
		{"/proc/12/fd", "fd", 12, true},
		{"/proc/12", "", 12, true},
		{"/proc/12/task/13/fd", "task/13/fd", 12, true},
		{"/proc/sys", "", 0, false},
		{"/proc", "", 0, false},
		{"/procs/12/fd", "", 0, false},
		{"/home/proc/12", "", 0, false},
	} {
		pid, inside, ok := procOf([]byte(c.path))
		if ok != c.ok || ok && (pid != c.pid || string(inside) != c.inside) {
			t.Errorf("procOf(%q) = %d, %q, %v", c.path, pid, inside, ok)
		}
	}
	for _, c := range []struct {
		inside, name string
		want         bool
	}{
		{"", "cwd", true}, {"", "exe", true}, {"", "root", true}, {"", "mounts", false}, {"fd", "3", true},
		{"task/9", "cwd", true}, {"task/9/fd", "3", true}, {"map_files", "1-2", true}, {"ns", "mnt", true}, {"net", "x", false}, {"fdinfo", "3", false},
	} {
		if got := isMagic([]byte(c.inside), []byte(c.name)); got != c.want {
			t.Errorf("isMagic(%q, %q) = %v, want %v", c.inside, c.name, got, c.want)
		}
	}
}

func FuzzStatTerminal(f *testing.F) {
	f.Add([]byte("7 (a) b) S 1 7 5 34816 9 4194304 1"))
	f.Add([]byte("7 ("))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _, _ = statTerminal(text)
		_, _ = statusField(text, "Tgid:", 10)
		if session, tty, ok := statTerminal(append([]byte("7 ("), append(bytes.ReplaceAll(text, []byte(")"), nil), []byte(") S 1 7 5 34816 9")...)...)); !ok || session != 5 || tty != 34816 {
			t.Errorf("statTerminal with name %q = %d, %d, %v", text, session, tty, ok)
		}
	})
}

// FuzzBelow joins canonical paths the way the rules will see them.
func FuzzBelow(f *testing.F) {
	f.Add("/a", "b")
	f.Add("/", "b")
	f.Fuzz(func(t *testing.T, dir, name string) {
		if !strings.HasPrefix(dir, "/") || strings.HasSuffix(dir, "/") && dir != "/" || strings.Contains(name, "/") {
			return
		}
		want := dir + "/" + name
		if dir == "/" {
			want = "/" + name
		}
		if got := string(below([]byte(dir), []byte(name))); got != want {
			t.Errorf("below(%q, %q) = %q, want %q", dir, name, got, want)
		}
	})
}

package stage

import (
	"reflect"
	"strings"
	"testing"
)

func sample() *Config {
	return &Config{
		Argv: []string{"sh", "", "a\x00b", "\xff"}, Env: []string{"A=b"}, Dir: "/w",
		Mounts: []Mount{
			{Kind: File, Target: "/etc/x", Data: []byte("text"), Perm: 0o644},
			{Kind: ReadOnly, Source: "/usr", Target: "/usr", Data: []byte{}, Optional: true},
		},
		Write: []string{"/w"},
		Broker: Broker{
			There: []string{"/w/package.json"}, Others: []string{"/g/index"},
			Mode: BrokerAuto, Balanced: true, Protect: []string{"data/**"}, Unprotect: []string{"x"},
			Areas:  []Area{{Dir: "/w", Dirs: []string{"src"}}, {Dir: "/g", Prefix: ".git", Git: true}},
			Inodes: []Inode{{Dev: 1 << 40, Ino: 2, Path: "p"}},
		},
		Port: 31280, Landlock: true, Seccomp: true, TTY: [3]bool{true, false, true},
		Termios: []byte{1, 2}, Winsize: [4]uint16{24, 80, 0, 0},
	}
}

func TestConfigRoundTrip(t *testing.T) {
	want := sample()
	got, err := Decode(want.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	whole := sample().Encode()
	for _, tc := range []struct {
		name string
		data []byte
	}{
		{"nothing", nil},
		{"another version", []byte("agst1")},
		{"no command", (&Config{}).Encode()},
		{"something behind", append(sample().Encode(), 0)},
		{"a count beyond the data", append([]byte(codecMagic), 0xff, 0xff, 0xff, 0xff)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if c, err := Decode(tc.data); err == nil {
				t.Errorf("decoded %+v", c)
			}
		})
	}
	for n := range whole {
		if _, err := Decode(whole[:n]); err == nil {
			t.Errorf("decoded the first %d of %d bytes", n, len(whole))
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(sample().Encode())
	f.Add([]byte(codecMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Decode(data)
		if err != nil {
			return
		}
		if len(c.Argv) == 0 {
			t.Error("a configuration without a command")
		}
		again, err := Decode(c.Encode())
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("not the same the second time: %v", err)
		}
	})
}

func TestMessage(t *testing.T) {
	m := Message{Op: OpRefused, Value: 7, Text: "open\x00/w/x"}
	got, err := DecodeMessage(m.Encode())
	if err != nil || got != m {
		t.Errorf("got %+v, %v", got, err)
	}
	long := Message{Op: OpFailed, Text: strings.Repeat("x", 2*maxMessage)}
	if n := len(long.Encode()); n != maxMessage {
		t.Errorf("a long message has %d bytes", n)
	}
	for _, bad := range [][]byte{nil, {1}, {0, 0, 0, 0, 0}, {200, 0, 0, 0, 0}} {
		if _, err := DecodeMessage(bad); err == nil {
			t.Errorf("decoded %v", bad)
		}
	}
}

// The zero values do nothing and open nothing.
func TestZeroValues(t *testing.T) {
	if Kind(0) == Dir || Kind(0).String() != "nothing" {
		t.Error("the zero step is one of the plan's")
	}
	if (Config{}).Landlock || (Config{}).Broker.Mode != BrokerOff {
		t.Error("the zero configuration claims a protection")
	}
}

package policy

import (
	"strings"
	"testing"
)

func TestCanonicalHost(t *testing.T) {
	long := strings.Repeat("a.", 126) + "a"     // 253 bytes
	tests := []struct{ name, in, want string }{ // want "" is a refusal
		{"plain", "example.com", "example.com"},
		{"upper case", "EXAMPLE.Com", "example.com"},
		{"trailing dot", "example.com.", "example.com"},
		{"single label", "localhost", "localhost"},
		{"underscore", "my_service.internal", "my_service.internal"},
		{"three hyphens inside", "r3---sn-x.example.com", "r3---sn-x.example.com"},
		{"a-label", "xn--mnchen-3ya.de", "xn--mnchen-3ya.de"},
		{"253 bytes", long, long},
		{"IPv4", "127.0.0.1", "127.0.0.1"},
		{"IPv6 in brackets", "[::1]", "::1"},
		{"IPv6 long", "[0:0:0:0:0:0:0:1]", "::1"},
		{"IPv6 upper case", "[2001:DB8::A]", "2001:db8::a"},
		{"IPv6 bare", "2001:db8::1", "2001:db8::1"},
		{"IPv4 inside IPv6", "[::ffff:127.0.0.1]", "127.0.0.1"},
		{"IPv4 inside IPv6 in hex", "[::ffff:7f00:1]", "127.0.0.1"},
		{"IPv4 inside IPv6 in full", "[0:0:0:0:0:ffff:127.0.0.1]", "127.0.0.1"},

		{"empty", "", ""},
		{"root", ".", ""},
		{"two trailing dots", "example.com..", ""},
		{"leading dot", ".example.com", ""},
		{"empty label", "a..b", ""},
		{"254 bytes", long + "b", ""},
		{"label of 64", strings.Repeat("a", 64) + ".com", ""},
		{"short IPv4", "127.1", ""},
		{"hex IPv4", "0x7f.1", ""},
		{"hex number", "0x7f000001", ""},
		{"bare 0x", "a.0x", ""},
		{"decimal number", "2130706433", ""},
		{"octal number", "017700000001", ""},
		{"octal parts", "0177.0.0.1", ""},
		{"IPv4 with a dot", "127.0.0.1.", ""},
		{"zero", "0", ""},
		{"five parts", "1.2.3.4.5", ""},
		{"part over 255", "1.2.3.256", ""},
		{"userinfo", "localhost@127.0.0.1", ""},
		{"userinfo with port", "localhost:80@127.0.0.1", ""},
		{"percent NUL", "127.0.0.1%00.localhost", ""},
		{"NUL", "127.0.0.1\x00.localhost", ""},
		{"backslash", `127.0.0.1\.localhost`, ""},
		{"fragment", "127.0.0.1#.localhost", ""},
		{"query", "127.0.0.1?.localhost", ""},
		{"slash", "127.0.0.1/.localhost", ""},
		{"percent slash", "127.0.0.1%2f.localhost", ""},
		{"comma", "localhost,127.0.0.1", ""},
		{"space", "127.0.0.1 localhost", ""},
		{"circled digits", "①②⑦.0.0.1", ""},
		{"international", "münchen.de", ""},
		{"Kelvin sign", "\u212aernel.org", ""},
		{"tab", "a\tb", ""},
		{"newline", "a.com\n", ""},
		{"port", "example.com:443", ""},
		{"wildcard", "*.example.com", ""},
		{"leading hyphen", "-a.com", ""},
		{"trailing hyphen", "a-.com", ""},
		{"zone", "[fe80::1%eth0]", ""},
		{"zone encoded", "[fe80::1%25eth0]", ""},
		{"unclosed", "[::1", ""},
		{"unopened", "::1]", ""},
		{"IPv4 in brackets", "[127.0.0.1]", ""},
		{"name in brackets", "[localhost]", ""},
		{"empty brackets", "[]", ""},
		{"double brackets", "[[::1]]", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, addr, err := CanonicalHost(tt.in)
			if (err == nil) != (tt.want != "") || got != tt.want {
				t.Fatalf("CanonicalHost(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
			}
			if addr.IsValid() && addr.String() != got {
				t.Errorf("CanonicalHost(%q) gives host %q and address %v", tt.in, got, addr)
			}
		})
	}
}

// TestSpellingsOfAddress holds that no spelling of an address that has no rule
// passes for a host that has one.
func TestSpellingsOfAddress(t *testing.T) {
	rules := []HostPattern{mustHost(t, "localhost"), mustHost(t, "*.localhost")}
	spellings := []string{
		"127.0.0.1", "127.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "127.0.0.1.",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::1]", "[0:0:0:0:0:ffff:127.0.0.1]",
		"localhost@127.0.0.1", "localhost:80@127.0.0.1", "127.0.0.1%00.localhost",
		"127.0.0.1\x00.localhost", `127.0.0.1\.localhost`, "127.0.0.1#.localhost",
		"127.0.0.1?.localhost", "127.0.0.1/.localhost", "0.0.0.0", "0", "127.0.0.1%2f.localhost",
		"localhost,127.0.0.1", "127.0.0.1 localhost", "vm", "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1",
	}
	for _, s := range spellings {
		host, _, err := CanonicalHost(s)
		if err != nil {
			continue
		}
		for _, p := range rules {
			if p.Match(host) {
				t.Errorf("%q is matched by %q", s, p)
			}
		}
	}
}

func TestHostPatternMatch(t *testing.T) {
	tests := []struct {
		pattern, host string
		want          bool
	}{
		{"example.com", "example.com", true},
		{"EXAMPLE.com.", "example.com", true},
		{"example.com", "www.example.com", false},
		{"example.com", "example.com.evil.org", false},
		{"*.example.com", "www.example.com", true},
		{"*.example.com", "a.b.example.com", true},
		{"*.example.com", "example.com", false},
		{"*.example.com", ".example.com", false},
		{"*.example.com", "badexample.com", false},
		{"*.example.com", "www.example.com.evil.org", false},
		{"*.localhost", "a.localhost", true},
		{"münchen.de", "xn--mnchen-3ya.de", true},
		{"*.Bücher.example", "a.xn--bcher-kva.example", true},
		{"127.0.0.1", "127.0.0.1", true},
		{"::ffff:127.0.0.1", "127.0.0.1", true},
		{"[::1]", "::1", true},
		{"127.0.0.1", "127.0.0.10", false},
	}
	for _, tt := range tests {
		t.Run(tt.pattern+" "+tt.host, func(t *testing.T) {
			if got := mustHost(t, tt.pattern).Match(tt.host); got != tt.want {
				t.Errorf("Match(%q) = %v, want %v", tt.host, got, tt.want)
			}
		})
	}
	for _, host := range []string{"", "a", "example.com", "127.0.0.1"} {
		if (HostPattern{}).Match(host) {
			t.Errorf("the zero pattern matches %q", host)
		}
	}
}

func TestParseHostRefuses(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "empty"},
		{"*", "every host"},
		{"*.", "empty"},
		{"*.*.com", "first label"},
		{"a.*.com", "first label"},
		{"a*.com", "first label"},
		{"**.example.com", "first label"},
		{"https://example.com", "not a URL"},
		{"user@example.com", "user name"},
		{"example.com:443", "ports: [443]"},
		{"*.example.com:8443", "ports: [8443]"},
		{"example.com/x", "holds '/'"},
		{"*.127.0.0.1", "no sub-domains"},
		{"*.::1", "no sub-domains"},
		{"127.1", "number"},
		{"exa mple.com", "holds ' '"},
		{"a\u200db.com", "international"},
		{"xn--a.com", "international"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			p, err := ParseHost(tt.in)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ParseHost(%q) = %q, %v, want an error with %q", tt.in, p, err, tt.want)
			}
		})
	}
}

func TestHostPatternCovers(t *testing.T) {
	tests := []struct {
		p, q string
		want bool
	}{
		{"a.com", "a.com", true},
		{"*.a.com", "x.a.com", true},
		{"*.a.com", "*.a.com", true},
		{"*.a.com", "*.x.a.com", true},
		{"*.x.a.com", "*.a.com", false},
		{"*.a.com", "a.com", false},
		{"a.com", "*.a.com", false},
		{"*.a.com", "*.ba.com", false},
	}
	for _, tt := range tests {
		if got := mustHost(t, tt.p).covers(mustHost(t, tt.q)); got != tt.want {
			t.Errorf("%q covers %q = %v, want %v", tt.p, tt.q, got, tt.want)
		}
	}
}

func FuzzCanonicalHost(f *testing.F) {
	for _, s := range []string{"example.com.", "127.1", "[::ffff:7f00:1]", "a_b.c", "0x7f.1", "xn--a", "[fe80::1%25eth0]", "1.2.3.4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, addr, err := CanonicalHost(s)
		if err != nil {
			if host != "" || addr.IsValid() {
				t.Fatalf("CanonicalHost(%q) gives %q, %v with an error", s, host, addr)
			}
			return
		}
		again, addr2, err := CanonicalHost(host)
		if err != nil || again != host || addr2 != addr {
			t.Fatalf("CanonicalHost(%q) = %q, which becomes %q, %v", s, host, again, err)
		}
		for _, c := range host {
			if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_.:", c) {
				t.Fatalf("CanonicalHost(%q) = %q holds %q", s, host, c)
			}
		}
		if !addr.IsValid() && strings.ContainsRune(host, ':') {
			t.Fatalf("CanonicalHost(%q) = %q is a name with a colon", s, host)
		}
	})
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"*.example.com", "münchen.de", "*", "a.*", "[::1]", "*.1.2.3.4", "xn--a", "\xef00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseHost(s)
		if err != nil {
			return
		}
		again, err := ParseHost(p.String())
		if err != nil || again != p {
			t.Fatalf("ParseHost(%q) = %q, which becomes %q, %v", s, p, again, err)
		}
		host := p.name
		if p.sub {
			host = "x." + p.name
		}
		if !p.Match(host) || p.sub == p.Match(p.name) {
			t.Fatalf("ParseHost(%q) = %q does not match what it names", s, p)
		}
	})
}

func mustHost(t *testing.T, s string) HostPattern {
	t.Helper()
	p, err := ParseHost(s)
	if err != nil {
		t.Fatalf("ParseHost(%q): %v", s, err)
	}
	return p
}

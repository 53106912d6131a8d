package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"agentguard/guard/policy"
)

// What may become of an address.
const (
	public = "public"  // reachable without a word
	inside = "private" // reachable when opened
	never  = "never"
	meta   = "metadata"
)

var guardRows = []struct{ addr, want string }{
	{"1.1.1.1", public}, {"93.184.216.34", public}, {"172.15.0.1", public}, {"172.32.0.1", public},
	{"100.63.255.255", public}, {"100.128.0.1", public}, {"198.17.0.1", public}, {"198.20.0.1", public},
	{"192.0.1.1", public}, {"223.255.255.255", public}, {"11.0.0.0", public}, {"168.63.129.17", public},
	{"2606:4700::1111", public}, {"2a00::1", public}, {"2001:200::1", public}, {"2001:4860:4860::8888", public},
	{"64:ff9b::5db8:d822", public}, {"::ffff:1.1.1.1", public}, {"2001:470::5efe:1.1.1.1", public},

	{"10.0.0.1", inside}, {"172.16.0.1", inside}, {"172.31.255.255", inside}, {"192.168.1.1", inside},
	{"100.64.0.1", inside}, {"127.0.0.1", inside}, {"127.255.255.254", inside}, {"169.254.1.1", inside},
	{"198.18.0.1", inside}, {"192.0.2.1", inside}, {"203.0.113.7", inside}, {"198.51.100.1", inside},
	{"::1", inside}, {"fc00::1", inside}, {"fd12::1", inside}, {"fe80::1", inside}, {"fec0::1", inside},
	{"2001:db8::1", inside}, {"3fff::1", inside}, {"::ffff:127.0.0.1", inside}, {"::ffff:10.1.2.3", inside},
	{"64:ff9b::10.0.0.1", inside}, {"64:ff9b::127.0.0.1", inside}, {"2001:470::5efe:10.0.0.1", inside},
	{"2a00::200:5efe:192.168.0.1", inside},
	{"93.184.216.99", inside}, {"2a00::99", inside}, {"::ffff:93.184.216.99", inside}, {"64:ff9b::5db8:d863", inside},

	{"0.0.0.0", never}, {"0.1.2.3", never}, {"224.0.0.1", never}, {"239.1.1.1", never}, {"240.0.0.1", never},
	{"255.255.255.255", never}, {"192.0.0.1", never}, {"192.31.196.1", never}, {"192.52.193.1", never},
	{"192.88.99.1", never}, {"192.175.48.1", never},
	{"::", never}, {"::2", never}, {"::127.0.0.1", never}, {"::10.0.0.1", never}, {"::ffff:0:10.0.0.1", never},
	{"::ffff:0:1.1.1.1", never}, {"64:ff9b:1::1", never}, {"64:ff9b::0.0.0.0", never}, {"100::1", never},
	{"2001::1", never}, {"2001:0:1:2:3:4:5:6", never}, {"2001:10::1", never}, {"2001:1ff::1", never},
	{"2002:0101:0101::", never}, {"2002:a00:1::", never}, {"2620:4f:8000::1", never}, {"5f00::1", never},
	{"ff02::1", never}, {"4000::1", never}, {"1::1", never}, {"64:ff9c::1", never}, {"::ffff:0.0.0.0", never},

	{"169.254.169.254", meta}, {"169.254.170.2", meta}, {"168.63.129.16", meta}, {"100.100.100.200", meta},
	{"192.0.0.192", meta}, {"fd00:ec2::254", meta}, {"fd20:ce::254", meta}, {"::ffff:169.254.169.254", meta},
	{"::169.254.169.254", meta}, {"::ffff:0:a9fe:a9fe", meta}, {"64:ff9b::a9fe:a9fe", meta}, {"2002:a9fe:a9fe::", meta},
	{"2001::80ff:fefe:5601:5601", meta}, {"2001:0:a9fe:a9fe::", meta}, {"64:ff9b:1:a9fe:a9:fe00::", meta},
	{"64:ff9b:1::a9fe:a9fe", meta}, {"2a00::5efe:169.254.169.254", meta}, {"fe80::a9fe:a9fe", meta},
	{"169.254.42.42", meta}, {"169.254.0.23", meta}, {"100.96.0.96", meta}, {"fd00:42::42", meta}, {"fd00:a9fe:a9fe::1", meta},
}

// classify says what becomes of an address, with nothing and with everything
// opened.
func classify(a netip.Addr) string {
	own := []netip.Addr{netip.MustParseAddr("93.184.216.99"), netip.MustParseAddr("2a00::99")}
	closed := guard{own: own}
	opened := guard{own: own, private: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
	c, o := closed.judge(a), opened.judge(a)
	switch {
	case c == nil && o == nil:
		return public
	case c == nil:
		return "closed by opening"
	case c.open && o == nil:
		return inside
	case o == nil || c.open || o.open || c.code != o.code:
		return "inconsistent"
	case c.code == CodeMetadata:
		return meta
	}
	return never
}

func TestGuardTable(t *testing.T) {
	for _, tt := range guardRows {
		t.Run(tt.addr, func(t *testing.T) {
			a := netip.MustParseAddr(tt.addr)
			if got := classify(a); got != tt.want {
				t.Errorf("judge(%v): %s, want %s", a, got, tt.want)
			}
			if a.Is6() {
				if got := classify(a.WithZone("eth0")); got != tt.want {
					t.Errorf("judge(%v) with a zone: %s, want %s", a, got, tt.want)
				}
			}
		})
	}
}

// A row of the tables that could be deleted without a test failing is not held
// by a test.
func TestGuardRowsAreHeld(t *testing.T) {
	wrong := func() bool {
		return slices.ContainsFunc(guardRows, func(r struct{ addr, want string }) bool {
			return classify(netip.MustParseAddr(r.addr)) != r.want
		})
	}
	all, metas := specials, metadataAddrs
	defer func() { specials, metadataAddrs = all, metas }()
	for i, s := range all {
		specials = slices.Delete(slices.Clone(all), i, i+1)
		// Outside of what is given out, a row only says why or that it may be opened.
		if !wrong() && (s.prefix.Addr().Is4() || globalUnicast.Overlaps(s.prefix) || s.open) {
			t.Errorf("no test notices when the row %v is gone", s.prefix)
		}
	}
	specials = all
	for i, p := range metas {
		metadataAddrs = slices.Delete(slices.Clone(metas), i, i+1)
		if !wrong() {
			t.Errorf("no test notices when the metadata service at %v is gone", p)
		}
	}
}

func TestGuardRowsAreAllNeeded(t *testing.T) {
	// A row that another row or the rule for IPv6 covers whole would be dead.
	for i, s := range specials {
		for _, o := range specials[:i] {
			if o.prefix.Overlaps(s.prefix) && o.prefix.Bits() <= s.prefix.Bits() {
				t.Errorf("row %v is covered by the earlier %v", s.prefix, o.prefix)
			}
		}
	}
}

func TestResolve(t *testing.T) {
	answers := map[string][]string{
		"public.example.com": {"1.1.1.1", "2606:4700::1111"},
		"mixed.example.com":  {"1.1.1.1", "10.0.0.1"},
		"meta.example.com":   {"169.254.169.254"},
		"mapped.example.com": {"::ffff:127.0.0.1"},
		"zone.example.com":   {"fe80::1%eth0"},
		"empty.example.com":  {},
		"banned.example.com": {"9.9.9.9"},
		"intra.example.com":  {"10.1.2.3"},
	}
	rv := newResolver(Config{
		Policy: policy.Egress{
			Resolve: map[string]policy.Target{
				"static.example.com":   {Addr: netip.MustParseAddr("1.2.3.4"), Port: 8443},
				"loop.example.com":     {Addr: netip.MustParseAddr("127.0.0.1")},
				"metadata.example.com": {Addr: netip.MustParseAddr("169.254.169.254")},
			},
			Deny: []policy.Rule{{Host: mustHost(t, "9.9.9.9"), AnyPort: true}},
		},
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			list, ok := answers[host]
			if !ok {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			var out []netip.Addr
			for _, a := range list {
				out = append(out, netip.MustParseAddr(a))
			}
			return out, nil
		},
		Own: func() ([]netip.Addr, error) { return nil, nil },
	})
	for _, tt := range []struct{ host, private, want string }{
		{"public.example.com", "", "1.1.1.1:80 [2606:4700::1111]:80"},
		{"mixed.example.com", "", "address"},
		{"mixed.example.com", "10.0.0.0/8", "1.1.1.1:80 10.0.0.1:80"},
		{"meta.example.com", "0.0.0.0/0", "metadata"},
		{"mapped.example.com", "", "address"},
		{"mapped.example.com", "127.0.0.0/8", "127.0.0.1:80"},
		{"zone.example.com", "", "address"},
		{"zone.example.com", "fe80::/10", "[fe80::1]:80"},
		{"empty.example.com", "", "dns"},
		{"unknown.example.com", "", "dns"},
		{"banned.example.com", "", "deny_rule"},
		{"9.9.9.9", "", "deny_rule"},
		{"static.example.com", "", "1.2.3.4:8443"},
		{"loop.example.com", "", "address"},
		{"loop.example.com", "127.0.0.1/32", "127.0.0.1:80"},
		{"metadata.example.com", "169.254.0.0/16", "metadata"},
		{"localhost", "", "address"},
		{"localhost", "127.0.0.0/8", "127.0.0.1:80"},
		{"a.localhost", "::1/128", "[::1]:80"},
		{"127.0.0.1", "", "address"},
		{"1.1.1.1", "", "1.1.1.1:80"},
		{"64:ff9b::a00:1", "", "address"},
	} {
		t.Run(tt.host+" "+tt.private, func(t *testing.T) {
			var private []netip.Prefix
			if tt.private != "" {
				private = append(private, netip.MustParsePrefix(tt.private))
			}
			v, err := rv.resolve(t.Context(), Request{Host: tt.host, Port: 80}, private)
			var got []string
			for _, a := range v.addrs {
				got = append(got, a.String())
			}
			var ae *AddressError
			if errors.As(err, &ae) {
				got = []string{string(ae.Code)}
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got %q (%v), want %q", s, err, tt.want)
			}
		})
	}
}

func TestOwnAddressesUnknownRefuses(t *testing.T) {
	rv := newResolver(Config{Own: func() ([]netip.Addr, error) { return nil, errors.New("no netlink") }})
	if _, err := rv.resolve(t.Context(), Request{Host: "1.1.1.1", Port: 80}, nil); err == nil {
		t.Error("dialled without knowing the addresses of this machine")
	}
}

// The dialer judges what the kernel is about to be given, whoever asked.
func TestDialerJudgesAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ap := netip.MustParseAddrPort(l.Addr().String())
	for _, tt := range []struct {
		name    string
		private []netip.Prefix
		ok      bool
	}{
		{"opened", loopbackOpen, true},
		{"not opened", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := vetted{addrs: []netip.AddrPort{ap}, guard: guard{private: tt.private}}
			c, err := v.dial(t.Context())
			if (err == nil) != tt.ok {
				t.Fatalf("dial: %v, want ok %v", err, tt.ok)
			}
			if err == nil {
				_ = c.Close()
			} else if !errors.Is(err, errNotVetted) {
				t.Errorf("error is %v, want errNotVetted", err)
			}
		})
	}
	v := vetted{addrs: []netip.AddrPort{ap}, guard: guard{private: loopbackOpen}}
	for _, a := range []string{"127.0.0.1:1", "127.0.0.2:" + "80", "localhost:80", "", "[::1]:80"} {
		if v.check(a) == nil {
			t.Errorf("check(%q) let an address through that was not judged", a)
		}
	}
	if _, err := (&vetted{}).dial(t.Context()); err == nil {
		t.Error("the zero value dialled")
	}
}

func TestInterfaceAddrs(t *testing.T) {
	addrs, err := interfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		g := guard{own: addrs}
		if g.judge(a) == nil {
			t.Errorf("%v of this machine counts as public", a)
		}
	}
}

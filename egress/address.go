package egress

import (
	"net/netip"
	"slices"
)

// special is one row of what is not the public Internet.
type special struct {
	prefix netip.Prefix
	what   string
	open   bool // a policy may open it
}

// specials are the IANA special-purpose registries and what clouds add. An
// address that is in no row is public. The first row that holds an address
// speaks for it.
var specials = []special{
	row("0.0.0.0/8", "this network: connects to the local machine", false),
	row("10.0.0.0/8", "private", true),
	row("100.64.0.0/10", "shared by carriers, VPNs and clouds", true),
	row("127.0.0.0/8", "loopback", true),
	row("169.254.0.0/16", "link-local", true),
	row("172.16.0.0/12", "private", true),
	row("192.0.0.0/24", "protocol assignments", false),
	row("192.0.2.0/24", "documentation", true),
	row("192.31.196.0/24", "AS112", false),
	row("192.52.193.0/24", "automatic multicast tunnels", false),
	row("192.88.99.0/24", "6to4 relays", false),
	row("192.168.0.0/16", "private", true),
	row("192.175.48.0/24", "AS112", false),
	row("198.18.0.0/15", "benchmarking, and the fake addresses of some VPNs", true),
	row("198.51.100.0/24", "documentation", true),
	row("203.0.113.0/24", "documentation", true),
	row("224.0.0.0/4", "multicast", false),
	row("240.0.0.0/4", "reserved and broadcast", false),

	row("::1/128", "loopback", true),
	row("::/96", "unspecified, or IPv4 in an obsolete form", false),
	row("::ffff:0:0:0/96", "IPv4 translated", false),
	row("64:ff9b:1::/48", "local translation to IPv4", false),
	row("100::/64", "discarded", false),
	row("2001::/23", "protocol assignments, Teredo, ORCHID", false),
	row("2001:db8::/32", "documentation", true),
	row("2002::/16", "6to4", false),
	row("2620:4f:8000::/48", "AS112", false),
	row("3fff::/20", "documentation", true),
	row("5f00::/16", "segment routing", false),
	row("fc00::/7", "private", true),
	row("fe80::/10", "link-local", true),
	row("fec0::/10", "site-local", true),
	row("ff00::/8", "multicast", false),
}

// globalUnicast is all of IPv6 that is given out. Outside of it only rows that
// can be opened, and the well-known translation prefix, are reachable.
var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
)

// metadataAddrs hand out the machine's own credentials. No policy opens them.
var metadataAddrs = []netip.Prefix{
	netip.MustParsePrefix("169.254.169.0/24"),     // AWS, GCP, Azure, Oracle, DigitalOcean, OpenStack and others
	netip.MustParsePrefix("169.254.170.0/24"),     // AWS containers and pods
	netip.MustParsePrefix("169.254.42.42/32"),     // Scaleway
	netip.MustParsePrefix("169.254.0.23/32"),      // Tencent
	netip.MustParsePrefix("168.63.129.16/32"),     // Azure's host agent
	netip.MustParsePrefix("100.100.100.200/32"),   // Alibaba
	netip.MustParsePrefix("100.96.0.96/32"),       // Volcengine
	netip.MustParsePrefix("192.0.0.192/32"),       // Oracle
	netip.MustParsePrefix("fd00:ec2::/32"),        // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),     // GCP
	netip.MustParsePrefix("fd00:42::42/128"),      // Scaleway
	netip.MustParsePrefix("fe80::a9fe:a9fe/128"),  // OpenStack
	netip.MustParsePrefix("fd00:a9fe:a9fe::/112"), // Oracle, Tencent
}

// metadataNames are the same services by name.
var metadataNames = []string{
	"metadata", "metadata.google.internal", "metadata.goog", "metadata.azure.internal", "metadata.azure.com",
	"instance-data", "instance-data.ec2.internal", "metadata.tencentyun.com", "metadata.platformequinix.com",
}

func row(prefix, what string, open bool) special {
	return special{netip.MustParsePrefix(prefix), what, open}
}

func metadataName(host string) bool { return slices.Contains(metadataNames, host) }

// guard judges addresses. The zero guard opens nothing.
type guard struct {
	private []netip.Prefix // opened by the policy
	own     []netip.Addr   // this machine's addresses
}

// objection says why an address is not to be dialled.
type objection struct {
	addr netip.Addr // the address objected to, or an IPv4 address in it
	code Code
	what string // what the address is
	open bool   // a policy line could open it
}

// judge returns nil for an address that may be dialled. Every IPv4 address
// that a may lead to counts like a itself; an objection that no policy can
// lift comes before one that a policy can.
func (g *guard) judge(a netip.Addr) *objection {
	a = canonicalAddr(a)
	if !a.IsValid() {
		return &objection{a, CodeAddress, "no address", false}
	}
	all := append(embedded(a), a)
	for _, x := range all {
		if slices.ContainsFunc(metadataAddrs, func(p netip.Prefix) bool { return p.Contains(x) }) {
			return &objection{a, CodeMetadata, "a cloud metadata service", false}
		}
	}
	var worst *objection
	for _, x := range all {
		what, open := g.class(x)
		if what == "" || open && g.opened(x) {
			continue
		}
		if worst == nil || worst.open && !open {
			worst = &objection{x, CodeAddress, what, open}
		}
	}
	return worst
}

// class says what a special-purpose address is, "" for a public one.
func (g *guard) class(a netip.Addr) (what string, open bool) {
	for _, s := range specials {
		if s.prefix.Contains(a) {
			return s.what, s.open
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) && !nat64.Contains(a) {
		return "not given out", false
	}
	if slices.Contains(g.own, a) {
		return "an address of this machine", true
	}
	return "", false
}

func (g *guard) opened(a netip.Addr) bool {
	return slices.ContainsFunc(g.private, func(p netip.Prefix) bool { return p.Contains(a) })
}

// canonicalAddr drops the zone, which netip.Prefix.Contains trips over, and
// makes IPv4 of IPv4 in IPv6.
func canonicalAddr(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// embedded returns the IPv4 addresses that routers, translators and tunnels
// take out of an IPv6 address.
func embedded(a netip.Addr) []netip.Addr {
	if !a.Is6() || a.IsLoopback() || a.IsUnspecified() {
		return nil
	}
	b := a.As16()
	v4 := func(i int) netip.Addr { return netip.AddrFrom4([4]byte(b[i : i+4])) }
	var out []netip.Addr
	switch {
	case nat64.Contains(a), prefix96(b, 0), prefix96(b, 0xffff0000):
		out = append(out, v4(12))
	case b[0] == 0x20 && b[1] == 0x02: // 6to4
		out = append(out, v4(2))
	case b[0] == 0x20 && b[1] == 0x01 && b[2] == 0 && b[3] == 0: // Teredo: server, and client inverted
		out = append(out, v4(4), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	case b[0] == 0 && b[1] == 0x64 && b[2] == 0xff && b[3] == 0x9b: // 64:ff9b:1::/48, by RFC 6052 and as a /96
		out = append(out, netip.AddrFrom4([4]byte{b[6], b[7], b[9], b[10]}), v4(12))
	}
	if (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe { // ISATAP
		out = append(out, v4(12))
	}
	return out
}

// prefix96 says whether b starts with 64 zero bits and then mid.
func prefix96(b [16]byte, mid uint32) bool {
	for _, x := range b[:8] {
		if x != 0 {
			return false
		}
	}
	return uint32(b[8])<<24|uint32(b[9])<<16|uint32(b[10])<<8|uint32(b[11]) == mid
}

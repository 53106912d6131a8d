package policy

import "net/netip"

// metadataAddrs are the addresses at which a cloud machine is handed its own
// credentials. No rule, prefix or static answer makes them reachable.
var metadataAddrs = [...]netip.Addr{
	netip.AddrFrom4([4]byte{169, 254, 169, 254}), // AWS, Google, Azure, most others
	netip.AddrFrom4([4]byte{169, 254, 170, 2}),   // AWS container credentials
	netip.AddrFrom4([4]byte{169, 254, 170, 23}),  // AWS EKS pod identity
	netip.AddrFrom4([4]byte{168, 63, 129, 16}),   // Azure's host agent
	netip.AddrFrom4([4]byte{100, 100, 100, 200}), // Alibaba Cloud
	netip.AddrFrom4([4]byte{192, 0, 0, 192}),     // Oracle Cloud
	netip.MustParseAddr("fd00:ec2::254"),         // AWS over IPv6
	netip.MustParseAddr("fd00:ec2::23"),          // AWS EKS pod identity over IPv6
	netip.MustParseAddr("fd20:ce::254"),          // Google over IPv6
}

// IsMetadata says whether a cloud hands out a machine's credentials at a,
// written as IPv4 or as IPv4 inside IPv6.
func IsMetadata(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, m := range metadataAddrs {
		if a == m {
			return true
		}
	}
	return false
}

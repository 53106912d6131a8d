package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"agentguard/guard/policy"
)

// ownFresh is how long the list of this machine's addresses is believed:
// interfaces come and go while a run lasts.
const ownFresh = 10 * time.Second

// resolver finds and judges the addresses of hosts.
type resolver struct {
	lookup LookupFunc
	static map[string]policy.Target
	deny   []policy.Rule // those about an address
	own    *ownAddrs
}

func newResolver(c Config) resolver {
	r := resolver{lookup: c.Lookup, static: c.Policy.Resolve, own: &ownAddrs{list: c.Own}}
	if r.lookup == nil {
		r.lookup = lookupGo
	}
	if r.own.list == nil {
		r.own.list = interfaceAddrs
	}
	for _, d := range c.Policy.Deny {
		if _, ok := d.Host.Addr(); ok && !d.NeedsRequest() {
			r.deny = append(r.deny, d)
		}
	}
	return r
}

// vetted is what one request may dial: addresses that were all judged.
type vetted struct {
	addrs []netip.AddrPort
	guard guard
}

// AddressError says that a host is not dialled because of its addresses.
type AddressError struct {
	Code   Code
	Reason string
	Open   netip.Prefix // what a `private` line would have to name; invalid when none would help
}

func (e *AddressError) Error() string { return e.Reason }

// resolve returns the addresses of r's host, once, for a request that the
// policy allowed and that opens private. One bad answer refuses them all: an
// answer that mixes public and private addresses is an attack or a mistake.
func (rv *resolver) resolve(ctx context.Context, r Request, private []netip.Prefix) (vetted, error) {
	own, err := rv.own.get()
	if err != nil {
		return vetted{}, &AddressError{Code: CodeAddress, Reason: "the addresses of this machine are not known: " + err.Error()}
	}
	v := vetted{guard: guard{private: private, own: own}}
	addrs, port, err := rv.answers(ctx, r, &v.guard)
	if err != nil {
		return vetted{}, err
	}
	for _, a := range addrs {
		a = canonicalAddr(a)
		if o := v.guard.judge(a); o != nil {
			return vetted{}, o.refuse(r.Host)
		}
		if rv.denied(a, port) {
			return vetted{}, &AddressError{Code: CodeDenyRule, Reason: fmt.Sprintf("%s is at %s, which a deny rule names", r.Host, a)}
		}
		if ap := netip.AddrPortFrom(a, port); !slices.Contains(v.addrs, ap) {
			v.addrs = append(v.addrs, ap)
		}
	}
	if len(v.addrs) == 0 {
		return vetted{}, &AddressError{Code: CodeDNS, Reason: fmt.Sprintf("%s has no address", r.Host)}
	}
	return v, nil
}

func (o *objection) refuse(host string) *AddressError {
	e := &AddressError{Code: o.code, Reason: fmt.Sprintf("%s is at %s, which is special-purpose (%s)", host, o.addr, o.what)}
	if o.open {
		e.Open = netip.PrefixFrom(o.addr, o.addr.BitLen())
	}
	return e
}

// answers finds the addresses of a host: a literal is itself, then the
// policy's static answers, then localhost, which no resolver is asked for, then
// the resolver.
func (rv *resolver) answers(ctx context.Context, r Request, g *guard) ([]netip.Addr, uint16, error) {
	if t, ok := rv.static[r.Host]; ok {
		if t.Port != 0 {
			return []netip.Addr{t.Addr}, t.Port, nil
		}
		return []netip.Addr{t.Addr}, r.Port, nil
	}
	if a, ok := r.literal(); ok {
		return []netip.Addr{a}, r.Port, nil
	}
	if r.Host == "localhost" || strings.HasSuffix(r.Host, ".localhost") {
		return loopback(g), r.Port, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	addrs, err := rv.lookup(ctx, r.Host)
	if err != nil {
		return nil, 0, &AddressError{Code: CodeDNS, Reason: dnsReason(r.Host, err)}
	}
	return addrs, r.Port, nil
}

// loopback returns the loopback addresses that the policy opens. A machine may
// serve localhost on one of the two families only, and the policy may open only
// one; nobody else had a say in this answer, so it is no mixed one. With none
// open the answer is IPv4's, to be refused.
func loopback(g *guard) []netip.Addr {
	var out []netip.Addr
	for _, a := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
		if g.opened(a) {
			out = append(out, a)
		}
	}
	if out == nil {
		out = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	return out
}

// denied says whether a deny rule names the address that a host came out at.
func (rv *resolver) denied(a netip.Addr, port uint16) bool {
	return slices.ContainsFunc(rv.deny, func(d policy.Rule) bool {
		x, _ := d.Host.Addr()
		return x == a && d.MatchPort(port)
	})
}

// dnsReason leaves out the resolver's address and the search list, which are
// the user's and not the client's to know.
func dnsReason(host string, err error) string {
	var de *net.DNSError
	switch {
	case errors.As(err, &de) && de.IsNotFound:
		return host + " does not exist"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &de) && de.IsTimeout:
		return host + " was not resolved in time"
	}
	return host + " was not resolved"
}

// lookupGo asks with Go's resolver. The dot at the end keeps the search list
// out, so that the name that is asked is the name that was judged; a single
// label is left to the search list, which is what such names are for.
func lookupGo(ctx context.Context, host string) ([]netip.Addr, error) {
	if strings.Contains(host, ".") {
		host += "."
	}
	return (&net.Resolver{PreferGo: true}).LookupNetIP(ctx, "ip", host)
}

// ownAddrs remembers this machine's addresses for a moment.
type ownAddrs struct {
	list func() ([]netip.Addr, error)

	mu    sync.Mutex // guards everything below
	addrs []netip.Addr
	until time.Time
}

func (o *ownAddrs) get() ([]netip.Addr, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); now.After(o.until) {
		addrs, err := o.list()
		if err != nil {
			return nil, err
		}
		for i, a := range addrs {
			addrs[i] = canonicalAddr(a)
		}
		o.addrs, o.until = addrs, now.Add(ownFresh)
	}
	return o.addrs, nil
}

func interfaceAddrs() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing the interfaces' addresses: %w", err)
	}
	var out []netip.Addr
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, addr)
			}
		}
	}
	return out, nil
}

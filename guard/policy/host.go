package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// HostPattern matches canonical hosts: one name, one address, or every
// sub-domain of a name. The zero pattern matches nothing.
type HostPattern struct {
	name string     // canonical name, or the address as netip prints it
	addr netip.Addr // valid for an address
	sub  bool       // "*.name"
}

// Match says whether host, which must come from [CanonicalHost], is meant. A
// wildcard matches sub-domains at any depth, never the name itself and never
// an address.
func (p HostPattern) Match(host string) bool {
	if p.name == "" {
		return false
	}
	if !p.sub {
		return host == p.name
	}
	n := len(host) - len(p.name)
	return n > 1 && host[n-1] == '.' && host[n:] == p.name
}

// String returns the canonical spelling.
func (p HostPattern) String() string {
	if p.sub {
		return "*." + p.name
	}
	return p.name
}

// Wildcard says whether the pattern names sub-domains.
func (p HostPattern) Wildcard() bool { return p.sub }

// Addr returns the address of a pattern that is one.
func (p HostPattern) Addr() (netip.Addr, bool) { return p.addr, p.addr.IsValid() }

// covers says whether p matches every host that q matches.
func (p HostPattern) covers(q HostPattern) bool {
	if q.sub {
		return p.sub && (p.name == q.name || strings.HasSuffix(q.name, "."+p.name))
	}
	return q.name != "" && !(p.sub && q.addr.IsValid()) && p.Match(q.name)
}

// ParseHost reads a host pattern as a person writes it: international names
// become A-labels, letters lower case, a trailing dot is cut.
func ParseHost(s string) (HostPattern, error) {
	name, sub := strings.CutPrefix(s, "*.")
	switch {
	case s == "":
		return HostPattern{}, errors.New("the host is empty")
	case s == "*":
		return HostPattern{}, errors.New(`"*" would be every host: name the hosts`)
	case strings.Contains(s, "://"):
		return HostPattern{}, errors.New("want a host, not a URL")
	case strings.Contains(s, "@"):
		return HostPattern{}, errors.New("want a host without a user name")
	case strings.Contains(name, "*"):
		return HostPattern{}, errors.New(`"*" may only be the first label, as in "*.example.com"`)
	}
	if h, port, ok := strings.Cut(name, ":"); ok && allDigits(port) && !strings.Contains(h, "[") && h != "" {
		return HostPattern{}, fmt.Errorf("want a host without a port: write ports: [%s]", port)
	}
	ascii, err := toASCII(name)
	if err != nil {
		return HostPattern{}, err
	}
	host, addr, err := CanonicalHost(ascii)
	if err != nil {
		return HostPattern{}, err
	}
	if sub && addr.IsValid() {
		return HostPattern{}, errors.New("an address has no sub-domains")
	}
	return HostPattern{name: host, addr: addr, sub: sub}, nil
}

// toASCII turns an international name into A-labels; a name of plain ASCII
// without A-labels is left to [CanonicalHost].
func toASCII(name string) (string, error) {
	plain := !strings.Contains(strings.ToLower(name), "xn--")
	for i := 0; i < len(name); i++ {
		plain = plain && name[i] < 0x80
	}
	if plain {
		return name, nil
	}
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil || !utf8.ValidString(name) {
		return "", errors.New("the host is not a valid international domain name")
	}
	return ascii, nil
}

// CanonicalHost returns the one spelling of a host that decisions, dialling
// and logs use: lower case, no trailing dot, an address as netip prints it
// (IPv4 inside IPv6 as IPv4, no brackets), with addr set for an address.
//
// It is strict because the resolver may read a host in more ways than policy
// does: only ASCII letters, digits, hyphens, underscores and dots; no name
// whose last label is a number (127.1, 0x7f.1, 2130706433 are addresses to
// some resolvers); no zone, no percent sign, no empty label.
func CanonicalHost(s string) (host string, addr netip.Addr, err error) {
	inner, bracketed := strings.CutPrefix(s, "[")
	if bracketed {
		if inner, bracketed = strings.CutSuffix(inner, "]"); !bracketed {
			return "", netip.Addr{}, errors.New("the host has an unclosed bracket")
		}
	}
	if bracketed || strings.Contains(inner, ":") {
		return canonicalIPv6(inner)
	}
	if a, err := netip.ParseAddr(inner); err == nil {
		return a.String(), a, nil
	}
	name, err := canonicalName(inner)
	return name, netip.Addr{}, err
}

func canonicalIPv6(s string) (string, netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Zone() != "" {
		return "", netip.Addr{}, errors.New("the host is not a valid IPv6 address without a zone")
	}
	a = a.Unmap()
	return a.String(), a, nil
}

func canonicalName(s string) (string, error) {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > 253 {
		return "", errors.New("the host is empty or longer than 253 bytes")
	}
	b := []byte(s)
	start := 0
	for i := 0; i <= len(b); i++ {
		if i == len(b) || b[i] == '.' {
			if err := checkLabel(b[start:i]); err != nil {
				return "", err
			}
			start = i + 1
			continue
		}
		if 'A' <= b[i] && b[i] <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	name := string(b)
	if numericLabel(name[strings.LastIndexByte(name, '.')+1:]) {
		return "", errors.New("the host's last label is a number: write an address in full")
	}
	return name, nil
}

func checkLabel(label []byte) error {
	if len(label) == 0 || len(label) > 63 {
		return errors.New("the host has a label that is empty or longer than 63 bytes")
	}
	if label[0] == '-' || label[len(label)-1] == '-' {
		return errors.New("the host has a label that starts or ends with a hyphen")
	}
	for _, c := range label {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("the host holds %q", rune(c))
		}
	}
	return nil
}

// numericLabel says whether some resolver takes the last label for a number.
func numericLabel(s string) bool {
	if allDigits(s) {
		return true
	}
	hex, ok := strings.CutPrefix(s, "0x")
	if !ok {
		return false
	}
	for _, c := range hex {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return true
}

func allDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// publicSuffix says whether p is "*.x" where anybody can register a name below
// x, and whether x is run by a registry (as com) or by a company (as github.io).
func (p HostPattern) publicSuffix() (public, registry bool) {
	if !p.sub {
		return false, false
	}
	suffix, icann := publicsuffix.PublicSuffix(p.name)
	// A single label that no list names (localhost, test, corp) is private.
	listed := icann || strings.Contains(suffix, ".")
	return listed && suffix == p.name, icann
}

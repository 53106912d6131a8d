package policy

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Rule is one line of egress.allow or egress.deny. The zero Rule matches
// nothing.
type Rule struct {
	Host    HostPattern
	Methods []string          // upper case; none means every method
	Paths   []PathPattern     // none means every path
	Ports   []uint16          // never empty in an allow rule: 80 and 443 are filled in
	AnyPort bool              // a deny rule without ports denies every port
	Query   map[string]string // each named parameter exactly once with this value; others are free
	Private []netip.Prefix    // special-purpose addresses opened for this rule; metadata addresses never
	Budget  Budget
	Git     *GitRule // set in a rule of the git form, which has no other field but Host
	Pos     Pos
}

// Budget bounds what one rule lets through; zero means no bound.
type Budget struct {
	Requests int64
	BytesOut int64
}

// GitRule allows git's smart protocol for some repositories of a host.
type GitRule struct {
	Fetch []string // "owner/repo"
	Push  []string // "owner/repo refpattern"
}

// NeedsRequest says that the rule asks for more than host and port, so that it
// cannot be decided for an opaque tunnel.
func (r *Rule) NeedsRequest() bool {
	return len(r.Methods) > 0 || len(r.Paths) > 0 || len(r.Query) > 0 || r.Git != nil
}

// MatchPort says whether the rule is about port.
func (r *Rule) MatchPort(port uint16) bool { return r.AnyPort || slices.Contains(r.Ports, port) }

// MatchMethod says whether the rule is about the method, which is compared as
// it is.
func (r *Rule) MatchMethod(method string) bool {
	return len(r.Methods) == 0 || slices.Contains(r.Methods, method)
}

// MatchPath says whether the rule is about path, which must be in canonical
// spelling: no dot segments, no needless escapes.
func (r *Rule) MatchPath(path string) bool {
	return len(r.Paths) == 0 || slices.ContainsFunc(r.Paths, func(p PathPattern) bool { return p.Match(path) })
}

// MatchQuery says whether every parameter the rule names is there exactly once
// with its value.
func (r *Rule) MatchQuery(q url.Values) bool {
	for k, v := range r.Query {
		if got := q[k]; len(got) != 1 || got[0] != v {
			return false
		}
	}
	return true
}

// PathPattern matches paths of URLs by segment: "*" is one segment that is not
// empty, "**" as the last segment is everything below. The zero pattern
// matches nothing.
type PathPattern struct {
	text string
	segs []string // after the leading slash, without a final "**"
	rest bool     // ended in "/**"
}

// String returns the pattern as written.
func (p PathPattern) String() string { return p.text }

// Match says whether path is meant. "/v1/**" is everything that starts with
// "/v1/", not "/v1" itself.
func (p PathPattern) Match(path string) bool {
	rest, ok := strings.CutPrefix(path, "/")
	if p.text == "" || !ok {
		return false
	}
	for i, want := range p.segs {
		seg, after, more := strings.Cut(rest, "/")
		if want != seg && (want != "*" || seg == "") {
			return false
		}
		if last := i == len(p.segs)-1 && !p.rest; more == last {
			return false
		}
		rest = after
	}
	return true
}

package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"agentguard/guard/event"
	"agentguard/guard/policy"
)

// Code is the machine-readable name of why something was refused. It is the
// value of the X-Agentguard-Code header and of the event's "code" detail.
type Code string

// The codes. Programs match on them.
const (
	CodeNoRule       Code = "no_rule"       // no allow rule names the host and port
	CodeNoMatch      Code = "rule_mismatch" // an allow rule names the host and port, but not this request
	CodeDenyRule     Code = "deny_rule"     // a deny rule matches
	CodeOpaque       Code = "opaque_tunnel" // rules of this host look at the request, which a tunnel hides
	CodeAddress      Code = "address"       // an address of the host is special-purpose and not opened
	CodeMetadata     Code = "metadata"      // a cloud metadata service, which no policy opens
	CodeDNS          Code = "dns"           // the host did not resolve
	CodeDial         Code = "dial"          // no address of the host answered
	CodeUpstream     Code = "upstream"      // the origin's answer is not HTTP, or did not come
	CodeBadRequest   Code = "bad_request"   // not well formed, or ambiguous
	CodeNotProxied   Code = "not_proxied"   // a request to the proxy itself
	CodeScheme       Code = "scheme"        // not http; https goes through CONNECT
	CodeHost         Code = "host"          // a spelling of a host that is read in more than one way
	CodeHostMismatch Code = "host_mismatch" // the Host header is not the URL's authority
	CodeMethod       Code = "method"        // a method outside the closed list
	CodePath         Code = "path"          // a path that servers read in more than one way
	CodeNotTLS       Code = "not_tls"       // clear text in a tunnel to port 443
	CodeSNI          Code = "sni"           // the ClientHello names another host, or hides it
	CodeBusy         Code = "busy"          // too many connections
	CodeFault        Code = "fault"         // a fault in the proxy itself, only in events
)

// Decision is the verdict on one request. The zero Decision denies.
type Decision struct {
	Verdict event.Verdict
	Code    Code         // why it is denied; empty when allowed
	Reason  string       // one sentence, lower case
	Rule    *policy.Rule // the rule that decided, nil when none did
	Allow   []string     // policy lines that would allow it, none when no line would

	private []netip.Prefix // special-purpose addresses that Rule and the policy open
}

// ruleset is the policy in the form decisions are made by.
type ruleset struct {
	deny, allow     []policy.Rule
	denyBy, allowBy hostIndex
	private         [][]netip.Prefix // what each allow rule opens, with what the policy opens for all
	query           bool             // some rule looks at queries
}

// compile refuses what this proxy cannot hold a request to: a rule that cannot
// be enforced must not be loaded and ignored.
func compile(e policy.Egress) (ruleset, error) {
	if e.UpstreamProxy != "" || len(e.UpstreamCA) > 0 || len(e.Passthrough) > 0 || e.Ask {
		return ruleset{}, errors.New("egress: upstream_proxy, upstream_ca, passthrough and ask are not supported")
	}
	for _, r := range slices.Concat(e.Deny, e.Allow) {
		if r.Git != nil || r.Budget != (policy.Budget{}) {
			return ruleset{}, fmt.Errorf("%s: git rules and budgets are not supported", r.Pos)
		}
	}
	rs := ruleset{deny: e.Deny, allow: e.Allow, denyBy: indexHosts(e.Deny), allowBy: indexHosts(e.Allow)}
	for _, r := range e.Allow {
		rs.private = append(rs.private, slices.Concat(e.AllowPrivate, r.Private))
	}
	rs.query = slices.ContainsFunc(slices.Concat(e.Deny, e.Allow), func(r policy.Rule) bool { return len(r.Query) > 0 })
	return rs, nil
}

// Decide judges a request by e alone; the addresses of its host are judged
// later, when they are known.
func Decide(e policy.Egress, r Request) Decision {
	rules, err := compile(e)
	if err != nil {
		return Decision{Code: CodeNoRule, Reason: err.Error()}
	}
	return rules.decide(r)
}

func (rs *ruleset) decide(r Request) Decision {
	if r.Host == "" || r.Port == 0 {
		return Decision{Code: CodeBadRequest, Reason: "the request names no host"}
	}
	if metadataName(r.Host) {
		return Decision{Code: CodeMetadata, Reason: "the host is a cloud metadata service, which no policy opens"}
	}
	var q parameters
	if rs.query {
		q = r.parameters()
	}
	var room [16]int
	for _, i := range rs.denyBy.find(r.Host, room[:0]) {
		switch d := &rs.deny[i]; {
		case !denies(d, r, q):
		case r.Tunnel && d.NeedsRequest():
			return Decision{Code: CodeOpaque, Reason: "a deny rule for the host looks at the request, which a tunnel hides", Rule: d}
		default:
			return Decision{Code: CodeDenyRule, Reason: "a deny rule matches", Rule: d}
		}
	}
	var near *policy.Rule // the first rule for this host and port that did not match
	for _, i := range rs.allowBy.find(r.Host, room[:0]) {
		a := &rs.allow[i]
		if !a.Host.Match(r.Host) || !a.MatchPort(r.Port) {
			continue
		}
		if allows(a, r, q) {
			return Decision{Verdict: event.Allowed, Rule: a, private: rs.private[i]}
		}
		if near == nil {
			near = a
		}
	}
	return refusal(r, near)
}

func allows(a *policy.Rule, r Request, q parameters) bool {
	if r.Tunnel {
		return !a.NeedsRequest()
	}
	return a.MatchMethod(r.Method) && a.MatchPath(r.Path) && (len(a.Query) == 0 || q.ok && a.MatchQuery(q.values))
}

// denies reads the request in favour of the rule: what a tunnel hides may be
// what the rule is about, a query that cannot be read matches, and a path
// matches in any spelling that some server takes for it.
func denies(d *policy.Rule, r Request, q parameters) bool {
	if !d.Host.Match(r.Host) || !d.MatchPort(r.Port) {
		return false
	}
	if r.Tunnel {
		return true
	}
	if !d.MatchMethod(r.Method) || !d.MatchPath(r.Path) && !d.MatchPath(loosePath(r.Path)) {
		return false
	}
	for k, v := range d.Query {
		if q.ok && !slices.Contains(q.values[k], v) {
			return false
		}
	}
	return true
}

// refusal is the decision when no rule allows r; near is a rule for the same
// host and port, if there is one.
func refusal(r Request, near *policy.Rule) Decision {
	d := Decision{Code: CodeNoRule, Reason: fmt.Sprintf("no rule allows %s", r.authority()), Allow: allowLines(r, nil)}
	switch {
	case near != nil && r.Tunnel:
		d.Code, d.Rule = CodeOpaque, near
		d.Reason = fmt.Sprintf("the rules for %s ask for methods, paths or a query, which a tunnel hides", r.authority())
	case near != nil:
		d.Code, d.Rule = CodeNoMatch, near
		d.Reason = fmt.Sprintf("no rule for %s allows %s %s", r.authority(), r.Method, r.Path)
	}
	return d
}

// parameters is a query, split; ok is false when servers split it in more than
// one way.
type parameters struct {
	values url.Values
	ok     bool
}

func (r *Request) parameters() parameters {
	if r.Query == "" {
		return parameters{ok: true}
	}
	v, err := url.ParseQuery(r.Query)
	return parameters{v, err == nil && !strings.Contains(r.Query, ";")}
}

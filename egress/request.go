package egress

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"agentguard/guard/policy"
)

// Request is the canonical form of what a client asked for. Every field is in
// the one spelling that is judged, dialled, sent and reported; [ParseRequest]
// makes it. The zero Request is refused.
type Request struct {
	Tunnel    bool   // CONNECT: only Host and Port are known
	Method    string // one of the closed list, upper case
	Host      string // as policy.CanonicalHost gives it
	Port      uint16
	Path      string // canonical, starts with a slash; "" for a tunnel
	Query     string // as sent, without the question mark
	HasQuery  bool   // there was a question mark
	WebSocket bool   // the client asks for an upgrade to websocket
}

// RequestError says why a request is not one that could be judged.
type RequestError struct {
	Code   Code
	Reason string
}

func (e *RequestError) Error() string { return e.Reason }

func bad(code Code, reason string) error { return &RequestError{Code: code, Reason: reason} }

// methods is the closed list: what is not in it is refused, because a server
// could read "get", "GET " or an unknown word in its own way. TRACE is missing
// because it echoes headers.
var methods = map[string]bool{
	"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true,
	"CONNECT":  true,                                                               // a tunnel
	"PROPFIND": true, "PROPPATCH": true, "MKCOL": true, "COPY": true, "MOVE": true, // WebDAV, which git and svn speak
	"LOCK": true, "UNLOCK": true, "REPORT": true, "SEARCH": true, "MERGE": true, "CHECKOUT": true, "MKACTIVITY": true,
	"LIST": true, "QUERY": true, // Vault; the safe method with a body
}

// ParseRequest makes the canonical request of a method and a request target as
// they stand in a request line sent to a proxy: "http://host/path" or, for
// CONNECT, "host:port".
func ParseRequest(method, target string) (Request, error) {
	if !methods[method] {
		return Request{}, bad(CodeMethod, "the method is not one of the known ones, in upper case")
	}
	for i := 0; i < len(target); i++ {
		if c := target[i]; c <= ' ' || c >= 0x7f || c == '\\' || c == '#' {
			return Request{}, bad(CodeBadRequest, "the request target holds a control byte, white space, a backslash, '#' or a byte that is not ASCII")
		}
	}
	if method == "CONNECT" {
		host, port, err := parseAuthority(target, 0)
		return Request{Tunnel: true, Method: method, Host: host, Port: port}, err
	}
	rest, err := cutScheme(target)
	if err != nil {
		return Request{}, err
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	r := Request{Method: method}
	if r.Host, r.Port, err = parseAuthority(rest[:end], 80); err != nil {
		return Request{}, err
	}
	var raw string
	raw, r.Query, r.HasQuery = strings.Cut(rest[end:], "?")
	if r.Path, err = canonicalPath(raw); err != nil {
		return Request{}, err
	}
	return r, nil
}

func cutScheme(target string) (string, error) {
	if strings.HasPrefix(target, "/") || target == "*" {
		return "", bad(CodeNotProxied, "this is a proxy and no server: the request names no host")
	}
	scheme, rest, ok := strings.Cut(target, "://")
	switch {
	case !ok:
		return "", bad(CodeBadRequest, "the request target is no absolute URL")
	case !strings.EqualFold(scheme, "http"):
		return "", bad(CodeScheme, "only http is forwarded; https goes through CONNECT")
	}
	return rest, nil
}

// parseAuthority reads host[:port]. Without a default port the port must be
// there, as in CONNECT.
func parseAuthority(s string, port uint16) (string, uint16, error) {
	if strings.ContainsAny(s, "@%") {
		return "", 0, bad(CodeHost, "the host holds a user name or a percent sign")
	}
	host, digits := s, ""
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, ']') {
		host, digits = s[:i], s[i+1:]
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || n == 0 || digits[0] == '0' {
			return "", 0, bad(CodeHost, "the port is not a number from 1 to 65535")
		}
		port = uint16(n)
	}
	if port == 0 {
		return "", 0, bad(CodeHost, "the port is missing")
	}
	if strings.Contains(host, ":") && host[0] != '[' {
		return "", 0, bad(CodeHost, "an IPv6 address stands in brackets")
	}
	name, _, err := policy.CanonicalHost(host)
	if err != nil {
		return "", 0, bad(CodeHost, err.Error())
	}
	return name, port, nil
}

// checkHost holds a Host header to the request it came with. A CONNECT's may
// leave out the port.
func (r *Request) checkHost(header string) error {
	def := uint16(80)
	if r.Tunnel {
		def = r.Port
	}
	host, port, err := parseAuthority(header, def)
	var re *RequestError
	if errors.As(err, &re) {
		return bad(CodeHostMismatch, "the Host header is no host: "+re.Reason)
	}
	if host != r.Host || port != r.Port {
		return bad(CodeHostMismatch, "the Host header names another host or port than the request")
	}
	return nil
}

// authority is host and port as a URL and a Host header spell them; port 80 is
// left out but for a tunnel.
func (r *Request) authority() string {
	host := r.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if r.Port == 80 && !r.Tunnel {
		return host
	}
	return host + ":" + strconv.Itoa(int(r.Port))
}

// target is the request target sent to the origin.
func (r *Request) target() string {
	if r.HasQuery {
		return r.Path + "?" + r.Query
	}
	return r.Path
}

// subject is the request as events name it: no query, no user name.
func (r *Request) subject() string {
	if r.Tunnel {
		return r.authority()
	}
	return r.Method + " http://" + r.authority() + r.Path
}

// literal returns the address that the host is, if it is one.
func (r *Request) literal() (netip.Addr, bool) {
	a, err := netip.ParseAddr(r.Host)
	return a, err == nil
}

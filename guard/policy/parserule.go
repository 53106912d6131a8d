package policy

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// defaultPorts are what an allow rule without ports opens.
var defaultPorts = [...]uint16{80, 443}

// methods that a rule may name. CONNECT is how a tunnel is asked for and TRACE
// sends headers back, so neither can be allowed.
var methodWords = map[string]string{
	"GET": "GET", "HEAD": "HEAD", "POST": "POST", "PUT": "PUT", "PATCH": "PATCH", "DELETE": "DELETE",
	"OPTIONS": "OPTIONS", "PROPFIND": "PROPFIND", "REPORT": "REPORT", "MKCOL": "MKCOL", "MOVE": "MOVE",
	"COPY": "COPY", "LOCK": "LOCK", "UNLOCK": "UNLOCK",
}

func (w *walker) allowRule(n *yaml.Node, key string) (Rule, bool) {
	r, ok := w.rule(n, key, true)
	if !ok {
		return r, false
	}
	r, err := checkAllow(r)
	if err != nil {
		w.fail(n, key, "%s: %s", key, err)
	}
	return r, err == nil
}

// checkAllow fills in what an allow rule left out and refuses hosts that none
// can open.
func checkAllow(r Rule) (Rule, error) {
	if len(r.Ports) == 0 {
		r.Ports = slices.Clone(defaultPorts[:])
	}
	if addr, isAddr := r.Host.Addr(); isAddr && IsMetadata(addr) {
		return r, fmt.Errorf("%s hands out the machine's credentials and is never reachable", addr)
	}
	if public, registry := r.Host.publicSuffix(); public && registry {
		return r, fmt.Errorf("anybody can register a name below %q: name the domain", r.Host)
	}
	return r, nil
}

func (w *walker) denyRule(n *yaml.Node, key string) (Rule, bool) {
	r, ok := w.rule(n, key, false)
	r.AnyPort = len(r.Ports) == 0
	return r, ok
}

// rule reads one entry of egress.allow or egress.deny.
func (w *walker) rule(n *yaml.Node, key string, allow bool) (Rule, bool) {
	r := Rule{Pos: w.pos(n)}
	before := len(w.errs)
	has := map[string]bool{}
	seen := func(name string, f field) field {
		return func(v *yaml.Node, key string) { has[name] = true; f(v, key) }
	}
	fields := map[string]field{
		"host":    seen("host", func(v *yaml.Node, key string) { r.Host, _ = checked(w, ParseHost)(v, key) }),
		"methods": seen("methods", func(v *yaml.Node, key string) { r.Methods = plain(filled(w, v, key, enum(w, methodWords))) }),
		"paths": seen("paths", func(v *yaml.Node, key string) {
			r.Paths = plain(filled(w, v, key, checked(w, ParsePath)))
		}),
		"ports": seen("ports", func(v *yaml.Node, key string) {
			for _, p := range filled(w, v, key, w.number(math.MaxUint16)) {
				r.Ports = append(r.Ports, uint16(p.v))
			}
		}),
		"query": seen("query", func(v *yaml.Node, key string) { r.Query = w.query(v, key) }),
		"git":   func(v *yaml.Node, key string) { r.Git = w.gitRule(&r, v, key) },
	}
	if allow {
		fields["private"] = seen("private", func(v *yaml.Node, key string) {
			r.Private = plain(filled(w, v, key, checked(w, parsePrefix)))
		})
		fields["budget"] = seen("budget", func(v *yaml.Node, key string) { w.budget(&r, v, key) })
	}
	if !w.mapping(n, key, fields) || len(w.errs) > before {
		return r, false
	}
	switch {
	case r.Git != nil && len(has) > 0:
		w.fail(n, key, "%s: git stands alone, without %v", key, keysOf(has))
	case r.Git == nil && !has["host"]:
		w.fail(n, key, "%s: the host is missing", key)
	}
	return r, len(w.errs) == before
}

// filled reads a list that must not be empty: an empty list of methods could be
// taken for none or for all.
func filled[T any](w *walker, n *yaml.Node, key string, read func(*yaml.Node, string) (T, bool)) []word[T] {
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		w.fail(n, key, "%s is empty: leave it out or name something", key)
	}
	return list(w, n, key, read)
}

func plain[T any](ws []word[T]) []T {
	out := make([]T, len(ws))
	for i, x := range ws {
		out[i] = x.v
	}
	return out
}

func (w *walker) query(n *yaml.Node, key string) map[string]string {
	out := map[string]string{}
	w.pairs(n, key, func(k, v *yaml.Node, key string) {
		if s, ok := w.anyText(v, key); ok {
			out[k.Value] = s
		}
	})
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		w.fail(n, key, "%s is empty: leave it out or name something", key)
	}
	return out
}

func (w *walker) budget(r *Rule, n *yaml.Node, key string) {
	w.mapping(n, key, map[string]field{
		"requests":  func(v *yaml.Node, key string) { r.Budget.Requests, _ = w.number(math.MaxInt64)(v, key) },
		"bytes_out": func(v *yaml.Node, key string) { r.Budget.BytesOut, _ = w.size(v, key) },
	})
}

func (w *walker) gitRule(r *Rule, n *yaml.Node, key string) *GitRule {
	g := &GitRule{}
	w.mapping(n, key, map[string]field{
		"host":  func(v *yaml.Node, key string) { r.Host, _ = checked(w, ParseHost)(v, key) },
		"fetch": func(v *yaml.Node, key string) { g.Fetch = plain(list(w, v, key, w.text)) },
		"push":  func(v *yaml.Node, key string) { g.Push = plain(list(w, v, key, w.text)) },
	})
	if r.Host == (HostPattern{}) {
		w.fail(n, key, "%s: the host is missing", key)
	}
	return g
}

// ParsePath reads a path pattern of a rule.
func ParsePath(s string) (PathPattern, error) {
	rest, ok := strings.CutPrefix(s, "/")
	if !ok {
		return PathPattern{}, errors.New(`a path starts with "/"`)
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '\\' || c == '#' || c == '?' {
			return PathPattern{}, fmt.Errorf("a path cannot hold %q: write it as it is sent, percent-encoded, without a query", rune(c))
		}
	}
	p := PathPattern{text: s, segs: strings.Split(rest, "/")}
	for i, seg := range p.segs {
		last := i == len(p.segs)-1
		switch {
		case seg == "**" && last:
			p.rest = true
		case seg == "**":
			return PathPattern{}, errors.New(`"**" may only be the last segment`)
		case strings.Contains(seg, "*") && seg != "*":
			return PathPattern{}, fmt.Errorf(`"*" stands for a whole segment, not for a part as in %q`, clip(seg))
		case seg == "" && !last:
			return PathPattern{}, errors.New(`a path cannot hold "//"`)
		}
		if err := checkSegment(seg); err != nil {
			return PathPattern{}, err
		}
	}
	if p.rest {
		p.segs = p.segs[:len(p.segs)-1]
	}
	return p, nil
}

// checkSegment refuses spellings that a canonical request never has, so that a
// rule that could never match is told at once.
func checkSegment(seg string) error {
	for i := 0; i < len(seg); i++ {
		if seg[i] != '%' {
			continue
		}
		if i+2 >= len(seg) {
			return errors.New("a path has an unfinished percent escape")
		}
		v, err := strconv.ParseUint(seg[i+1:i+3], 16, 8)
		if err != nil {
			return errors.New("a path has a broken percent escape")
		}
		c := byte(v)
		if c == '-' || c == '.' || c == '_' || c == '~' || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' {
			return fmt.Errorf("a path has a needless escape: write %q", string(rune(c)))
		}
		if seg[i+1:i+3] != strings.ToUpper(seg[i+1:i+3]) {
			return errors.New("a path has an escape in lower case: write it in upper case, as it is sent")
		}
	}
	if name, _, _ := strings.Cut(seg, ";"); name == "." || name == ".." {
		return errors.New(`a path cannot hold "." or ".." segments`)
	}
	return nil
}

// parsePrefix reads a range of addresses, or one address.
func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return checkPrefix(netip.PrefixFrom(a, a.BitLen()))
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, errors.New("want a range of addresses, as 10.0.0.0/8")
	}
	if p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("the address has bits beyond its length: did you mean %q?", p.Masked())
	}
	return checkPrefix(p)
}

func checkPrefix(p netip.Prefix) (netip.Prefix, error) {
	switch {
	case p.Addr().Is4In6():
		return netip.Prefix{}, errors.New("write an IPv4 range as IPv4")
	case p.IsSingleIP() && IsMetadata(p.Addr()):
		return netip.Prefix{}, fmt.Errorf("%s hands out the machine's credentials and is never reachable", p.Addr())
	}
	return p, nil
}

// parseTarget reads ADDR or ADDR:PORT.
func parseTarget(s string) (Target, error) {
	var t Target
	if ap, err := netip.ParseAddrPort(s); err == nil {
		t = Target{ap.Addr().Unmap(), ap.Port()}
		if t.Port == 0 {
			return Target{}, errors.New("port 0 is none")
		}
	} else if a, err := netip.ParseAddr(s); err == nil {
		t = Target{Addr: a.Unmap()}
	} else {
		return Target{}, errors.New("want an address, as 127.0.0.1, 127.0.0.1:8080 or [::1]:8080")
	}
	switch {
	case t.Addr.Zone() != "":
		return Target{}, errors.New("an address with a zone is not supported")
	case IsMetadata(t.Addr):
		return Target{}, fmt.Errorf("%s hands out the machine's credentials and is never reachable", t.Addr)
	}
	return t, nil
}

// proxyURL checks the URL of an upstream proxy. The URL may hold a password,
// so no error repeats it.
func proxyURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || path.Clean("/"+u.Path) != "/" || u.RawQuery != "" {
		return "", errors.New("want a URL, as http://proxy.example.com:3128")
	}
	return s, nil
}

// checkDays reads a number of days.
func checkDays(s string) (string, error) {
	digits, ok := strings.CutSuffix(s, "d")
	if n, err := strconv.Atoi(digits); !ok || err != nil || n < 1 || !allDigits(digits) {
		return "", errors.New("want a number of days, as 30d")
	}
	return s, nil
}

package egress

import (
	"net/http"
	"net/textproto"
	"strings"
)

// hopByHop are the headers that belong to one connection. They are dropped in
// both directions, and those that are needed are made anew.
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Http2-Settings": true,
	"Content-Length": true, // the framing is written by us
	"Host":           true, // from the canonical request
	"Alt-Svc":        true, // points at ways around the proxy
}

// dropped says whether a header, named as net/http spells it, goes no further.
// An underscore counts as a hyphen, because servers that make variables of
// headers do not tell them apart.
func dropped(name string) bool {
	if strings.Contains(name, "_") {
		name = textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
	}
	return hopByHop[name] || strings.HasPrefix(name, "Proxy-")
}

// foldName is a header's name as such servers see it.
func foldName(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// forwarded returns the headers that go on, and leaves h alone.
func forwarded(h http.Header) http.Header {
	named := connectionNames(h)
	out := make(http.Header, len(h)+1)
next:
	for name, values := range h {
		if dropped(name) {
			continue
		}
		for _, n := range named {
			if strings.EqualFold(n, name) {
				continue next
			}
		}
		out[name] = values
	}
	return out
}

// connectionNames returns the names listed in Connection headers, in canonical
// form.
func connectionNames(h http.Header) []string {
	var names []string
	for _, v := range h["Connection"] {
		for _, n := range strings.Split(v, ",") {
			if n = textproto.TrimString(n); n != "" {
				names = append(names, textproto.CanonicalMIMEHeaderKey(n))
			}
		}
	}
	return names
}

func hasToken(h http.Header, name, token string) bool {
	for _, v := range h[name] {
		for _, t := range strings.Split(v, ",") {
			if strings.EqualFold(textproto.TrimString(t), token) {
				return true
			}
		}
	}
	return false
}

// wantsWebSocket says whether a request is a well-formed opening of a
// websocket. Every other Upgrade is dropped, since after its 101 nobody could
// say what the bytes mean.
func wantsWebSocket(req *http.Request) bool {
	up := req.Header["Upgrade"]
	return req.Method == "GET" && req.ProtoAtLeast(1, 1) && req.ContentLength == 0 &&
		len(up) == 1 && strings.EqualFold(textproto.TrimString(up[0]), "websocket") &&
		hasToken(req.Header, "Connection", "upgrade") && len(req.Header["Sec-Websocket-Key"]) == 1
}

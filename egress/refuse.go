package egress

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// refusalHeader carries the [Code] of a refusal.
const refusalHeader = "X-Agentguard-Code"

// answer is what a client is told: never another rule than the one that
// decided, never a secret.
type answer struct {
	Status  int      `json:"-"`
	Code    Code     `json:"code"`
	Request string   `json:"request,omitempty"`
	Reason  string   `json:"reason"`
	Rule    string   `json:"rule,omitempty"`
	Allow   []string `json:"allow,omitempty"`
}

// statusOf maps a code to the HTTP status: 400 for what nobody could judge,
// 502 for what failed beyond us, 403 for policy.
func statusOf(c Code) int {
	switch c {
	case CodeBadRequest, CodeNotProxied, CodeScheme, CodeHost, CodeHostMismatch, CodeMethod, CodePath:
		return http.StatusBadRequest
	case CodeDNS, CodeDial, CodeUpstream:
		return http.StatusBadGateway
	case CodeBusy:
		return http.StatusServiceUnavailable
	}
	return http.StatusForbidden
}

// statusLine gives the words of the status line: many clients show nothing else of
// an answer to CONNECT.
func statusLine(status int) string {
	switch status {
	case http.StatusForbidden:
		return "403 Forbidden by agentguard policy"
	case http.StatusBadRequest:
		return "400 Refused by agentguard"
	}
	return strconv.Itoa(status) + " " + http.StatusText(status) + " (agentguard)"
}

// bytes is the whole answer on the wire. closing says that the connection ends
// with it.
func (a *answer) bytes(r *http.Request, closing bool) []byte {
	body, kind := a.text(), "text/plain; charset=utf-8"
	if r != nil && strings.Contains(r.Header.Get("Accept"), "json") {
		kind = "application/json"
		body, _ = json.Marshal(map[string]*answer{"agentguard": a}) // strings and a number cannot fail
		body = append(body, '\n')
	}
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %s\r\n%s: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n",
		statusLine(a.Status), refusalHeader, a.Code, kind, len(body))
	if closing {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	if r == nil || r.Method != http.MethodHead {
		b.Write(body)
	}
	return []byte(b.String())
}

func (a *answer) text() []byte {
	var b strings.Builder
	b.WriteString("agentguard refused this")
	if a.Request != "" {
		b.WriteString(": " + a.Request)
	}
	fmt.Fprintf(&b, "\nwhy: %s", a.Reason)
	if a.Rule != "" {
		fmt.Fprintf(&b, "\nrule: %s", a.Rule)
	}
	fmt.Fprintf(&b, "\ncode: %s\n", a.Code)
	if len(a.Allow) > 0 {
		b.WriteString("The person who owns this machine can allow it in .agentguard.yaml:\n" + strings.Join(a.Allow, "\n") + "\n")
	}
	return []byte(b.String())
}

// allowLines are the lines of a policy that would allow r, and nothing more.
// open is an address to open, when that is what is missing. A path with a star
// gets no advice, because in a rule the star would be every path.
func allowLines(r Request, open *netip.Prefix) []string {
	if strings.Contains(r.Path, "*") {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "    - {host: %s", yamlWord(r.Host))
	if !r.Tunnel {
		fmt.Fprintf(&b, ", methods: [%s], paths: [%s]", r.Method, yamlWord(r.Path))
	}
	if r.Port != 80 && r.Port != 443 {
		fmt.Fprintf(&b, ", ports: [%d]", r.Port)
	}
	if open != nil {
		fmt.Fprintf(&b, ", private: [%s]", yamlWord(open.String()))
	}
	b.WriteString("}")
	return []string{"egress:", "  allow:", b.String()}
}

// yamlWord quotes what would not be one plain word inside a flow sequence.
func yamlWord(s string) string {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._/-", c) >= 0) {
			return `"` + s + `"`
		}
	}
	return s
}

// busy refuses a client when there are too many. The bytes fit any socket's
// buffer; the deadline is for the one that has none.
func busy(c net.Conn) {
	a := answer{Status: statusOf(CodeBusy), Code: CodeBusy, Reason: "too many connections at a time"}
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Write(a.bytes(nil, true)) // the client is refused in any case
	_ = c.Close()
}

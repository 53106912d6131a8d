package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"agentguard/egress"
	"agentguard/guard/policy"
)

// The names of the proxy's check exist nowhere.
const (
	doctorAllowed = "allowed.agentguard.test"
	doctorDenied  = "denied.agentguard.test"
	doctorWord    = "agentguard doctor"
	doctorWait    = 5 * time.Second
)

// lookProxy serves a proxy and an origin on loopback, and asks for a host that
// its rules allow and for one that they do not.
func lookProxy(e *examination) Diagnosis {
	err := tryProxy(e.ctx)
	if err != nil {
		return Diagnosis{Standing: Finding, Found: err.Error(), Follows: "a run reaches no host, or one too many", Mend: []string{"look for what keeps programs from talking to each other on 127.0.0.1 (a local firewall, a security module)"}}
	}
	return Diagnosis{Standing: Fine, Found: "lets an allowed host through and refuses another, tried on loopback"}
}

func tryProxy(ctx context.Context) (err error) {
	origin, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening on loopback: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: doctorWait, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, doctorWord) // a client that is gone is no concern
	})}
	go func() { _ = server.Serve(origin) }() // ends with Close
	defer func() { err = errors.Join(err, server.Close()) }()

	at := origin.Addr().(*net.TCPAddr).AddrPort()
	rules, err := doctorRules(at)
	if err != nil {
		return err
	}
	proxy, err := egress.New(egress.Config{Policy: rules})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening on loopback: %w", err)
	}
	go func() { _ = proxy.Serve(l) }() // ends with Close

	status, body, err := fetchThrough(ctx, l.Addr().String(), fmt.Sprintf("http://%s:%d/", doctorAllowed, at.Port()))
	if err != nil || status != http.StatusOK || body != doctorWord {
		return fmt.Errorf("an allowed host: status %d, %w", status, orWrong(err))
	}
	status, _, err = fetchThrough(ctx, l.Addr().String(), fmt.Sprintf("http://%s:%d/", doctorDenied, at.Port()))
	if err != nil || status != http.StatusForbidden {
		return fmt.Errorf("a host that no rule allows: status %d, %w", status, orWrong(err))
	}
	return nil
}

func orWrong(err error) error {
	if err == nil {
		err = errors.New("not the expected answer")
	}
	return err
}

// doctorRules allow one of two names that both lead to the origin.
func doctorRules(origin netip.AddrPort) (policy.Egress, error) {
	host, err := policy.ParseHost(doctorAllowed)
	if err != nil {
		return policy.Egress{}, err
	}
	to := policy.Target{Addr: origin.Addr(), Port: origin.Port()}
	return policy.Egress{
		Allow:        []policy.Rule{{Host: host, Ports: []uint16{origin.Port()}}},
		AllowPrivate: []netip.Prefix{netip.PrefixFrom(origin.Addr(), 32)},
		Resolve:      map[string]policy.Target{doctorAllowed: to, doctorDenied: to},
	}, nil
}

func fetchThrough(ctx context.Context, proxy, address string) (status int, body string, err error) {
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy})}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, doctorWait)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", err
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	return answer.StatusCode, string(b), err
}

package egress

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"agentguard/guard/event"
	"agentguard/guard/policy"
)

func TestForwardRefusesUnknownHost(t *testing.T) {
	o := startOrigin(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	p := start(t, open(t, o))
	r := send(t, p.addr, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n")
	if r.status != 403 || r.code != CodeNoRule || !strings.Contains(r.body, "{host: example.com, methods: [GET], paths: [/]}") {
		t.Errorf("got %+v", r)
	}
	if o.accepted() != 0 {
		t.Error("something was dialled")
	}
}

func TestRefusalAnswers(t *testing.T) {
	o := startOrigin(t, func(net.Conn) {})
	c := open(t, o)
	c.Policy.AllowPrivate = nil
	p := start(t, c)
	for _, tt := range []struct {
		name, raw string
		status    int
		code      Code
		body      string
	}{
		{"address", "GET " + o.at("/") + " HTTP/1.1\r\nHost: " + o.host() + "\r\n\r\n", 403, CodeAddress, "private: [127.0.0.1/32]"},
		{"json", "GET http://x.test/ HTTP/1.1\r\nHost: x.test\r\nAccept: application/json\r\n\r\n", 403, CodeNoRule, `{"agentguard":{"code":"no_rule"`},
		{"head", "HEAD http://x.test/ HTTP/1.1\r\nHost: x.test\r\n\r\n", 403, CodeNoRule, ""},
		{"body", "POST http://x.test/ HTTP/1.1\r\nHost: x.test\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000), 403, CodeNoRule, "methods: [POST]"},
		{"connect", "CONNECT x.test:443 HTTP/1.1\r\nHost: x.test:443\r\n\r\n", 403, CodeNoRule, "- {host: x.test}\n"},
		{"origin form", "GET / HTTP/1.1\r\nHost: " + p.addr + "\r\n\r\n", 400, CodeNotProxied, "no server"},
		{"garbage", "\x16\x03\x01\x02\x00\x01\r\n\r\n", 400, CodeBadRequest, "not HTTP/1"},
		{"secrets in the query", "GET http://x.test/?token=hunter2 HTTP/1.1\r\nHost: x.test\r\n\r\n", 403, CodeNoRule, "GET http://x.test/\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := send(t, p.addr, tt.raw)
			if r.status != tt.status || r.code != tt.code || !strings.Contains(r.body, tt.body) || strings.Contains(r.body, "hunter2") {
				t.Errorf("got %+v", r)
			}
			if tt.body == "" && r.body != "" {
				t.Errorf("HEAD got a body %q", r.body)
			}
		})
	}
	if o.accepted() != 0 {
		t.Error("something was dialled")
	}
	for _, e := range p.events.Events() {
		if e.Verdict != event.Denied || e.Detail["code"] == "" || strings.Contains(fmt.Sprint(e), "hunter2") {
			t.Errorf("event %+v", e)
		}
	}
}

func TestForwardReports(t *testing.T) {
	rec := &recorder{}
	o := startOrigin(t, rec.serve)
	p := start(t, open(t, o))
	send(t, p.addr, "GET "+o.at("/a?token=hunter2")+" HTTP/1.1\r\nHost: "+o.host()+"\r\n\r\n")
	got := p.events.Events()
	if len(got) != 1 {
		t.Fatalf("%d events, want 1: %+v", len(got), got)
	}
	e := got[0]
	if e.Kind != event.EgressHTTP || e.Verdict != event.Allowed || e.Subject != "GET "+o.at("/a") || e.Rule != "test.yaml:1:1" || e.Detail["addr"] != o.addr {
		t.Errorf("event %+v", e)
	}
}

func TestNoAdviceThatWouldWiden(t *testing.T) {
	r, err := ParseRequest("GET", "http://example.com/*")
	if err != nil {
		t.Fatal(err)
	}
	if d := Decide(policy.Egress{}, r); d.Verdict != event.Denied || d.Allow != nil {
		t.Errorf("%+v", d)
	}
}

func TestTooManyConnections(t *testing.T) {
	o := startOrigin(t, func(net.Conn) {})
	p := start(t, open(t, o))
	for range connections() {
		dialRaw(t, p.addr)
	}
	r := send(t, p.addr, "") // the answer comes unasked
	if r.status != 503 || r.code != CodeBusy {
		t.Errorf("got %+v", r)
	}
}

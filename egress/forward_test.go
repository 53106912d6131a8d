package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"agentguard/guard/policy"
)

// open is a policy that lets everything at an origin through.
func open(t testing.TB, o *origin) Config {
	return Config{Policy: policy.Egress{Allow: []policy.Rule{rule(t, "localhost", o.port)}, AllowPrivate: loopbackOpen}}
}

func TestForwardGet(t *testing.T) {
	o := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", r.Method, r.Host, r.RequestURI)
	})
	p := start(t, open(t, o))
	resp, err := viaProxy(t, p.addr).Get(o.at("/a/%7eb?x=1&y=%20"))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if want := "GET " + o.host() + " /a/~b?x=1&y=%20"; string(b) != want {
		t.Errorf("the origin saw %q, want %q", b, want)
	}
}

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

func TestForwardJudgesPipelinedRequests(t *testing.T) {
	rec := &recorder{}
	o := startOrigin(t, rec.serve)
	p := start(t, open(t, o))
	c := dialRaw(t, p.addr)
	ok := "GET " + o.at("/ok") + " HTTP/1.1\r\nHost: " + o.host() + "\r\n\r\n"
	evil := strings.ReplaceAll(strings.ReplaceAll(ok, "localhost", "127.0.0.1"), "/ok", "/evil")
	if _, err := io.WriteString(c, ok+evil+ok); err != nil {
		t.Fatal(err)
	}
	br := bufio.NewReader(c)
	for i, want := range []int{200, 403, 200} {
		r, err := readReply(br, false)
		if err != nil || r.status != want {
			t.Fatalf("answer %d: %+v, %v; want status %d", i, r, err, want)
		}
	}
	if got := rec.take(); strings.Contains(got, "/evil") || strings.Count(got, "/ok") != 2 {
		t.Errorf("the origin got %q", got)
	}
}

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

func TestForwardBadAnswer(t *testing.T) {
	for _, tt := range []struct{ name, answer string }{
		{"nothing", ""},
		{"not HTTP", "SSH-2.0-OpenSSH\r\n"},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"},
		{"endless headers", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 2*maxHead) + "\r\n\r\n"},
		{"switch unasked", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"},
		{"endless interim", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 50)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := startOrigin(t, func(c net.Conn) {
				_, _ = http.ReadRequest(bufio.NewReader(c))
				_, _ = io.WriteString(c, tt.answer)
			})
			p := start(t, open(t, o))
			c := dialRaw(t, p.addr)
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", o.at("/"), o.host())
			b, err := io.ReadAll(c)
			if tt.name == "endless interim" {
				if n := strings.Count(string(b), "100 Continue"); n > maxInterim {
					t.Errorf("%d interim answers passed", n)
				}
				return
			}
			if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 502 ") || !strings.Contains(string(b), refusalHeader+": upstream") {
				t.Errorf("got %q, %v", b, err)
			}
		})
	}
}

func TestForwardStripsHopByHop(t *testing.T) {
	var got http.Header
	o := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		h := w.Header()
		h.Set("Keep-Alive", "timeout=5")
		h.Set("Proxy-Authenticate", "Basic")
		h.Set("Connection", "X-Per-Hop")
		h.Set("X-Per-Hop", "1")
		h.Set("Alt-Svc", `h3=":443"`)
		h.Set("X-End", "1")
	})
	p := start(t, open(t, o))
	r := send(t, p.addr, "GET "+o.at("/")+" HTTP/1.1\r\nHost: "+o.host()+"\r\n"+
		"Proxy-Authorization: Basic c2VjcmV0\r\nproxy_authorization: x\r\nProxy-Connection: keep-alive\r\nPROXY-Foo: x\r\n"+
		"Connection: keep-alive, X-Named , TE\r\nX-Named: 1\r\nx-NAMED: 2\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\n"+
		"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nTrailer: X-T\r\nX-End: 1\r\nAuthorization: Bearer t\r\n\r\n")
	for _, n := range []string{"Proxy-Authorization", "Proxy_authorization", "Proxy-Connection", "Proxy-Foo", "Connection", "X-Named", "Keep-Alive", "Te", "Upgrade", "Http2-Settings", "Trailer"} {
		if v, ok := got[n]; ok {
			t.Errorf("the origin got %s: %q", n, v)
		}
	}
	if got.Get("X-End") != "1" || got.Get("Authorization") != "Bearer t" {
		t.Errorf("end-to-end headers are lost: %v", got)
	}
	if r.status != 200 || r.header.Get("X-End") != "1" {
		t.Fatalf("got %+v", r)
	}
	for _, n := range []string{"Keep-Alive", "Proxy-Authenticate", "Connection", "X-Per-Hop", "Alt-Svc"} {
		if v, ok := r.header[n]; ok {
			t.Errorf("the client got %s: %q", n, v)
		}
	}
}

func TestForwardFollowsNoRedirect(t *testing.T) {
	o := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/secret", http.StatusFound)
	})
	p := start(t, open(t, o))
	r := send(t, p.addr, "GET "+o.at("/")+" HTTP/1.1\r\nHost: "+o.host()+"\r\n\r\n")
	if r.status != 302 || r.header.Get("Location") != "http://127.0.0.1:1/secret" || o.accepted() != 1 {
		t.Errorf("got %+v after %d connections", r, o.accepted())
	}
}

func TestForwardHead(t *testing.T) {
	o := httpOrigin(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "12345") })
	p := start(t, open(t, o))
	c := dialRaw(t, p.addr)
	br := bufio.NewReader(c)
	for range 2 {
		fmt.Fprintf(c, "HEAD %s HTTP/1.1\r\nHost: %s\r\n\r\n", o.at("/"), o.host())
		r, err := readReply(br, true)
		if err != nil || r.status != 200 || r.header.Get("Content-Length") != "12345" || r.close {
			t.Fatalf("got %+v, %v", r, err)
		}
	}
}

// An origin that hangs up between two requests is no error of the second.
func TestForwardReconnects(t *testing.T) {
	served := make(chan struct{}, 1)
	o := startOrigin(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") // keeps alive, and does not
		}
		_ = c.Close()
		served <- struct{}{}
	})
	p := start(t, open(t, o))
	c := dialRaw(t, p.addr)
	br := bufio.NewReader(c)
	for i := range 3 {
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", o.at("/"), o.host())
		if r, err := readReply(br, false); err != nil || r.body != "ok" {
			t.Fatalf("request %d: %+v, %v", i, r, err)
		}
		<-served
	}
	if n := o.accepted(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

// Bytes that an origin sends unasked must not answer the next request.
func TestForwardUnaskedAnswerIsDropped(t *testing.T) {
	o := startOrigin(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		for {
			if _, err := http.ReadRequest(br); err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
		}
	})
	p := start(t, open(t, o))
	c := dialRaw(t, p.addr)
	br := bufio.NewReader(c)
	for i := range 3 {
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", o.at("/"), o.host())
		if r, err := readReply(br, false); err != nil || r.body != "ok" {
			t.Fatalf("request %d: %+v, %v", i, r, err)
		}
	}
}

// A client that hangs up is noticed while the origin thinks.
func TestForwardClientGone(t *testing.T) {
	asked, over := make(chan struct{}), make(chan struct{})
	o := startOrigin(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		_, _ = http.ReadRequest(br)
		close(asked)
		_, _ = br.Peek(1) // until the proxy hangs up
		close(over)
	})
	p := start(t, open(t, o))
	c := dialRaw(t, p.addr)
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", o.at("/"), o.host())
	<-asked
	_ = c.Close()
	<-over
}

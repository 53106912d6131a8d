package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"agentguard/guard/event"
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

func TestForwardStreamsAtOnce(t *testing.T) {
	next := make(chan struct{})
	o := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-next: // the client has seen it
			case <-r.Context().Done():
				return
			}
		}
	})
	p := start(t, open(t, o))
	resp, err := viaProxy(t, p.addr).Get(o.at("/sse"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	br := bufio.NewReader(resp.Body)
	for i := range 3 {
		line, err := br.ReadString('\n')
		if want := fmt.Sprintf("data: %d\n", i); err != nil || line != want {
			t.Fatalf("got %q, %v, want %q", line, err, want)
		}
		_, _ = br.ReadString('\n')
		next <- struct{}{}
	}
	if rest, err := io.ReadAll(br); err != nil || len(rest) > 0 {
		t.Errorf("the end: %q, %v", rest, err)
	}
}

// A request's body streams too, while the answer comes: neither side waits.
func TestForwardStreamsBothWays(t *testing.T) {
	o := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		br := bufio.NewReader(r.Body)
		for {
			line, err := br.ReadString('\n')
			if err != nil {
				return
			}
			fmt.Fprint(w, "echo "+line)
			_ = rc.Flush()
		}
	})
	p := start(t, open(t, o))
	body, in := io.Pipe()
	req, _ := http.NewRequestWithContext(t.Context(), "POST", o.at("/"), body)
	go fmt.Fprintln(in, "line 0")
	resp, err := viaProxy(t, p.addr).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	br := bufio.NewReader(resp.Body)
	for i := range 4 {
		line, err := br.ReadString('\n')
		if want := fmt.Sprintf("echo line %d\n", i); err != nil || line != want {
			t.Fatalf("got %q, %v, want %q", line, err, want)
		}
		if i < 3 {
			fmt.Fprintf(in, "line %d\n", i+1)
		}
	}
	_ = in.Close()
	if _, err := io.ReadAll(br); err != nil {
		t.Errorf("the end: %v", err)
	}
}

func TestForwardBodies(t *testing.T) {
	const size = 8 << 20
	o := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Got", strings.TrimSpace(fmt.Sprintln(n, err, r.ContentLength, r.Trailer.Get("X-Sum"))))
		if r.URL.Query().Get("sized") != "" {
			w.Header().Set("Content-Length", strconv.Itoa(size))
		}
		w.Header().Set("Trailer", "X-After")
		if _, err := io.CopyN(w, zeros{}, size); err != nil {
			t.Errorf("answering: %v", err)
		}
		w.Header().Set("X-After", "yes")
	})
	p := start(t, open(t, o))
	client := viaProxy(t, p.addr)
	for _, tt := range []struct {
		name    string
		body    io.Reader
		query   string
		want    string
		trailer string
	}{
		{"sized", io.LimitReader(zeros{}, size), "?sized=1", "8388608 <nil> 8388608", ""},
		{"chunked", io.LimitReader(zeros{}, size), "", "8388608 <nil> -1 sum", "yes"},
		{"none", nil, "", "0 <nil> 0", "yes"},
		{"empty", http.NoBody, "", "0 <nil> 0", "yes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, _ := http.NewRequestWithContext(t.Context(), "POST", o.at("/"+tt.query), tt.body)
			if tt.name == "sized" {
				req.ContentLength = size
			}
			if tt.name == "chunked" {
				req.Trailer = http.Header{"X-Sum": {"sum"}}
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if n != size || err != nil {
				t.Errorf("answer of %d bytes, %v", n, err)
			}
			if got := resp.Header.Get("X-Got"); got != tt.want {
				t.Errorf("the origin got %q, want %q", got, tt.want)
			}
			if got := resp.Trailer.Get("X-After"); got != tt.trailer {
				t.Errorf("trailer %q, want %q", got, tt.trailer)
			}
		})
	}
	if n := o.accepted(); n != 1 {
		t.Errorf("%d connections to the origin for requests on one, want 1", n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestForwardExpectContinue(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
	}{{"wanted", 200}, {"not wanted", 417}} {
		t.Run(tt.name, func(t *testing.T) {
			o := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
				if tt.status != 200 {
					w.Header().Set("Connection", "close")
					w.WriteHeader(tt.status)
					return
				}
				b, _ := io.ReadAll(r.Body) // makes the server say 100
				_, _ = w.Write(b)
			})
			p := start(t, open(t, o))
			c := dialRaw(t, p.addr)
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", o.at("/"), o.host())
			br := bufio.NewReader(c)
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tt.status != 200 {
				if resp.StatusCode != tt.status || !resp.Close {
					t.Errorf("got %v, want %d and the end", resp.Status, tt.status)
				}
				return
			}
			if resp.StatusCode != 100 {
				t.Fatalf("got %v before the body, want 100", resp.Status)
			}
			_, _ = io.WriteString(c, "hello")
			if r, err := readReply(br, false); err != nil || r.status != 200 || r.body != "hello" {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

func TestForwardOldClient(t *testing.T) {
	o := httpOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, r.Header["Expect"])
		w.(http.Flusher).Flush() // chunked
		fmt.Fprint(w, " end")
	})
	p := start(t, open(t, o))
	c := dialRaw(t, p.addr)
	fmt.Fprintf(c, "GET %s HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", o.at("/"))
	b, err := io.ReadAll(c)
	head, body, _ := strings.Cut(string(b), "\r\n\r\n")
	if err != nil || body != "HTTP/1.1[] end" || strings.Contains(strings.ToLower(head), "transfer-encoding") {
		t.Errorf("got %q, %v", b, err)
	}
}

// An answer that breaks off must not look whole, least of all to a client that
// knows its end by the end of the connection.
func TestForwardBrokenAnswer(t *testing.T) {
	for _, tt := range []struct{ name, answer, version string }{
		{"sized", "Content-Length: 100\r\n\r\nshort", "1.1"},
		{"chunked", "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", "1.1"},
		{"chunked to old", "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", "1.0"},
		{"sized to old", "Content-Length: 100\r\n\r\nshort", "1.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := startOrigin(t, func(c net.Conn) {
				_, _ = http.ReadRequest(bufio.NewReader(c))
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+tt.answer)
			})
			p := start(t, open(t, o))
			c := dialRaw(t, p.addr)
			fmt.Fprintf(c, "GET %s HTTP/%s\r\nHost: %s\r\n\r\n", o.at("/"), tt.version, o.host())
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				return // the reset came first
			}
			if b, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("took %q for the whole answer", b)
			}
		})
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

func TestForwardWebSocket(t *testing.T) {
	const ask = "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	for _, tt := range []struct {
		name, answer string
		tunnel       bool
		status       int
	}{
		{"agreed", "101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", true, 101},
		{"wrong accept", "101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n", false, 502},
		{"other protocol", "101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", false, 502},
		{"refused", "403 No\r\nContent-Length: 0\r\n\r\n", false, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rest := make(chan string, 1)
			o := startOrigin(t, func(c net.Conn) {
				br := bufio.NewReader(c)
				if _, err := http.ReadRequest(br); err != nil {
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 "+tt.answer)
				if tt.tunnel {
					_, _ = io.WriteString(c, "early ")
				}
				b, _ := io.ReadAll(br)
				rest <- string(b)
				_, _ = io.WriteString(c, "late")
			})
			p := start(t, open(t, o))
			c := dialRaw(t, p.addr)
			// What is pipelined behind the request is never sent on before a 101.
			evil := "GET http://127.0.0.1:1/evil HTTP/1.1\r\nHost: 127.0.0.1:1\r\nConnection: close\r\n\r\n"
			fmt.Fprintf(c, ask+evil, o.at("/ws"), o.host())
			_ = c.CloseWrite()
			br := bufio.NewReader(c)
			resp, err := http.ReadResponse(br, nil)
			if err != nil || resp.StatusCode != tt.status {
				t.Fatalf("got %v, %v, want %d", resp, err, tt.status)
			}
			if !tt.tunnel {
				if got := <-rest; got != "" {
					t.Errorf("the origin got %q without a tunnel", got)
				}
				return
			}
			if got := <-rest; got != evil {
				t.Errorf("the origin got %q through the tunnel, want what was sent", got)
			}
			if b, err := io.ReadAll(br); string(b) != "early late" || err != nil {
				t.Errorf("got %q, %v through the tunnel", b, err)
			}
		})
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

func TestTooManyConnections(t *testing.T) {
	o := startOrigin(t, func(net.Conn) {})
	p := start(t, open(t, o))
	for range maxConns {
		dialRaw(t, p.addr)
	}
	r := send(t, p.addr, "") // the answer comes unasked
	if r.status != 503 || r.code != CodeBusy {
		t.Errorf("got %+v", r)
	}
}

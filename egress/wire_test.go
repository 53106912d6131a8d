package egress

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"agentguard/guard/event"
)

// wire is a proxy with a rule for one host and path, a recorder behind it, and
// what the proxy said it let through.
type wire struct {
	proxy *running
	rec   *wireRecorder
	host  string // as clients name the origin
	addr  string // where it is
	said  *allowedSink
}

// allowedSink keeps the subjects of what was allowed.
type allowedSink struct {
	mu       sync.Mutex
	subjects []string
}

func (a *allowedSink) Report(e event.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.Verdict == event.Allowed && e.Detail["code"] == "" {
		a.subjects = append(a.subjects, e.Subject)
	}
}

func (a *allowedSink) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.subjects
	a.subjects = nil
	return s
}

// wireRecorder keeps what came on each connection, and answers every request.
type wireRecorder struct {
	mu    sync.Mutex // guards everything below
	conns []*bytes.Buffer
	live  int
	idle  sync.Cond // live became 0
}

func (w *wireRecorder) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.live += n; w.live == 0 {
		w.idle.Broadcast()
	}
}

func (w *wireRecorder) serve(c net.Conn) {
	defer w.count(-1)
	buf := &bytes.Buffer{}
	w.mu.Lock()
	w.conns = append(w.conns, buf)
	w.mu.Unlock()
	br := bufio.NewReader(io.TeeReader(c, buf)) // read by others when live is 0
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			break
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			break
		}
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
			break
		}
	}
	_, _ = io.Copy(io.Discard, br) // what is no request is kept too
}

// take returns what came so far. A connection of its own, behind all others in
// the queue, makes sure that those have been accepted.
func (w *wireRecorder) take(t *testing.T, addr string) [][]byte {
	last := dialRaw(t, addr)
	_ = last.CloseWrite()
	_, _ = io.Copy(io.Discard, last) // until it was served
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.live > 0 {
		w.idle.Wait()
	}
	var out [][]byte
	for _, b := range w.conns {
		if b.Len() > 0 {
			out = append(out, b.Bytes())
		}
	}
	w.conns = nil
	return out
}

func newWire(t testing.TB) *wire {
	w := &wire{rec: &wireRecorder{}, said: &allowedSink{}}
	w.rec.idle.L = &w.rec.mu
	o := startOriginHook(t, func() { w.rec.count(1) }, w.rec.serve)
	w.host, w.addr = o.host(), o.addr
	e := load(t, fmt.Sprintf("version: 1\negress:\n  allow:\n    - {host: localhost, ports: [%d], methods: [GET, POST], paths: [\"/v1/**\"]}\n", o.port))
	e.AllowPrivate = loopbackOpen
	w.proxy = start(t, Config{Policy: e, Sink: w.said})
	return w
}

// try sends raw bytes, waits for the end, and holds what the origin got against
// the rule and against what was said to be allowed.
func (w *wire) try(t *testing.T, raw []byte) {
	t.Helper()
	c := dialRaw(t, w.proxy.addr)
	if _, err := c.Write(raw); err != nil {
		return
	}
	_ = c.CloseWrite()
	_, _ = io.Copy(io.Discard, c) // to the end of the connection; a reset is an end too
	_ = c.Close()
	said := w.said.take()
	var got []string
	for _, conn := range w.rec.take(t, w.addr) {
		got = append(got, w.check(t, raw, conn)...)
	}
	if strings.Join(got, "\n") != strings.Join(said, "\n") {
		t.Fatalf("%q:\nthe origin got %q\nallowed were   %q", raw, got, said)
	}
}

// check reads what one upstream connection carried as strictly as it can and
// returns the subjects of its requests.
func (w *wire) check(t *testing.T, raw, conn []byte) []string {
	t.Helper()
	var out []string
	rest := conn
	for len(rest) > 0 {
		head, _, ok := bytes.Cut(rest, []byte("\r\n\r\n"))
		if !ok {
			t.Fatalf("%q: the origin got half a header block: %q", raw, rest)
		}
		out = append(out, w.checkHead(t, raw, string(head)))
		src := bytes.NewReader(rest)
		br := bufio.NewReader(src)
		req, err := http.ReadRequest(br)
		if err != nil {
			t.Fatalf("%q: the origin got %q: %v", raw, rest, err)
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return out // the client broke off in the body, and the proxy with it
		}
		rest = rest[len(rest)-src.Len()-br.Buffered():]
	}
	return out
}

func (w *wire) checkHead(t *testing.T, raw []byte, head string) string {
	t.Helper()
	lines := strings.Split(head, "\r\n")
	method, target, version := "", "", ""
	if n, err := fmt.Sscanf(lines[0], "%s %s %s", &method, &target, &version); n != 3 || err != nil || version != "HTTP/1.1" ||
		lines[0] != method+" "+target+" "+version || method != "GET" && method != "POST" {
		t.Fatalf("%q: the origin got the request line %q", raw, lines[0])
	}
	path, _, _ := strings.Cut(target, "?")
	for i, read := range servers {
		p := read(path)
		if !strings.HasPrefix(p, "/v1/") || strings.Contains(p+"/", "/../") || strings.Contains(p+"/", "/./") {
			t.Fatalf("%q: the origin got %q, which server %d reads as %q", raw, target, i, p)
		}
	}
	framing := 0
	for i, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ": ")
		switch folded := foldName(name); {
		case (i == 0) != (folded == "host"), folded == "host" && value != w.host:
			t.Fatalf("%q: the origin got %q as header %d", raw, l, i)
		case folded == "content-length", folded == "transfer-encoding":
			framing++
		case folded == "host", l == "Connection: Upgrade", l == "Upgrade: websocket":
		case dropped(http.CanonicalHeaderKey(name)) && folded != "trailer", strings.ContainsAny(l, "\r\n\x00"):
			t.Fatalf("%q: the origin got %q", raw, l)
		}
	}
	if framing > 1 {
		t.Fatalf("%q: the origin got two lengths: %q", raw, head)
	}
	return method + " http://" + w.host + path
}

// wireSeeds are requests to the host "HOST"; many have broken some proxy.
var wireSeeds = []string{
	"GET http://HOST/v1/ok HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"GET http://HOST/v1/a%2Fb?q=/../x HTTP/1.1\r\nHost: HOST\r\nX: y\r\nConnection: X\r\n\r\nGET http://HOST/v1/two HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"POST http://HOST/v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\n\r\nhelloGET http://HOST/v1/two HTTP/1.0\r\n\r\n",
	"POST http://HOST/v1/x HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n5\r\nhello\r\n0\r\nX-T: a\r\nHost: evil\r\n\r\nGET http://HOST/v1/two HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"POST http://HOST/v1/x HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\nContent-Length: 44\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"POST http://HOST/v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 40\r\n\r\nGET /admin HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"POST http://HOST/v1/x HTTP/1.1\r\nHost: HOST\r\nTransfer_Encoding: chunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\n\r\n",
	"POST http://HOST/v1/x HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n5;x=\n\r\nhello\r\n0\r\n\r\n",
	"POST http://HOST/v1/x HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\n\nGET /admin HTTP/1.1\r\n\r\n",
	"GET http://HOST/v1/x HTTP/1.1\r\nHost: evil\r\nHost: HOST\r\n\r\n",
	"GET http://HOST/v1/x HTTP/1.1\r\nHost : evil\r\nHost: HOST\r\n\r\n",
	"GET http://HOST/v1/x HTTP/1.1\r\nHost: HOST\r\nX: a\rGET /admin HTTP/1.1\r\n\r\n",
	"GET http://HOST/v1/x HTTP/1.1\r\nHost: HOST\r\nX: a\n\nGET /admin HTTP/1.1\r\n\r\n",
	"GET http://HOST/v1/%2e%2e/admin HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"GET http://HOST/v1/..%2fadmin HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"GET http://HOST/v1/..;/admin HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"GET http://HOST/v1?/../admin HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"DELETE http://HOST/v1/x HTTP/1.1\r\nHost: HOST\r\n\r\nGET http://HOST/v1/y HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"GET http://HOST/v1/ws HTTP/1.1\r\nHost: HOST\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\nGET /admin HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"CONNECT HOST HTTP/1.1\r\nHost: HOST\r\n\r\nGET /admin HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"GET http://evil@HOST/v1/x HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"GET /v1/x HTTP/1.1\r\nHost: HOST\r\n\r\n",
	"HEAD http://HOST/v1/x HTTP/1.1\r\nHost: HOST\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
	"POST http://HOST/v1/x HTTP/1.1\r\nHost: HOST\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
}

func TestWireSeeds(t *testing.T) {
	w := newWire(t)
	sent := 0
	for i, s := range wireSeeds {
		t.Run(fmt.Sprint(i), func(t *testing.T) { w.try(t, []byte(strings.ReplaceAll(s, "HOST", w.host))) })
	}
	for _, e := range w.proxy.events.Events() {
		if e.Verdict == event.Allowed {
			sent++
		}
	}
	if sent < 8 {
		t.Errorf("only %d requests went through: the test proves nothing", sent)
	}
}

// FuzzWire sends what the fuzzer makes through a real proxy to a real origin:
// what was judged is what was sent, and nothing else was.
func FuzzWire(f *testing.F) {
	for _, s := range wireSeeds {
		f.Add([]byte(s))
	}
	w := newWire(f)
	f.Fuzz(func(t *testing.T, raw []byte) { w.try(t, bytes.ReplaceAll(raw, []byte("HOST"), []byte(w.host))) })
}

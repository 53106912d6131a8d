package egress

import (
	"bufio"
	"bytes"
	"context"

	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentguard/guard/event"
	"agentguard/guard/policy"
)

// patience bounds what a test waits for; nothing waits that long when the code
// is right.
const patience = 20 * time.Second

func mustHost(t testing.TB, s string) policy.HostPattern {
	t.Helper()
	h, err := policy.ParseHost(s)
	if err != nil {
		t.Fatalf("ParseHost(%q): %v", s, err)
	}
	return h
}

func rule(t testing.TB, host string, ports ...uint16) policy.Rule {
	if len(ports) == 0 {
		ports = []uint16{80, 443}
	}
	return policy.Rule{Host: mustHost(t, host), Ports: ports, Pos: policy.Pos{File: "test.yaml", Line: 1, Col: 1}}
}

// loopbackOpen opens loopback for every rule, as tests on loopback need.
var loopbackOpen = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// running is a proxy on a loopback socket and what it reported.
type running struct {
	addr   string
	events *event.Recorder
}

// start serves a proxy until the test ends, and fails the test when anything of
// it is left then.
func start(t testing.TB, c Config) *running {
	t.Helper()
	r := &running{events: &event.Recorder{}}
	if c.Sink == nil {
		c.Sink = event.Discard
	}
	c.Sink = event.Multi(r.events, c.Sink)
	if c.Own == nil {
		c.Own = func() ([]netip.Addr, error) { return nil, nil }
	}
	if c.Lookup == nil {
		c.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	t.Cleanup(func() {
		_ = p.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if s := leaked(); s != "" {
			t.Errorf("goroutines of the proxy left after Close:\n%s", s)
		}
	})
	return r
}

// leaked returns the stacks of goroutines that a proxy started. They are named
// by their methods, since a test has goroutines of its own.
func leaked() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var out []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		for _, f := range []string{"(*client).", "(*splice).", "(*exchange).", "(*goneWatch).", "(*Proxy).Serve"} {
			if strings.Contains(g, "agentguard/egress."+f) {
				out = append(out, g)
				break
			}
		}
	}
	return strings.Join(out, "\n\n")
}

// origin is a server on loopback that hands each connection to serve.
type origin struct {
	addr string
	port uint16
	n    chan struct{} // one token an accepted connection
}

func startOrigin(t testing.TB, serve func(net.Conn)) *origin {
	t.Helper()
	return startOriginHook(t, func() {}, serve)
}

// startOriginHook calls accepted for each connection, in order, before it is
// served.
func startOriginHook(t testing.TB, accepted func(), serve func(net.Conn)) *origin {
	t.Helper()
	ctx := t.Context()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &origin{addr: l.Addr().String(), port: uint16(l.Addr().(*net.TCPAddr).Port), n: make(chan struct{}, 1<<20)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			o.n <- struct{}{}
			accepted()
			wg.Go(func() {
				defer c.Close()
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				defer stop()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return o
}

// accepted is how many connections the origin has got.
func (o *origin) accepted() int { return len(o.n) }

func (o *origin) at(path string) string {
	return "http://localhost:" + strconv.Itoa(int(o.port)) + path
}

func (o *origin) host() string { return "localhost:" + strconv.Itoa(int(o.port)) }

// httpOrigin serves h with net/http.
func httpOrigin(t testing.TB, h http.HandlerFunc) *origin {
	t.Helper()
	conns := make(chan net.Conn)
	done := make(chan struct{})
	srv := &http.Server{Handler: h, ErrorLog: nil}
	go func() {
		defer close(done)
		_ = srv.Serve(chanListener{conns, t.Context()})
	}()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return startOrigin(t, func(c net.Conn) {
		w := &waitConn{Conn: c, closed: make(chan struct{})}
		select {
		case conns <- w:
			<-w.closed
		case <-t.Context().Done():
		}
	})
}

// chanListener makes a net/http server serve connections accepted elsewhere.
type chanListener struct {
	c   chan net.Conn
	ctx context.Context
}

func (l chanListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.c:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}
func (l chanListener) Close() error   { return nil }
func (l chanListener) Addr() net.Addr { return &net.TCPAddr{} }

type waitConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *waitConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}

// dialRaw connects to the proxy.
func dialRaw(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

// reply is an answer as a client reads it.
type reply struct {
	status int
	code   Code
	body   string
	header http.Header
	close  bool
}

// send writes raw bytes on a fresh connection and reads one answer.
func send(t testing.TB, addr, raw string) reply {
	t.Helper()
	c := dialRaw(t, addr)
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	r, err := readReply(bufio.NewReader(c), strings.HasPrefix(raw, "HEAD "))
	if err != nil {
		t.Fatalf("no answer to %q: %v", raw, err)
	}
	_ = c.Close()
	return r
}

func readReply(br *bufio.Reader, head bool) (reply, error) {
	req := &http.Request{Method: "GET"}
	if head {
		req.Method = "HEAD"
	}
	resp, err := http.ReadResponse(br, req)
	if err != nil {
		return reply{}, err
	}
	if resp.StatusCode == 200 && strings.Contains(resp.Status, "established") {
		return reply{status: 200, header: resp.Header}, nil
	}
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, Code(resp.Header.Get(refusalHeader)), string(b), resp.Header, resp.Close}, err
}

// recorder is an origin that keeps every byte it gets and answers each header
// block with an empty 200.
type recorder struct {
	mu  sync.Mutex
	got bytes.Buffer
}

func (r *recorder) serve(c net.Conn) {
	br := bufio.NewReader(io.TeeReader(c, r))
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.Write(b)
}

func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.got.String()
	r.got.Reset()
	return s
}

// viaProxy is an http.Client that uses the proxy for everything and follows no
// redirects.
func viaProxy(t testing.TB, addr string) *http.Client {
	tr := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: "http", Host: addr}, nil }, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

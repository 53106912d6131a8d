package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentguard/guard/event"
	"agentguard/guard/policy"
)

// inBubble serves one client connection on fake time and calls do with its
// other end.
func inBubble(t *testing.T, e policy.Egress, do func(t *testing.T, c net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Config{Policy: e, Own: func() ([]netip.Addr, error) { return nil, nil }})
		if err != nil {
			t.Fatal(err)
		}
		outer, inner := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			newClient(p, inner).serve()
			_ = inner.Close()
		}()
		do(t, outer)
		<-done
	})
}

func TestSlowHeadersEnd(t *testing.T) {
	inBubble(t, policy.Egress{}, func(t *testing.T, c net.Conn) {
		begin := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			for { // a byte now and then does not help
				if _, err := io.WriteString(c, "X"); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		if b, _ := io.ReadAll(c); len(b) > 0 || time.Since(begin) != headTimeout {
			t.Errorf("ended after %v with %q, want %v and nothing", time.Since(begin), b, headTimeout)
		}
		wg.Wait()
	})
}

func TestIdleConnectionEnds(t *testing.T) {
	inBubble(t, policy.Egress{}, func(t *testing.T, c net.Conn) {
		go func() { _, _ = io.WriteString(c, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n") }()
		br := bufio.NewReader(c)
		if r, err := readReply(br, false); err != nil || r.status != 403 {
			t.Fatalf("%+v, %v", r, err)
		}
		begin := time.Now()
		if _, err := br.ReadByte(); err != io.EOF || time.Since(begin) != idleTimeout {
			t.Errorf("%v after %v, want the end after %v", err, time.Since(begin), idleTimeout)
		}
	})
}

func TestSlowResolverIsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rv := newResolver(Config{
			Own:    func() ([]netip.Addr, error) { return nil, nil },
			Lookup: func(ctx context.Context, _ string) ([]netip.Addr, error) { <-ctx.Done(); return nil, ctx.Err() },
		})
		begin := time.Now()
		_, err := rv.resolve(t.Context(), Request{Host: "example.com", Port: 80}, nil)
		if err == nil || time.Since(begin) != dnsTimeout {
			t.Errorf("%v after %v, want a refusal after %v", err, time.Since(begin), dnsTimeout)
		}
	})
}

// A tunnel in which nothing moves ends; one in which one side talks does not.
func TestIdleTunnelEnds(t *testing.T) {
	for _, talk := range []time.Duration{0, 2 * time.Hour} {
		t.Run(talk.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, in := net.Pipe()
				origin, out := net.Pipe()
				var wg sync.WaitGroup
				wg.Go(func() { _, _ = io.Copy(io.Discard, client) })
				wg.Go(func() {
					for begin := time.Now(); time.Since(begin) < talk; time.Sleep(time.Minute) {
						_, _ = io.WriteString(origin, "x")
					}
				})
				begin := time.Now()
				s := splice{client: in, origin: out}
				s.run(nil, func() error { return nil })
				if d := time.Since(begin); d < talk+idleTimeout || d > talk+4*idleTimeout {
					t.Errorf("ended after %v of which %v were busy", d, talk)
				}
				wg.Wait()
			})
		})
	}
}

// Every spelling of a host that some proxy has been fooled by, to a proxy that
// may reach this very origin by its right name: none arrives.
func TestHostSpellingsAreNotDialled(t *testing.T) {
	rec := &recorder{}
	o := startOrigin(t, rec.serve)
	p := start(t, Config{Policy: policy.Egress{
		Allow:        []policy.Rule{rule(t, "localhost", o.port), rule(t, "*.localhost", o.port)},
		AllowPrivate: loopbackOpen,
	}})
	for _, h := range []string{
		"127.0.0.1", "127.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "127.0.0.1.", "[::ffff:127.0.0.1]",
		"[::ffff:7f00:1]", "[::1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::1%25lo]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]",
		"localhost@127.0.0.1", "localhost:80@127.0.0.1", "127.0.0.1%00.localhost", "127.0.0.1\x00.localhost",
		"127.0.0.1\\.localhost", "127.0.0.1#.localhost", "127.0.0.1?.localhost", "127.0.0.1/.localhost", "0.0.0.0", "0",
		"127.0.0.1%2f.localhost", "localhost,127.0.0.1", "127.0.0.1 localhost", "127.0.0.1\tlocalhost", "vm",
		"\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1", "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", "127\xe3\x80\x820\xe3\x80\x820\xe3\x80\x821",
		"127.0.0.1\r\nHost: localhost\r\n", "127.0.0.1:80:localhost", "[localhost]", "localhost\xad", "ocalhost", "xlocalhost",
	} {
		port := fmt.Sprint(o.port)
		for _, raw := range []string{
			"GET http://" + h + ":" + port + "/g HTTP/1.1\r\nHost: localhost:" + port + "\r\nConnection: close\r\n\r\n",
			"GET http://" + h + ":" + port + "/g HTTP/1.1\r\nHost: " + h + ":" + port + "\r\nConnection: close\r\n\r\n",
			"CONNECT " + h + ":" + port + " HTTP/1.1\r\nHost: localhost:" + port + "\r\n\r\nGET /c HTTP/1.0\r\n\r\n",
			"CONNECT " + h + ":" + port + " HTTP/1.1\r\n\r\nGET /c HTTP/1.0\r\n\r\n",
		} {
			if r := send(t, p.addr, raw); r.status != 400 && r.status != 403 {
				t.Errorf("%q: %+v", raw, r)
			}
		}
	}
	if n := o.accepted(); n != 0 {
		t.Errorf("the origin was reached %d times: %q", n, rec.take())
	}
	for _, e := range p.events.Events() {
		if e.Verdict != event.Denied {
			t.Errorf("allowed: %+v", e)
		}
	}
	if r := send(t, p.addr, "GET "+o.at("/ok")+" HTTP/1.1\r\nHost: "+o.host()+"\r\n\r\n"); r.status != 200 {
		t.Errorf("the right name: %+v", r)
	}
}

// Close ends what hangs: an idle connection, a tunnel, an answer that does not
// come, a request whose body does not end.
func TestCloseEndsEverything(t *testing.T) {
	o := startOrigin(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	p, err := New(Config{Policy: open(t, o).Policy, Own: func() ([]netip.Addr, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	addr := l.Addr().String()
	dialRaw(t, addr)
	connect(t, addr, o.host(), "x")
	fmt.Fprintf(dialRaw(t, addr), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", o.at("/"), o.host())
	fmt.Fprintf(dialRaw(t, addr), "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 10\r\n\r\nx", o.at("/"), o.host())
	for range 3 {
		<-o.n // the tunnel and the two requests are at the origin
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if s := leaked(); s != "" {
		t.Errorf("left after Close:\n%s", s)
	}
	if err := p.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	l2, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Serve(l2); err != nil {
		t.Errorf("Serve after Close: %v", err)
	}
	if _, err := http.Get("http://" + l2.Addr().String()); err == nil {
		t.Error("served after Close")
	}
}

// A panic ends the connection it happened on and no other.
func TestFaultEndsOneConnection(t *testing.T) {
	var once sync.Once
	o := startOrigin(t, (&recorder{}).serve)
	c := open(t, o)
	c.Sink = event.Func(func(event.Event) { once.Do(func() { _ = make([]int, 1)[len(c.Policy.Allow)+1000] }) })
	p := start(t, c)
	raw := "GET " + o.at("/") + " HTTP/1.1\r\nHost: " + o.host() + "\r\n\r\n"
	conn := dialRaw(t, p.addr)
	_, _ = io.WriteString(conn, raw)
	if b, err := io.ReadAll(conn); len(b) > 0 || err != nil {
		t.Errorf("got %q, %v on the connection of the fault", b, err)
	}
	if r := send(t, p.addr, raw); r.status != 200 {
		t.Errorf("another connection: %+v", r)
	}
	var faults []string
	for _, e := range p.events.Events() {
		if e.Detail["code"] == string(CodeFault) {
			faults = append(faults, e.Detail["fault"])
		}
	}
	if len(faults) != 1 || !strings.Contains(faults[0], "index out of range") {
		t.Errorf("reported faults: %q", faults)
	}
}

package egress

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"agentguard/guard/event"
	"agentguard/guard/policy"
)

// connect opens a tunnel and returns it with what the proxy said.
func connect(t testing.TB, addr, target, early string) (*net.TCPConn, *bufio.Reader, reply) {
	t.Helper()
	c := dialRaw(t, addr)
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n%s", target, target, early); err != nil {
		t.Fatal(err)
	}
	br := bufio.NewReader(c)
	r, err := readReply(br, false)
	if err != nil {
		t.Fatalf("CONNECT %s: %v", target, err)
	}
	return c, br, r
}

// echo sends everything back and ends when the other side has.
func echo(c net.Conn) {
	_, _ = io.Copy(c, c)
	_ = c.(*net.TCPConn).CloseWrite()
}

func TestTunnel(t *testing.T) {
	o := startOrigin(t, echo)
	p := start(t, open(t, o))
	for _, early := range []string{"", "early "} {
		c, br, r := connect(t, p.addr, o.host(), early)
		if r.status != 200 {
			t.Fatalf("got %+v", r)
		}
		_, _ = io.WriteString(c, "late")
		_ = c.CloseWrite() // one way ends, the other stays open
		if b, err := io.ReadAll(br); err != nil || string(b) != early+"late" {
			t.Errorf("got %q, %v", b, err)
		}
	}
	e := p.events.Events()[0]
	if e.Kind != event.EgressTunnel || e.Verdict != event.Allowed || e.Subject != o.host() || e.Detail["addr"] != o.addr {
		t.Errorf("event %+v", e)
	}
}

func TestTunnelServerSpeaksFirst(t *testing.T) {
	o := startOrigin(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "SSH-2.0-x\r\n")
		echo(c)
	})
	p := start(t, open(t, o))
	c, br, _ := connect(t, p.addr, o.host(), "")
	if line, err := br.ReadString('\n'); err != nil || line != "SSH-2.0-x\r\n" {
		t.Fatalf("got %q, %v before saying anything", line, err)
	}
	_, _ = io.WriteString(c, "hi")
	_ = c.CloseWrite()
	if b, _ := io.ReadAll(br); string(b) != "hi" {
		t.Errorf("got %q", b)
	}
}

func TestTunnelBulk(t *testing.T) {
	const size = 32 << 20
	o := startOrigin(t, func(c net.Conn) {
		n, _ := io.Copy(io.Discard, c)
		_, _ = io.CopyN(c, zeros{}, n)
	})
	p := start(t, open(t, o))
	c, br, _ := connect(t, p.addr, o.host(), "")
	go func() {
		_, _ = io.CopyN(c, zeros{}, size)
		_ = c.CloseWrite()
	}()
	if n, err := io.Copy(io.Discard, br); n != size || err != nil {
		t.Errorf("got %d bytes, %v, want %d", n, err, size)
	}
}

// Nothing pipelined behind a refused CONNECT reaches anybody.
func TestTunnelRefused(t *testing.T) {
	rec := &recorder{}
	o := startOrigin(t, rec.serve)
	restricted := rule(t, "localhost", o.port)
	restricted.Methods = []string{"GET"}
	early := "POST /admin HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
	for _, tt := range []struct {
		name   string
		egress policy.Egress
		target string
		status int
		code   Code
	}{
		{"no rule", policy.Egress{AllowPrivate: loopbackOpen}, o.host(), 403, CodeNoRule},
		{"other spelling", policy.Egress{Allow: []policy.Rule{rule(t, "localhost", o.port)}, AllowPrivate: loopbackOpen}, o.addr, 403, CodeNoRule},
		{"methods", policy.Egress{Allow: []policy.Rule{restricted}, AllowPrivate: loopbackOpen}, o.host(), 403, CodeOpaque},
		{"address", policy.Egress{Allow: []policy.Rule{rule(t, "localhost", o.port)}}, o.host(), 403, CodeAddress},
		{"bad host", policy.Egress{}, "127.1:80", 400, CodeHost},
		{"nobody there", policy.Egress{Allow: []policy.Rule{rule(t, "localhost", 1)}, AllowPrivate: loopbackOpen}, "localhost:1", 502, CodeDial},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, Config{Policy: tt.egress})
			_, br, r := connect(t, p.addr, tt.target, early)
			if r.status != tt.status || r.code != tt.code || !r.close {
				t.Errorf("got %+v", r)
			}
			if b, err := io.ReadAll(br); len(b) > 0 || err != nil {
				t.Errorf("after the refusal: %q, %v", b, err)
			}
		})
	}
	if got := rec.take(); got != "" {
		t.Errorf("the origin got %q", got)
	}
}

// tlsOrigin answers TLS handshakes for any name.
func tlsOrigin(t testing.TB) *origin {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"a.test", "b.test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	conf := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	return startOrigin(t, func(c net.Conn) {
		tc := tls.Server(c, conf)
		if tc.Handshake() == nil {
			_, _ = io.Copy(tc, tc)
		}
	})
}

// at443 makes a proxy for which a.test port 443 is o.
func at443(t testing.TB, o *origin) *running {
	ap := netip.MustParseAddrPort(o.addr)
	return start(t, Config{Policy: policy.Egress{
		Allow:        []policy.Rule{rule(t, "a.test", 443, 8443), rule(t, "192.0.2.1", 443)},
		AllowPrivate: loopbackOpen,
		Resolve: map[string]policy.Target{
			"a.test": {Addr: ap.Addr(), Port: ap.Port()}, "192.0.2.1": {Addr: ap.Addr(), Port: ap.Port()},
		},
	}})
}

func TestTunnelServerName(t *testing.T) {
	o := tlsOrigin(t)
	p := at443(t, o)
	for _, tt := range []struct {
		name, target, sni string
		ok                bool
	}{
		{"the host", "a.test:443", "a.test", true},
		{"the host in other case", "A.test:443", "a.TEST", true},
		{"the host on another port", "a.test:8443", "a.test", true},
		{"no name", "a.test:443", "", true},
		{"address without name", "192.0.2.1:443", "", true},
		{"another host", "a.test:443", "b.test", false},
		{"another host on another port", "a.test:8443", "b.test", false},
		{"a part of the host", "a.test:443", "test", false},
		{"a name for an address", "192.0.2.1:443", "b.test", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _, r := connect(t, p.addr, tt.target, "")
			if r.status != 200 {
				t.Fatalf("got %+v", r)
			}
			tc := tls.Client(c, &tls.Config{ServerName: tt.sni, InsecureSkipVerify: true}) // the test is about names, not trust
			err := tc.Handshake()
			if (err == nil) != tt.ok {
				t.Fatalf("handshake: %v, want ok %v", err, tt.ok)
			}
			if !tt.ok {
				if !strings.Contains(err.Error(), "unrecognized name") {
					t.Errorf("the client is told %v, want an alert", err)
				}
				return
			}
			_, _ = io.WriteString(tc, "hello")
			b := make([]byte, 5)
			if _, err := io.ReadFull(tc, b); err != nil || string(b) != "hello" {
				t.Errorf("got %q, %v", b, err)
			}
		})
	}
	denied := 0
	for _, e := range p.events.Events() {
		if e.Verdict == event.Denied && e.Detail["code"] == string(CodeSNI) && e.Kind == event.EgressTunnel {
			denied++
		}
	}
	if denied != 4 {
		t.Errorf("%d refusals reported, want 4", denied)
	}
}

func TestTunnelEncryptedHello(t *testing.T) {
	rec := &recorder{}
	o := startOrigin(t, rec.serve)
	p := at443(t, o)
	c, br, _ := connect(t, p.addr, "a.test:443", "")
	_, _ = c.Write(clientHello(t, "a.test", true))
	if b, err := io.ReadAll(br); err != nil || !bytes.Equal(b, []byte{0x15, 3, 3, 0, 2, 2, 112}) {
		t.Errorf("got %x, %v, want an alert", b, err)
	}
	if got := rec.take(); got != "" {
		t.Errorf("the origin got %q", got)
	}
}

func TestTunnelClearText(t *testing.T) {
	rec := &recorder{}
	o := startOrigin(t, rec.serve)
	p := at443(t, o)
	const req = "GET /x HTTP/1.1\r\nHost: evil.test\r\n\r\n"
	for _, early := range []string{req, ""} {
		c, br, r := connect(t, p.addr, "a.test:443", early)
		if r.status != 200 {
			t.Fatalf("got %+v", r)
		}
		if early == "" {
			_, _ = io.WriteString(c, req)
		}
		if r, err := readReply(br, false); err != nil || r.status != 403 || r.code != CodeNotTLS {
			t.Errorf("got %+v, %v", r, err)
		}
	}
	if got := rec.take(); got != "" {
		t.Errorf("the origin got %q on port 443", got)
	}
	_, br, _ := connect(t, p.addr, "a.test:8443", req)
	if r, err := readReply(br, false); err != nil || r.status != 200 || rec.take() != req {
		t.Errorf("on another port: %+v, %v", r, err)
	}
}

// clientHello returns the first bytes of a TLS client.
func clientHello(t testing.TB, name string, encrypted bool) []byte {
	t.Helper()
	a, b := net.Pipe()
	conf := &tls.Config{ServerName: name, InsecureSkipVerify: name == ""}
	if encrypted {
		conf.MinVersion = tls.VersionTLS13
		conf.EncryptedClientHelloConfigList = echList(t, "a.test")
	}
	go func() {
		_ = tls.Client(a, conf).Handshake()
		_ = a.Close()
	}()
	buf := make([]byte, 16<<10)
	n, err := b.Read(buf)
	_ = b.Close()
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

// echList is a list of one ECH configuration (RFC 9849) with a fresh key.
func echList(t testing.TB, public string) []byte {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	conf := []byte{7, 0, 0x20, 0, 32} // config id, DHKEM(X25519), length of the key
	conf = append(conf, key...)
	conf = append(conf, 0, 4, 0, 1, 0, 1, 32, byte(len(public))) // HKDF-SHA256, AES-128-GCM, longest name
	conf = append(conf, public...)
	conf = append(conf, 0, 0)
	out := []byte{0xfe, 0x0d, 0, byte(len(conf))}
	out = append(out, conf...)
	return append([]byte{0, byte(len(out))}, out...)
}

func TestSniff(t *testing.T) {
	hello := clientHello(t, "a.test", false)
	r := Request{Tunnel: true, Host: "a.test", Port: 443}
	other := Request{Tunnel: true, Host: "b.test", Port: 443}
	t.Run("byte by byte", func(t *testing.T) {
		got, err := sniff(io.MultiReader(&oneByte{hello}, strings.NewReader("rest")), r)
		if err != nil || !bytes.HasPrefix(append(hello, "rest"...), got) || len(got) < len(hello) {
			t.Errorf("got %d bytes, %v, want at least %d", len(got), err, len(hello))
		}
	})
	t.Run("in small records", func(t *testing.T) {
		split := fragment(hello, 7)
		if _, err := sniff(bytes.NewReader(split), other); err == nil {
			t.Error("a ClientHello in small records passed with another name")
		}
		if got, err := sniff(bytes.NewReader(split), r); err != nil || !bytes.Equal(got, split) {
			t.Errorf("got %d bytes, %v, want %d as sent", len(got), err, len(split))
		}
	})
	t.Run("cut", func(t *testing.T) {
		for n := range hello {
			if got, err := sniff(bytes.NewReader(hello[:n]), r); err == nil {
				t.Fatalf("the first %d of %d bytes passed as %d", n, len(hello), len(got))
			}
		}
	})
	t.Run("endless", func(t *testing.T) {
		if _, err := sniff(io.MultiReader(bytes.NewReader([]byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}), zeros{}), r); err == nil {
			t.Error("passed")
		}
	})
}

type oneByte struct{ b []byte }

func (o *oneByte) Read(p []byte) (int, error) {
	if len(o.b) == 0 {
		return 0, io.EOF
	}
	p[0], o.b = o.b[0], o.b[1:]
	return 1, nil
}

// fragment splits the one record of a ClientHello into records of n bytes.
func fragment(hello []byte, n int) []byte {
	var out []byte
	for body := hello[5:]; len(body) > 0; {
		part := body[:min(n, len(body))]
		out = append(out, 22, 3, 1, 0, byte(len(part)))
		out = append(out, part...)
		body = body[len(part):]
	}
	return out
}

// FuzzSniff: what passes is a prefix of what was sent, and never a ClientHello
// whose name crypto/tls reads otherwise.
func FuzzSniff(f *testing.F) {
	// The hellos are in testdata, because one made here would differ each time.
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := sniff(bytes.NewReader(b), Request{Tunnel: true, Host: "a.test", Port: 443})
		if err != nil {
			return
		}
		if !bytes.HasPrefix(b, got) || got[0] != recordHandshake {
			t.Fatalf("%x passed as %x", b, got)
		}
	})
}

package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentguard/guard/policy"
)

// plainProxy is the least a proxy can do: it dials what it is told and copies.
// It is what the benchmarks are held against, in the same run.
func plainProxy(t testing.TB, target string) string {
	o := startOrigin(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", target)
		if err != nil {
			return
		}
		defer up.Close()
		if req.Method != http.MethodConnect {
			forwardPlain(c, br, up, req)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = io.Copy(up, c)
			_ = up.(*net.TCPConn).CloseWrite()
		})
		_, _ = io.Copy(c, up)
		_ = c.(*net.TCPConn).CloseWrite()
		wg.Wait()
	})
	return o.addr
}

// forwardPlain forwards the requests of one connection with net/http's own
// reading and writing, and no judgement.
func forwardPlain(c net.Conn, br *bufio.Reader, up net.Conn, req *http.Request) {
	ur := bufio.NewReader(up)
	for {
		if req.Write(up) != nil {
			return
		}
		resp, err := http.ReadResponse(ur, req)
		if err != nil || resp.Write(c) != nil {
			return
		}
		if req, err = http.ReadRequest(br); err != nil {
			return
		}
	}
}

// quick answers each header block with 128 bytes, without parsing.
func quick(c net.Conn) {
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 128\r\n\r\n" + strings.Repeat("x", 128))
	br := bufio.NewReader(c)
	for {
		line, err := br.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(line) <= 2 {
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}
}

func exchangeOnce(b *testing.B, c net.Conn, br *bufio.Reader, raw []byte) {
	if _, err := c.Write(raw); err != nil {
		b.Fatal(err)
	}
	for {
		line, err := br.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		if len(line) <= 2 {
			break
		}
	}
	if _, err := br.Discard(128); err != nil {
		b.Fatal(err)
	}
}

// compare runs one operation through both proxies in turns, so that the load of
// the machine hits both, and reports the medians and their ratio.
func compare(b *testing.B, begin func(b *testing.B, proxy string, o *origin) (op func(), end func())) {
	o := startOrigin(b, quick)
	proxies := [2]string{start(b, open(b, o)).addr, plainProxy(b, o.addr)}
	var ops, ends [2]func()
	var spent [2][]time.Duration
	for i, p := range proxies {
		ops[i], ends[i] = begin(b, p, o)
	}
	b.ResetTimer()
	for range b.N {
		for i, op := range ops {
			t := time.Now()
			op()
			spent[i] = append(spent[i], time.Since(t))
		}
	}
	b.StopTimer()
	for i := range spent {
		ends[i]()
		slices.Sort(spent[i])
	}
	median := func(i int) float64 { return float64(spent[i][len(spent[i])/2].Nanoseconds()) }
	b.ReportMetric(median(0), "agentguard-p50-ns")
	b.ReportMetric(median(1), "plain-p50-ns")
	b.ReportMetric(median(0)/median(1), "ratio")
	b.ReportMetric(0, "ns/op")
}

func openTunnel(b *testing.B, proxy string, o *origin) (net.Conn, *bufio.Reader) {
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		b.Fatal(err)
	}
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", o.host(), o.host())
	br := bufio.NewReader(c)
	for {
		line, err := br.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		if len(line) <= 2 {
			return c, br
		}
	}
}

func BenchmarkNewTunnel(b *testing.B) {
	raw := []byte("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
	compare(b, func(b *testing.B, proxy string, o *origin) (func(), func()) {
		return func() {
			c, br := openTunnel(b, proxy, o)
			exchangeOnce(b, c, br, raw)
			_ = c.Close()
		}, func() {}
	})
}

func BenchmarkReusedTunnel(b *testing.B) {
	raw := []byte("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
	compare(b, func(b *testing.B, proxy string, o *origin) (func(), func()) {
		c, br := openTunnel(b, proxy, o)
		return func() { exchangeOnce(b, c, br, raw) }, func() { _ = c.Close() }
	})
}

func BenchmarkPlainHTTP(b *testing.B) {
	compare(b, func(b *testing.B, proxy string, o *origin) (func(), func()) {
		raw := []byte("GET " + o.at("/x") + " HTTP/1.1\r\nHost: " + o.host() + "\r\nUser-Agent: bench/1\r\nAccept: */*\r\n\r\n")
		c, err := net.Dial("tcp", proxy)
		if err != nil {
			b.Fatal(err)
		}
		br := bufio.NewReader(c)
		return func() { exchangeOnce(b, c, br, raw) }, func() { _ = c.Close() }
	})
}

// BenchmarkDecide judges against a thousand rules, the last of them for the host.
func BenchmarkDecide(b *testing.B) {
	var e policy.Egress
	for i := range 1000 {
		e.Allow = append(e.Allow, rule(b, fmt.Sprintf("h%d.example.com", i)))
	}
	e.Allow = append(e.Allow, rule(b, "localhost"))
	rs, err := compile(e)
	if err != nil {
		b.Fatal(err)
	}
	r, err := ParseRequest("GET", "http://localhost/x")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if d := rs.decide(r); d.Code != "" {
			b.Fatal(d.Reason)
		}
	}
}

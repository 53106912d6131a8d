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
)

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

// An origin that answers before the body has come ends the exchange at once,
// whatever the client goes on to send.
func TestForwardEarlyAnswer(t *testing.T) {
	o := startOrigin(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
		}
		_, _ = io.Copy(io.Discard, c)
	})
	p := start(t, open(t, o))
	for i := range 50 {
		c := dialRaw(t, p.addr)
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 100000\r\n\r\n%s", o.at("/"), o.host(), strings.Repeat("x", i*1500))
		br := bufio.NewReader(c)
		if r, err := readReply(br, false); err != nil || r.status != 413 || r.body != "no" || !r.close {
			t.Fatalf("got %+v, %v", r, err)
		}
		if b, err := io.ReadAll(br); len(b) > 0 || err != nil {
			t.Fatalf("after the answer: %q, %v", b, err)
		}
	}
}

package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
)

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

package egress

import (
	"crypto/sha1" // RFC 6455 asks for it; it proves no secret
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"agentguard/guard/event"
)

// tunnel answers CONNECT. Nothing the client sent after its request is looked
// at, let alone sent on, before the tunnel is allowed and the origin reached.
func (c *client) tunnel(req *http.Request, r Request, d Decision) {
	if d.Verdict != event.Allowed {
		c.refuse(req, r, d, true)
		return
	}
	up, err := c.p.connect(c.p.ctx, r, d)
	if err != nil {
		c.refuse(req, r, failed(r, d, err), true)
		return
	}
	defer c.p.untrack(up)
	defer up.Close()
	c.report(r, d, map[string]string{"addr": remoteAddr(up)})
	if c.write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")) != nil {
		return
	}
	c.dropUpstream()
	in := c.release()
	s := splice{client: c.conn, origin: up}
	s.run(nil, func() error {
		first, err := sniff(in, r)
		var re *RequestError
		if errors.As(err, &re) {
			c.report(r, Decision{Code: re.Code, Reason: re.Reason, Rule: d.Rule}, nil)
			if _, werr := c.conn.Write(tunnelRefusal(re, r)); werr == nil {
				linger(c.conn, in)
			}
			return err
		}
		if err != nil && err != io.EOF {
			return err
		}
		_, err = up.Write(first)
		return err
	})
}

// release gives up the buffers of the connection, which an idle tunnel has no
// use for, and returns a reader of what the client sent and sends.
func (c *client) release() io.Reader {
	b, _ := c.br.Peek(c.br.Buffered()) // what is buffered is there
	rest := append([]byte(nil), b...)
	c.head, c.br, c.bw = nil, nil, nil
	return &restReader{rest: rest, conn: c.conn}
}

// restReader reads bytes that came early, then the connection.
type restReader struct {
	rest []byte
	conn net.Conn
}

func (r *restReader) Read(p []byte) (int, error) {
	if len(r.rest) > 0 {
		n := copy(p, r.rest)
		r.rest = r.rest[n:]
		return n, nil
	}
	return r.conn.Read(p)
}

// switchProtocols makes a tunnel of a request for a websocket when the origin
// agreed to exactly that. Any other 101 is refused.
func (x *exchange) switchProtocols(resp *http.Response) error {
	key := x.req.Header.Get("Sec-Websocket-Key")
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	if !x.r.WebSocket || !hasToken(resp.Header, "Upgrade", "websocket") || !hasToken(resp.Header, "Connection", "upgrade") ||
		resp.Header.Get("Sec-Websocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]) {
		return errors.New("the origin switched to a protocol that nobody asked for")
	}
	x.begun = true
	if err := x.writeHead(resp, "Connection: Upgrade\r\nUpgrade: websocket\r\n"); err != nil {
		return err
	}
	if err := x.c.bw.Flush(); err != nil {
		return err
	}
	early, _ := x.up.br.Peek(x.up.br.Buffered()) // what is buffered is there
	early = append([]byte(nil), early...)
	rest := x.c.release().(*restReader).rest
	s := splice{client: x.c.conn, origin: x.up.conn}
	s.run(early, func() error {
		_, err := s.origin.Write(rest)
		return err
	})
	return nil
}

// splice copies bytes both ways until both have ended, or nothing moved for a
// while. The connections are handed to io.Copy bare, so that the kernel moves
// the bytes; that is why they are not counted on the way.
type splice struct {
	client net.Conn
	origin net.Conn
	moved  atomic.Int64
	wg     sync.WaitGroup
}

// run sends early to the client, and lets first say what the origin gets before
// the rest. An error of first ends the tunnel.
func (s *splice) run(early []byte, first func() error) {
	_ = s.client.SetDeadline(time.Time{}) // errors show at the use
	_ = s.origin.SetDeadline(time.Time{})
	s.wg.Go(func() {
		if len(early) > 0 {
			if _, err := s.client.Write(early); err != nil {
				s.end()
				return
			}
		}
		s.pipe(s.client, s.origin)
	})
	if err := first(); err != nil {
		s.end()
	} else {
		s.moved.Add(1)
		s.pipe(s.origin, s.client)
	}
	s.wg.Wait()
}

// pipe copies one way. The end of one way is passed on and leaves the other
// open. A deadline is only a moment to look whether anything moved: a tunnel
// ends when two in a row saw nothing in either direction.
func (s *splice) pipe(dst, src net.Conn) {
	seen, quiet := s.moved.Load(), 0
	for {
		_ = src.SetReadDeadline(time.Now().Add(idleTimeout)) // an error shows at the copy
		n, err := io.Copy(dst, src)
		s.moved.Add(n)
		switch now := s.moved.Load(); {
		case err == nil:
			if w, ok := dst.(interface{ CloseWrite() error }); !ok || w.CloseWrite() != nil {
				s.end()
			}
			return
		case !errors.Is(err, os.ErrDeadlineExceeded) || quiet > 0 && now == seen:
			s.end()
			return
		case now == seen:
			quiet++
		default:
			seen, quiet = now, 0
		}
	}
}

// end makes both ways end.
func (s *splice) end() {
	_ = s.client.SetDeadline(past)
	_ = s.origin.Close()
	_ = s.client.Close()
}

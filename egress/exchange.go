package egress

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// goneCheck is how long an answer may take before the client is watched for
// hanging up: most answers are quicker, and need no second goroutine.
const goneCheck = time.Second

// maxInterim bounds the 1xx answers an origin may send before the real one.
const maxInterim = 16

// exchange is one request and its answer over one upstream connection.
type exchange struct {
	c   *client
	req *http.Request
	r   Request
	up  *upstream

	begun  bool // the client got a part of the answer
	keep   bool // the client connection can take another request
	keepUp bool // the upstream connection can
	unread bool // the client may still be sending

	sent atomic.Bool   // the request's body was read to its end
	over atomic.Bool   // nobody wants the rest of the body
	body chan struct{} // closed when the body's goroutine ended; nil without one
}

// run sends the request, copies the answer and awaits what it started.
func (x *exchange) run() error {
	if err := x.sendHead(); err != nil {
		return err
	}
	if x.req.Body == http.NoBody {
		x.sent.Store(true)
	} else {
		x.body = make(chan struct{})
		go func() {
			defer close(x.body)
			x.sendBody()
		}()
	}
	gone := x.watch()
	err := x.answer(gone)
	gone.stop()
	x.endBody(err)
	return err
}

// repeatable says whether the request may be sent twice.
func (x *exchange) repeatable() bool {
	switch x.r.Method {
	case "GET", "HEAD", "OPTIONS", "PUT", "DELETE":
		return x.req.Body == http.NoBody
	}
	return false
}

// sendHead writes the request from its canonical form; nothing of the bytes the
// client sent is used but the values of end-to-end headers.
func (x *exchange) sendHead() error {
	w := x.up.bw
	for _, s := range [...]string{x.r.Method, " ", x.r.target(), " HTTP/1.1\r\nHost: ", x.r.authority(), "\r\n"} {
		_, _ = w.WriteString(s) // an error shows at the flush
	}
	h := forwarded(x.req.Header)
	if !x.req.ProtoAtLeast(1, 1) {
		delete(h, "Expect")
	}
	if err := h.Write(w); err != nil {
		return err
	}
	switch {
	case x.r.WebSocket:
		_, _ = w.WriteString("Connection: Upgrade\r\nUpgrade: websocket\r\n")
	case x.req.ContentLength < 0:
		_, _ = w.WriteString("Transfer-Encoding: chunked\r\n")
		_, _ = w.WriteString(trailerLine(x.req.Trailer))
	case x.req.ContentLength > 0 || x.req.Header["Content-Length"] != nil:
		_, _ = w.WriteString("Content-Length: " + strconv.FormatInt(x.req.ContentLength, 10) + "\r\n")
	}
	_, _ = w.WriteString("\r\n")
	return w.Flush()
}

// sendBody copies the request's body. When the client goes away in the middle
// the upstream connection ends, and with it the wait for an answer.
func (x *exchange) sendBody() {
	err := x.copyRequestBody()
	if err != nil && !x.sent.Load() && !errors.Is(err, errUpstreamWrite) {
		_ = x.up.conn.Close() // wakes the reader of the answer
	}
}

// errUpstreamWrite marks a failure to write to the origin, which may still have
// an answer to give.
var errUpstreamWrite = errors.New("writing to the origin")

// past is a deadline that is over.
var past = time.Unix(1, 0)

func (x *exchange) copyRequestBody() error {
	w := x.up.bw
	chunked := x.req.ContentLength < 0
	buf := takeBuffer()
	defer buffers.Put(buf)
	for {
		_ = x.c.conn.SetReadDeadline(time.Now().Add(idleTimeout)) // an error shows at the read
		if x.over.Load() {                                        // looked at after the deadline: endBody sets them in the other order
			return os.ErrDeadlineExceeded
		}
		n, err := x.req.Body.Read(*buf)
		done := err == io.EOF
		if err != nil && !done {
			return err
		}
		if done {
			x.sent.Store(true)
		}
		if werr := writePart(w, (*buf)[:n], chunked); werr != nil {
			return fmt.Errorf("%w: %w", errUpstreamWrite, werr)
		}
		if done && chunked {
			writeEnd(w, x.req.Trailer)
		}
		if werr := w.Flush(); werr != nil {
			return fmt.Errorf("%w: %w", errUpstreamWrite, werr)
		}
		if done {
			return nil
		}
	}
}

// endBody waits for the body's goroutine. A body that the client has not ended
// ends here: the answer is complete, or will never be.
func (x *exchange) endBody(err error) {
	if x.body == nil {
		return
	}
	if err != nil || !x.sent.Load() {
		x.keep, x.keepUp, x.unread = false, false, true
		x.over.Store(true)
		_ = x.c.conn.SetReadDeadline(past) // wakes the goroutine
		_ = x.up.conn.Close()
	} else {
		_ = x.up.conn.SetWriteDeadline(time.Now().Add(lingerTime)) // the last part may be in a full buffer
	}
	<-x.body
	_ = x.up.conn.SetWriteDeadline(time.Time{})
	_ = x.c.conn.SetReadDeadline(time.Time{})
}

// answer reads the origin's answer and writes it to the client.
func (x *exchange) answer(gone *goneWatch) error {
	x.up.limit.N = maxHead
	if err := gone.await(); err != nil {
		return fmt.Errorf("waiting for the answer: %w", err)
	}
	for range maxInterim {
		x.up.limit.N = maxHead
		resp, err := http.ReadResponse(x.up.br, x.req)
		x.up.limit.N = math.MaxInt64
		switch {
		case err != nil:
			return fmt.Errorf("reading the answer: %w", err)
		case resp.StatusCode == http.StatusSwitchingProtocols:
			gone.stop()
			return x.switchProtocols(resp)
		case resp.StatusCode >= 200:
			return x.relay(resp)
		case x.req.ProtoAtLeast(1, 1):
			x.begun = true
			if err := x.writeHead(resp, ""); err != nil {
				return err
			}
			if err := x.c.bw.Flush(); err != nil {
				return err
			}
		}
	}
	return errors.New("too many interim answers")
}

// relay copies the final answer.
func (x *exchange) relay(resp *http.Response) error {
	x.begun = true
	x.keep = x.sent.Load() && x.req.ProtoAtLeast(1, 1) && !x.req.Close && !hasToken(x.req.Header, "Proxy-Connection", "close")
	framing, chunked := x.framing(resp)
	if !x.keep {
		framing += "Connection: close\r\n"
	}
	if err := x.writeHead(resp, framing); err != nil {
		return err
	}
	if err := x.copyAnswer(resp, chunked); err != nil {
		return err
	}
	x.keepUp = !resp.Close && x.sent.Load()
	return nil
}

// framing says how the end of the answer's body is told to the client.
func (x *exchange) framing(resp *http.Response) (header string, chunked bool) {
	switch {
	case x.r.Method == "HEAD":
		if v := resp.Header["Content-Length"]; len(v) > 0 && resp.ContentLength >= 0 {
			return "Content-Length: " + strconv.FormatInt(resp.ContentLength, 10) + "\r\n", false
		}
		return "", false
	case resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified:
		return "", false
	case resp.ContentLength >= 0:
		return "Content-Length: " + strconv.FormatInt(resp.ContentLength, 10) + "\r\n", false
	case x.req.ProtoAtLeast(1, 1):
		return "Transfer-Encoding: chunked\r\n" + trailerLine(resp.Trailer), true
	}
	x.keep = false // HTTP/1.0: the body ends with the connection
	return "", false
}

// writeHead writes the status line and the end-to-end headers.
func (x *exchange) writeHead(resp *http.Response, framing string) error {
	w := x.c.bw
	_ = x.c.conn.SetWriteDeadline(time.Now().Add(idleTimeout)) // an error shows at the write
	reason := http.StatusText(resp.StatusCode)
	if _, r, ok := strings.Cut(resp.Status, " "); ok && plainText(r) {
		reason = r
	}
	for _, s := range [...]string{"HTTP/1.1 ", strconv.Itoa(resp.StatusCode), " ", reason, "\r\n"} {
		_, _ = w.WriteString(s) // an error shows at the last write
	}
	if err := forwarded(resp.Header).Write(w); err != nil {
		return err
	}
	_, err := w.WriteString(framing + "\r\n")
	return err
}

func plainText(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}

// copyAnswer copies the body part by part as it comes: nothing is held back.
func (x *exchange) copyAnswer(resp *http.Response, chunked bool) error {
	w := x.c.bw
	buf := takeBuffer()
	defer buffers.Put(buf)
	for {
		_ = x.up.conn.SetReadDeadline(time.Now().Add(idleTimeout)) // errors show at the use
		n, err := resp.Body.Read(*buf)
		if err != nil && err != io.EOF {
			_ = w.Flush() // what came is the client's
			return fmt.Errorf("reading the answer's body: %w", err)
		}
		_ = x.c.conn.SetWriteDeadline(time.Now().Add(idleTimeout))
		if werr := writePart(w, (*buf)[:n], chunked); werr != nil {
			return werr
		}
		if err == io.EOF && chunked {
			writeEnd(w, resp.Trailer)
		}
		if werr := w.Flush(); werr != nil || err == io.EOF {
			return werr
		}
	}
}

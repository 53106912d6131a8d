package egress

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"time"

	"agentguard/guard/event"
)

// lingerTime and lingerBytes bound what is read from a client after a refusal,
// so that it can read the answer before the connection is reset.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 1 << 20
)

// client is one connection from inside. Its requests are taken one after the
// other, each judged by itself.
type client struct {
	p    *Proxy
	conn net.Conn
	head *headReader
	br   *bufio.Reader // over head
	bw   *bufio.Writer
	up   *upstream // the connection the last request used, nil when it ended
}

func newClient(p *Proxy, conn net.Conn) *client {
	h := &headReader{r: conn}
	return &client{p: p, conn: conn, head: h, br: bufio.NewReader(h), bw: bufio.NewWriter(conn)}
}

func (c *client) serve() {
	defer c.dropUpstream()
	defer c.survive()
	for c.next() {
	}
}

// survive turns a panic, which only a fault in this package or below can cause,
// into the end of one connection: the process around has a run to check after
// this, and no client may keep it from that.
func (c *client) survive() {
	v := recover()
	if v == nil {
		return
	}
	what := "unknown"
	if re, ok := v.(runtime.Error); ok { // others could hold what a client sent
		what = re.Error()
	}
	c.p.sink.Report(event.Event{
		Time: time.Now(), Kind: event.EgressHTTP, Reason: "a fault in the proxy ended a connection",
		Detail: map[string]string{"code": string(CodeFault), "fault": what},
	})
}

// next answers one request and says whether another may follow.
func (c *client) next() bool {
	_ = c.conn.SetReadDeadline(time.Now().Add(idleTimeout)) // an error shows at the read
	if _, err := c.br.Peek(1); err != nil {
		return false
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(headTimeout))
	c.head.record(c.br)
	req, err := http.ReadRequest(c.br)
	head := c.head.stop(c.br)
	_ = c.conn.SetReadDeadline(time.Time{})
	if err != nil {
		return c.malformed(err)
	}
	r, err := gate(req, head)
	if err != nil {
		var re *RequestError
		if !errors.As(err, &re) {
			re = &RequestError{CodeBadRequest, err.Error()}
		}
		c.refuse(req, r, Decision{Code: re.Code, Reason: re.Reason}, true)
		return false
	}
	d := c.p.rules.decide(r)
	if r.Tunnel {
		c.tunnel(req, r, d)
		return false
	}
	return c.forward(req, r, d)
}

// malformed answers what net/http could not parse; a client that went away in
// the middle, or took too long, gets nothing.
func (c *client) malformed(err error) bool {
	switch {
	case errors.Is(c.head.err, errHeadTooLong):
		c.refuse(nil, Request{}, Decision{Code: CodeBadRequest, Reason: "the headers are longer than 64 KiB"}, true)
	case c.head.err != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
	default:
		c.refuse(nil, Request{}, Decision{Code: CodeBadRequest, Reason: "the request is not HTTP/1"}, true)
	}
	return false
}

// refuse answers with a refusal and reports it. closing ends the connection
// with it.
func (c *client) refuse(req *http.Request, r Request, d Decision, closing bool) {
	a := answer{Status: statusOf(d.Code), Code: d.Code, Reason: d.Reason, Allow: d.Allow}
	if r.Host != "" {
		a.Request = r.subject()
	}
	if d.Rule != nil {
		a.Rule = d.Rule.Pos.String()
	}
	c.report(r, d, nil)
	if c.write(a.bytes(req, closing)) != nil || !closing {
		return
	}
	linger(c.conn, c.br)
}

// linger lets a client read the last answer although it may still be sending.
func linger(conn net.Conn, in io.Reader) {
	if t, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = t.CloseWrite() // the connection is closed next
	}
	_ = conn.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, in, lingerBytes) // only to empty the socket
}

func (c *client) write(b []byte) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(idleTimeout)) // an error shows at the write
	if _, err := c.bw.Write(b); err != nil {
		return err
	}
	return c.bw.Flush()
}

// report tells the sink about one decision. The subject of what could not be
// parsed is empty, not the client's bytes.
func (c *client) report(r Request, d Decision, detail map[string]string) {
	e := event.Event{Time: time.Now(), Kind: event.EgressHTTP, Verdict: d.Verdict, Reason: d.Reason, Detail: detail}
	if r.Tunnel {
		e.Kind = event.EgressTunnel
	}
	if r.Host != "" {
		e.Subject = r.subject()
	}
	if d.Rule != nil {
		e.Rule = d.Rule.Pos.String()
	}
	if d.Code != "" {
		if e.Detail == nil {
			e.Detail = make(map[string]string, 1)
		}
		e.Detail["code"] = string(d.Code)
	}
	if len(d.Allow) > 0 {
		e.Hint = d.Allow[len(d.Allow)-1]
	}
	c.p.sink.Report(e)
}

// failed makes a decision of an error that came up while connecting.
func failed(r Request, d Decision, err error) Decision {
	var ae *AddressError
	if !errors.As(err, &ae) {
		// The decision to let it through stands; there is just nobody there.
		return Decision{Verdict: d.Verdict, Code: CodeDial, Reason: r.Host + " did not accept the connection", Rule: d.Rule}
	}
	out := Decision{Code: ae.Code, Reason: ae.Reason, Rule: d.Rule}
	if ae.Open.IsValid() {
		open := ae.Open
		out.Allow = allowLines(r, &open)
	}
	return out
}

func remoteAddr(c net.Conn) string {
	if t, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()).String()
	}
	return ""
}

// errHeadTooLong says that a header block went over [maxHead].
var errHeadTooLong = errors.New("the header block is too long")

// headReader keeps what is read through it while a header block is parsed, so
// that the block can be judged as it stood on the wire, and bounds it.
type headReader struct {
	r    io.Reader
	on   bool
	kept []byte
	err  error // of the last read: net/http tells half a line, not why it ends
}

func (h *headReader) Read(p []byte) (int, error) {
	if !h.on {
		return h.r.Read(p)
	}
	room := maxHead - len(h.kept)
	if room <= 0 {
		h.err = errHeadTooLong
		return 0, h.err
	}
	n, err := h.r.Read(p[:min(len(p), room)])
	h.kept, h.err = append(h.kept, p[:n]...), err
	return n, err
}

// record starts with what br has read already.
func (h *headReader) record(br *bufio.Reader) {
	b, _ := br.Peek(br.Buffered()) // what is buffered is there
	h.on, h.err, h.kept = true, nil, append(h.kept[:0], b...)
}

// stop returns what was taken out of br since record. It is valid until the
// next record.
func (h *headReader) stop(br *bufio.Reader) []byte {
	h.on = false
	return h.kept[:len(h.kept)-br.Buffered()]
}

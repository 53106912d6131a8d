package egress

import (
	"bufio"
	"context"
	"io"
	"net"
	"syscall"
	"time"

	"agentguard/guard/policy"
)

// vettedFresh is how long a connection is used again without resolving and
// judging its host anew.
const vettedFresh = 5 * time.Minute

// upstream is a connection to an origin. It belongs to one client connection,
// and is used again only for the same rule, host and port, so a connection
// that one rule opened to a private address never serves another.
type upstream struct {
	conn  *net.TCPConn
	limit *io.LimitedReader // bounds an answer's headers
	br    *bufio.Reader     // over limit
	bw    *bufio.Writer

	rule   *policy.Rule
	host   string
	port   uint16
	since  time.Time
	reused bool
}

func (p *Proxy) connect(ctx context.Context, r Request, d Decision) (*net.TCPConn, error) {
	v, err := p.resolver.resolve(ctx, r, d.private)
	if err != nil {
		return nil, err
	}
	conn, err := v.dial(ctx)
	if err != nil {
		return nil, err
	}
	if !p.track(conn) {
		_ = conn.Close() // the proxy is closing
		return nil, net.ErrClosed
	}
	return conn, nil
}

// upstreamFor returns a connection for r: the last one when it fits and lives,
// else a new one.
func (c *client) upstreamFor(r Request, d Decision) (*upstream, error) {
	if u := c.up; u != nil {
		if u.rule == d.Rule && u.host == r.Host && u.port == r.Port && time.Since(u.since) < vettedFresh && u.alive() {
			u.reused = true
			return u, nil
		}
		c.dropUpstream()
	}
	conn, err := c.p.connect(c.p.ctx, r, d)
	if err != nil {
		return nil, err
	}
	lim := &io.LimitedReader{R: conn, N: maxHead}
	c.up = &upstream{
		conn: conn, limit: lim, br: bufio.NewReader(lim), bw: bufio.NewWriter(conn),
		rule: d.Rule, host: r.Host, port: r.Port, since: time.Now(),
	}
	return c.up, nil
}

func (c *client) dropUpstream() {
	if c.up == nil {
		return
	}
	_ = c.up.conn.Close() // nothing of it is used any more
	c.p.untrack(c.up.conn)
	c.up = nil
}

// alive says whether nothing came and nobody hung up while the connection was
// idle: bytes that nobody asked for must not become the answer to the next
// request.
func (u *upstream) alive() bool {
	if u.br.Buffered() > 0 {
		return false
	}
	raw, err := u.conn.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN
	})
	return err == nil && quiet
}

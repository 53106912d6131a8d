// Package egress gives a run its only way out: an HTTP proxy that decides each
// request and each tunnel by policy, resolves the host itself, judges every
// address it got, and dials exactly those.
//
// One canonical [Request] is made from the bytes a client sent. It feeds the
// decision, the dial, the bytes sent upstream and the event, so what was judged
// is what is sent. Nothing is allowed by default: a rule of the policy must
// match, a deny rule wins, and the zero [Decision] refuses.
//
// Does not look into TLS: a rule with methods, paths or a query therefore
// refuses CONNECT, and whoever controls an allowed host, or shares a front end
// with it, can be sent anything by a tunnel to it. What can be seen of a tunnel
// is checked: port 443 carries TLS only, a server name in the ClientHello must
// be the host that was asked for, an encrypted ClientHello is refused; on other
// ports a rule without methods and paths lets any bytes through. Does not hide
// the asked names from the resolver, so a rule with a wildcard lets data out in
// the labels of a name. Does not bound what goes out: a rule that allows a host
// allows any amount, in a query as in a body. Does not hold a client to the proxy: that is the empty
// network namespace around it; the variables of [Environ] are a convenience.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"agentguard/guard/event"
	"agentguard/guard/policy"
)

// Limits that hold for every run. They bound what a hostile client or origin
// can make the proxy keep in memory or wait for.
const (
	maxHead     = 64 << 10         // bytes of one request's or answer's header block
	maxConns    = 1024             // client connections at a time, see connections
	filesPer    = 6                // descriptors of one tunnel: two sockets and the kernel's pipes between them
	headTimeout = 30 * time.Second // from the first byte of a request to the end of its headers
	idleTimeout = 5 * time.Minute  // nothing moved, or no next request
	waitTimeout = 10 * time.Minute // from a request to the first byte of its answer: models think for minutes
	dnsTimeout  = 5 * time.Second
	dialTimeout = 10 * time.Second // per address
	acceptPause = 50 * time.Millisecond
)

// LookupFunc resolves a host to all its addresses.
type LookupFunc func(ctx context.Context, host string) ([]netip.Addr, error)

// Config is what a proxy works by. The zero Config refuses everything.
type Config struct {
	Policy policy.Egress
	Sink   event.Sink // nil: events are dropped

	// Lookup resolves names; nil is Go's own resolver with the system's
	// configuration, never the C library's.
	Lookup LookupFunc

	// Own lists the addresses of this machine, which count as private; nil
	// asks the kernel.
	Own func() ([]netip.Addr, error)
}

// Proxy is a running proxy. Use [New].
type Proxy struct {
	rules    ruleset
	resolver resolver
	sink     event.Sink
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	slots    chan struct{} // one token a client connection

	mu     sync.Mutex // guards everything below
	closed bool
	open   map[interface{ Close() error }]struct{} // listeners and connections that Close must end
	wg     sync.WaitGroup
}

// New checks c and returns a proxy that is not serving yet.
func New(c Config) (*Proxy, error) {
	rules, err := compile(c.Policy)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		rules:    rules,
		resolver: newResolver(c),
		sink:     c.Sink,
		slots:    make(chan struct{}, connections()),
		open:     make(map[interface{ Close() error }]struct{}),
	}
	if p.sink == nil {
		p.sink = event.Discard
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// Serve answers the connections of l until Close, when it returns nil. It
// closes l. One proxy can serve several listeners.
func (p *Proxy) Serve(l net.Listener) error {
	defer l.Close()
	if !p.track(l) {
		return nil
	}
	defer p.untrack(l)
	for {
		c, err := l.Accept()
		if err != nil {
			if p.ctx.Err() != nil {
				return nil
			}
			if p.passing(err) {
				continue
			}
			return fmt.Errorf("accepting a connection: %w", err)
		}
		p.admit(c)
	}
}

// passing says whether an error of accept goes away by itself, after waiting a
// moment for that.
func (p *Proxy) passing(err error) bool {
	switch {
	case errors.Is(err, syscall.ECONNABORTED):
		return true
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
	default:
		return false
	}
	select {
	case <-time.After(acceptPause):
	case <-p.ctx.Done():
	}
	return true
}

// connections is how many clients are served at a time: at most [maxConns], and
// never so many that a client inside could use up the descriptors that the rest
// of this process needs to do its work.
func connections() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 1
	}
	return int(min(maxConns, max(1, l.Cur/2/filesPer)))
}

// admit starts the goroutine of one client connection, or refuses the client
// when there are too many.
func (p *Proxy) admit(c net.Conn) {
	select {
	case p.slots <- struct{}{}:
	default:
		busy(c)
		return
	}
	if !p.track(c) {
		<-p.slots
		_ = c.Close() // the proxy is closing
		return
	}
	go func() {
		defer func() { <-p.slots }()
		defer p.untrack(c)
		defer c.Close()
		newClient(p, c).serve()
	}()
}

// track makes c end with the proxy and makes Close wait for it. It says false
// when the proxy is closed already.
func (p *Proxy) track(c interface{ Close() error }) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.open[c] = struct{}{}
	p.wg.Add(1)
	return true
}

func (p *Proxy) untrack(c interface{ Close() error }) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	p.wg.Done()
}

// Close ends every connection and waits until nothing of the proxy runs any
// more. It may be called twice.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.cancel()
	for c := range p.open {
		_ = c.Close() // its user sees the error and ends
	}
	p.mu.Unlock()
	p.wg.Wait()
	return nil
}

package egress

import (
	"errors"
	"os"
	"time"
)

// goneWatch notices that a client hung up while its answer is awaited, so that
// an origin that never answers is not waited for in vain. A client that ends
// only its sending side looks the same and counts as gone.
type goneWatch struct {
	x    *exchange
	done chan struct{} // closed when the watching goroutine ended; nil before it started
}

func (x *exchange) watch() *goneWatch { return &goneWatch{x: x} }

// await waits for the first byte of the answer.
func (g *goneWatch) await() error {
	up := g.x.up
	_ = up.conn.SetReadDeadline(time.Now().Add(goneCheck)) // errors show at the read
	_, err := up.br.Peek(1)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	g.start()
	_ = up.conn.SetReadDeadline(time.Now().Add(waitTimeout))
	_, err = up.br.Peek(1)
	return err
}

// start watches unless the request's body is still read, whose reader notices
// by itself. Bytes from the client are the next request, and end the watch.
func (g *goneWatch) start() {
	if b := g.x.body; b != nil {
		select {
		case <-b:
		default:
			return
		}
	}
	g.done = make(chan struct{})
	go func() {
		defer close(g.done)
		if _, err := g.x.c.br.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			_ = g.x.up.conn.Close() // wakes the reader of the answer
		}
	}()
}

// stop ends the watch.
func (g *goneWatch) stop() {
	if g.done == nil {
		return
	}
	_ = g.x.c.conn.SetReadDeadline(past) // wakes the goroutine
	<-g.done
	_ = g.x.c.conn.SetReadDeadline(time.Time{})
	g.done = nil
}

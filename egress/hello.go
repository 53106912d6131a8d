package egress

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

const (
	recordHandshake = 0x16   // first byte of every TLS connection
	tlsPort         = 443    // carries TLS and nothing else
	echExtension    = 0xfe0d // encrypted ClientHello
	maxHello        = 64 << 10
)

// sniff reads what a client says first in a tunnel and returns it, to be sent
// on. A ClientHello must be for the host that the tunnel was asked for: behind
// one address there are many hosts, and the name in the ClientHello chooses.
// On port 443 anything but a ClientHello is refused.
func sniff(in io.Reader, r Request) ([]byte, error) {
	rec := &helloConn{r: in}
	var b [1]byte
	if _, err := io.ReadFull(rec, b[:]); err != nil {
		return rec.kept, err
	}
	if b[0] != recordHandshake {
		if r.Port == tlsPort {
			return nil, bad(CodeNotTLS, "a tunnel to port 443 carries TLS only")
		}
		return rec.rest()
	}
	rec.again = rec.kept
	hello, err := rec.hello()
	switch {
	case err != nil:
		return nil, err
	case slices.Contains(hello.Extensions, echExtension):
		return nil, bad(CodeSNI, "the ClientHello is encrypted, so the host it is for cannot be seen")
	case hello.ServerName != "" && !strings.EqualFold(hello.ServerName, r.Host):
		return nil, bad(CodeSNI, "the ClientHello is for another host than the tunnel")
	}
	return rec.rest()
}

// tunnelRefusal tells the client inside an open tunnel: a TLS client by the
// alert "unrecognized name", any other by an HTTP answer.
func tunnelRefusal(e *RequestError, r Request) []byte {
	if e.Code == CodeSNI {
		return []byte{0x15, 3, 3, 0, 2, 2, 112}
	}
	a := answer{Status: statusOf(e.Code), Code: e.Code, Reason: e.Reason, Request: r.subject()}
	return a.bytes(nil, true)
}

// helloConn lets crypto/tls read a ClientHello, keeps the bytes, and answers
// nothing.
type helloConn struct {
	r     io.Reader
	kept  []byte // everything read from r
	again []byte // read already, to be read once more
}

var errHelloRead = errors.New("the ClientHello is read")

// hello returns what the ClientHello says.
func (h *helloConn) hello() (*tls.ClientHelloInfo, error) {
	var got *tls.ClientHelloInfo
	err := tls.Server(h, &tls.Config{
		MinVersion: tls.VersionTLS10, // nothing is negotiated: the origin decides
		GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
			got = i
			return nil, errHelloRead
		},
	}).Handshake()
	switch {
	case got != nil:
		return got, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return nil, err
	}
	return nil, bad(CodeSNI, "the ClientHello cannot be read")
}

// rest returns the bytes to send on, among them those that came with the first
// ones.
func (h *helloConn) rest() ([]byte, error) {
	if early, ok := h.r.(*restReader); ok {
		h.kept = append(h.kept, early.rest...)
		early.rest = nil
	}
	return h.kept, nil
}

func (h *helloConn) Read(p []byte) (int, error) {
	if len(h.again) > 0 {
		n := copy(p, h.again)
		h.again = h.again[n:]
		return n, nil
	}
	if len(h.kept) >= maxHello {
		return 0, bad(CodeSNI, "the ClientHello is too long")
	}
	n, err := h.r.Read(p)
	h.kept = append(h.kept, p[:n]...)
	return n, err
}

func (h *helloConn) Write(p []byte) (int, error)      { return len(p), nil }
func (h *helloConn) Close() error                     { return nil }
func (h *helloConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (h *helloConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (h *helloConn) SetDeadline(time.Time) error      { return nil }
func (h *helloConn) SetReadDeadline(time.Time) error  { return nil }
func (h *helloConn) SetWriteDeadline(time.Time) error { return nil }

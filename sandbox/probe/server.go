package probe

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"time"
)

// serve starts every server of the plant on loopback and in dir.
func (p *Planted) serve(env *Env, dir string) error {
	origin := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, env.Canary) // a client that is gone is no concern
	})
	var err error
	if env.HTTP, err = p.serveHTTP(origin, nil); err != nil {
		return err
	}
	certificate, text, err := certify()
	if err != nil {
		return err
	}
	env.Cert = text
	if env.HTTPS, err = p.serveHTTP(origin, &tls.Config{Certificates: []tls.Certificate{certificate}}); err != nil {
		return err
	}
	if env.Proxy, err = p.serveHTTP(openProxy(origin), nil); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(env.HTTP)
	if err != nil {
		return err
	}
	env.AllowedHost, env.DeniedHost = net.JoinHostPort(allowedName, port), net.JoinHostPort(deniedName, port)
	if err := p.serveDNS(env); err != nil {
		return err
	}
	env.Socket = filepath.Join(dir, "socket")
	if err := p.serveGreeting("unix", env.Socket, env.Canary); err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		return nil // nothing else has abstract sockets
	}
	env.Abstract = "agentguard-" + rand.Text()
	return p.serveGreeting("unix", "@"+env.Abstract, env.Canary)
}

func (p *Planted) serveHTTP(handler http.Handler, secure *tls.Config) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := l.Addr().String()
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: patience}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	p.undo = append(p.undo, func() error {
		err := server.Close()
		if ended := <-done; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return err
	})
	return address, nil
}

// openProxy is what a proxy is without a policy: it answers for every host,
// itself, so that nothing is dialled.
func openProxy(origin http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			origin.ServeHTTP(w, r)
			return
		}
		c, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return // the client sees the end of the connection
		}
		defer c.Close()
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			return // the same
		}
		if inner, err := http.ReadRequest(buffered.Reader); err == nil {
			answer(c, inner, origin)
		}
	})
}

// answer writes what the handler says to a request that came in a tunnel.
func answer(w io.Writer, r *http.Request, origin http.Handler) {
	said := &body{header: http.Header{}}
	origin.ServeHTTP(said, r)
	_, _ = fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(said.text), said.text) // a client that is gone is no concern
}

// body is a response writer that keeps the text.
type body struct {
	header http.Header
	text   []byte
}

func (b *body) Header() http.Header { return b.header }

func (b *body) WriteHeader(int) {}

func (b *body) Write(text []byte) (int, error) {
	b.text = append(b.text, text...)
	return len(text), nil
}

// serveDNS answers a name server's question as one, and anything else with the
// canary.
func (p *Planted) serveDNS(env *Env) error {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	env.DNS = c.LocalAddr().String()
	canary := []byte(env.Canary)
	p.background(c.Close, func() error {
		got := make([]byte, 1500)
		n, from, err := c.ReadFrom(got)
		if err != nil {
			return err
		}
		reply := canary
		if n > 12 {
			reply = dnsAnswer(got[:n])
		}
		_, _ = c.WriteTo(reply, from) // a client that is gone is no concern
		return nil
	})
	return nil
}

// serveGreeting says the canary to whoever connects.
func (p *Planted) serveGreeting(network, address, canary string) error {
	l, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	p.background(l.Close, func() error {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		_, _ = io.WriteString(c, canary) // a client that is gone is no concern
		_ = c.Close()                    // the same
		return nil
	})
	return nil
}

// background serves one after the other until an error ends it, which is as a
// rule the closing.
func (p *Planted) background(stop, one func() error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if one() != nil {
				return
			}
		}
	}()
	p.undo = append(p.undo, func() error {
		err := stop()
		<-done
		return err
	})
}

// certify makes a certificate for loopback that nobody else trusts.
func certify() (tls.Certificate, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:         true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(text), nil
}

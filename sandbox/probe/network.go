package probe

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// metadata is where clouds answer with credentials. It is only ever named to a
// proxy: outside to the planted one, which answers itself, inside to the
// run's own, which must refuse to dial it.
const metadata = "169.254.169.254:80"

// networkAttempts reach for servers on the machine's loopback, which stand for
// any address outside, and for hosts that the proxy must refuse.
func networkAttempts() []attempt {
	const empty, policy = "the network is empty", "the proxy denies by default"
	return []attempt{
		{Attempt{"net.tcp", "connect to a server on the machine's loopback", empty, Refused}, func(env Env) error {
			return fetch(env, &http.Transport{}, "http://"+env.HTTP+"/")
		}},
		{Attempt{"net.udp", "send a datagram to the machine's loopback", empty, Refused}, func(env Env) error {
			return datagram(env.DNS, []byte("x"), []byte(env.Canary))
		}},
		{Attempt{"proxy.http", "fetch from a host that is not allowed", policy, Refused}, func(env Env) error {
			return throughProxy(env, env.DeniedHost)
		}},
		{Attempt{"proxy.connect", "open a tunnel to a host that is not allowed", policy, Refused}, func(env Env) error {
			return tunnel(env, env.DeniedHost)
		}},
		{Attempt{"proxy.metadata", "fetch the metadata address through the proxy", "special-purpose addresses are refused", Refused}, func(env Env) error {
			return throughProxy(env, metadata)
		}},
		{Attempt{"proxy.loopback", "fetch from the machine's loopback through the proxy", "special-purpose addresses are refused", Refused}, func(env Env) error {
			return throughProxy(env, env.HTTP)
		}},
	}
}

func fetchDirectly(env Env) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(env.Cert)) {
		return errors.New("no certificate in the plant")
	}
	return fetch(env, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, "https://"+env.HTTPS+"/")
}

func throughProxy(env Env, host string) error {
	proxy, err := proxyOf(env)
	if err != nil {
		return err
	}
	return fetch(env, &http.Transport{Proxy: http.ProxyURL(proxy)}, "http://"+host+"/")
}

// fetch succeeds on the canary only; the answer 403 is a proxy's refusal.
func fetch(env Env, transport *http.Transport, address string) error {
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	answer, err := client.Get(address)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err != nil {
		return err
	}
	return told(env, answer.StatusCode, body)
}

func told(env Env, status int, body []byte) error {
	switch {
	case status == http.StatusForbidden:
		return refused("answered with status 403")
	case status != http.StatusOK:
		return fmt.Errorf("answered with status %d", status)
	case !bytes.Contains(body, []byte(env.Canary)):
		return errors.New("another server answers there")
	}
	return nil
}

// tunnel asks the proxy for a connection and fetches through it.
func tunnel(env Env, host string) error {
	proxy, err := proxyOf(env)
	if err != nil {
		return err
	}
	c, err := net.DialTimeout("tcp", proxy.Host, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", host, host); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	answer, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return told(env, answer.StatusCode, nil)
	}
	if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host); err != nil {
		return err
	}
	answer, err = http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err != nil {
		return err
	}
	return told(env, answer.StatusCode, body)
}

// proxyOf gives the planted proxy outside and the run's own inside.
func proxyOf(env Env) (*url.URL, error) {
	address := env.Proxy
	for _, name := range []string{"http_proxy", "HTTP_PROXY"} {
		if address == "" && env.Inside {
			address = os.Getenv(name)
		}
	}
	if address == "" {
		return nil, refused("there is no proxy")
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	return url.Parse(address)
}

// resolveDirectly asks the planted name server what the answer for a name is.
func resolveDirectly(env Env) error {
	query := []byte{
		0x1d, 0x1d, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, // one question, recursion wanted
		6, 'c', 'a', 'n', 'a', 'r', 'y', 4, 't', 'e', 's', 't', 0, 0, 1, 0, 1, // canary.test A IN
	}
	return datagram(env.DNS, query, dnsAnswer(query))
}

// dnsAnswer is what the planted name server says: 192.0.2.1, an address for
// documentation.
func dnsAnswer(query []byte) []byte {
	answer := append([]byte{}, query...)
	answer[2], answer[3], answer[7] = 0x81, 0x80, 1
	return append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1)
}

func datagram(address string, say, want []byte) error {
	c, err := net.DialTimeout("udp", address, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := c.Write(say); err != nil {
		return err
	}
	got := make([]byte, 1500)
	n, err := c.Read(got)
	if err != nil {
		return err
	}
	if !bytes.Equal(got[:n], want) {
		return refused("another server answers there")
	}
	return nil
}

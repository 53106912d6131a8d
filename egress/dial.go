package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// errNotVetted says that something tried to dial what was not judged. It is
// never seen unless this package is wrong.
var errNotVetted = errors.New("the address was not judged for this request")

// dial connects to the first of the judged addresses that answers. The kernel's
// side judges again: whatever ends up in the call to connect must be one of
// them and must still be no special-purpose address.
func (v *vetted) dial(ctx context.Context) (*net.TCPConn, error) {
	d := net.Dialer{
		Timeout:       dialTimeout,
		FallbackDelay: -1,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return v.check(address)
		},
	}
	d.SetMultipathTCP(false) // keeps splice
	var last error
	for _, a := range v.addrs {
		c, err := d.DialContext(ctx, "tcp", a.String())
		if err == nil {
			return c.(*net.TCPConn), nil
		}
		last = err
	}
	if last == nil {
		last = errNotVetted
	}
	return nil, fmt.Errorf("connecting: %w", last)
}

func (v *vetted) check(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q", errNotVetted, address)
	}
	ap = netip.AddrPortFrom(canonicalAddr(ap.Addr()), ap.Port())
	if !slices.Contains(v.addrs, ap) || v.guard.judge(ap.Addr()) != nil {
		return fmt.Errorf("%w: %q", errNotVetted, address)
	}
	return nil
}

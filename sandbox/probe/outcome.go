package probe

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// refusal is an error that refuses without an errno: the proxy's answer, a
// silent network, a target that is another one under the same name.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

func refused(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// absence is the error of an attempt that finds nothing of the kind here.
type absence struct{ what string }

func (a *absence) Error() string { return a.what }

func absent(format string, args ...any) error { return &absence{fmt.Sprintf(format, args...)} }

// weather is what a machine short of something answers to anything: no
// refusal.
var weather = map[syscall.Errno]bool{
	syscall.ENOMEM: true, syscall.EMFILE: true, syscall.ENFILE: true, syscall.EINTR: true, syscall.EAGAIN: true,
}

// outcome makes the attempt and sorts what it met.
func outcome(a attempt, env Env) Outcome {
	o := Outcome{ID: a.ID, State: Succeeded}
	err := a.try(env)
	if err == nil {
		return o
	}
	o.Detail = err.Error()
	if env.Canary != "" {
		o.Detail = strings.ReplaceAll(o.Detail, env.Canary, "(canary)")
	}
	o.State = Broken
	if _, ok := errors.AsType[*absence](err); ok {
		o.State = Absent
	} else if _, ok := errors.AsType[*refusal](err); ok {
		o.State = Denied
	} else if e, ok := errors.AsType[syscall.Errno](err); ok {
		o.Errno = unix.ErrnoName(e)
		if !weather[e] {
			o.State = Denied
		}
	} else if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		o.State = Denied // every server of the plant answers at once
	}
	return o
}

package policy

import (
	"net"
	"strconv"
	"strings"

	"agentguard/guard/surface"
)

// document turns flags into a layer like a file's, with the flag in the place
// of the file.
func (f Flags) document() (*document, Errors) {
	d := &document{}
	r := flagReader{}
	s := &d.sandbox
	s.workspace = flagWord(&r, "--workspace", "sandbox.workspace", f.Workspace, workspaceWords)
	s.profile = flagWord(&r, "--profile", "sandbox.profile", f.Profile, profileWords)
	s.broker = flagWord(&r, "--broker", "sandbox.broker", f.Broker, brokerWords)
	path := func(v string) (string, error) { return v, nil }
	glob := func(v string) (string, error) { return v, surface.ParseGlob(v) }
	name := func(v string) (string, error) { return v, checkEnvName(v) }
	s.read = flagList(&r, "--read", "sandbox.read", f.Read, path)
	s.write = flagList(&r, "--write", "sandbox.write", f.Write, path)
	s.protect = flagList(&r, "--protect", "sandbox.protect", f.Protect, glob)
	s.unprotect = flagList(&r, "--unprotect", "sandbox.unprotect", f.Unprotect, glob)
	s.pass = flagList(&r, "--env", "sandbox.env.pass", f.EnvPass, name)
	d.egress.allow = flagList(&r, "--allow", "egress.allow", f.Allow, flagRule)
	return d, r.errs
}

type flagReader struct{ errs Errors }

func (r *flagReader) fail(o origin, err error) { r.errs = append(r.errs, o.err(err)) }

func flagWord[T any](r *flagReader, flag, key, v string, words map[string]T) *word[T] {
	if v == "" {
		return nil
	}
	o := origin{pos: Pos{File: flag}, key: key, text: quote(v)}
	got, ok := words[v]
	switch {
	case !ok:
		r.fail(o, errorString("unknown value "+strconv.Quote(clip(v))+": "+nearest(v, keysOf(words))))
	case hasGap(key, v):
		r.fail(o, errorString(v+" is not built yet"))
	}
	return &word[T]{got, o}
}

func flagList[T any](r *flagReader, flag, key string, vs []string, parse func(string) (T, error)) []word[T] {
	var out []word[T]
	for _, v := range vs {
		o := origin{pos: Pos{File: flag}, key: key, text: quote(v)}
		if v == "" || strings.ContainsRune(v, 0) {
			r.fail(o, errorString("is empty or holds a NUL byte"))
			continue
		}
		got, err := parse(v)
		if err != nil {
			r.fail(o, err)
			continue
		}
		out = append(out, word[T]{got, o})
	}
	return out
}

// flagRule reads HOST or HOST:PORT.
func flagRule(v string) (Rule, error) {
	r := Rule{Pos: Pos{File: "--allow"}}
	host := v
	if h, port, err := net.SplitHostPort(v); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return r, errorString("the port is not a number from 1 to 65535")
		}
		host, r.Ports = h, []uint16{uint16(n)}
	}
	var err error
	if r.Host, err = ParseHost(host); err != nil {
		return r, err
	}
	return checkAllow(r)
}

// errorString is an error that is its text.
type errorString string

func (e errorString) Error() string { return string(e) }

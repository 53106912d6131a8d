package policy

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// FuzzLoad holds for any bytes of a repository's file: no panic; errors have a
// place in the file; without a yes nothing is opened; a yes changes nothing
// but what waited; the result is the same twice.
func FuzzLoad(f *testing.F) {
	for _, kind := range []string{"good", "bad"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "policy", kind, "*.yaml"))
		if err != nil || len(files) == 0 {
			f.Fatalf("no seeds: %v", err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := goldenInput(data)
		in.RepoTrusted = false
		p, err := Load(in)
		if err != nil {
			checkErrors(t, err, strings.Count(string(data), "\n")+1)
			return
		}
		checkOpensNothing(t, p)
		again, err := Load(in)
		if err != nil || again.Digest() != p.Digest() || again.String() != p.String() {
			t.Fatalf("loading twice differs: %v\n%s\n%s", err, p, again)
		}
		in.RepoTrusted = true
		trusted, err := Load(in)
		if err == nil && len(p.Pending) == 0 && trusted.Digest() != p.Digest() {
			t.Fatalf("a yes changes what nothing waited for:\n%s\n%s", p, trusted)
		}
		if err != nil && !slices.ContainsFunc(p.Pending, func(w Pending) bool { return w.Err != nil }) {
			t.Fatalf("a yes breaks what nothing warned of: %v", err)
		}
	})
}

func checkErrors(t *testing.T, err error, lines int) {
	errs, ok := errors.AsType[Errors](err)
	if !ok || len(errs) == 0 {
		t.Fatalf("not Errors: %v", err)
	}
	for _, e := range errs {
		if e.File != FileName || e.Line < 1 || e.Line > lines || e.Col < 1 || strings.ContainsAny(e.Msg, "\n\x1b") {
			t.Fatalf("%+v has no place in the file or no clean text", e)
		}
	}
}

func checkOpensNothing(t *testing.T, p *Policy) {
	s, e := p.Sandbox, p.Egress
	if len(e.Allow)+len(e.AllowPrivate)+len(e.Resolve)+len(s.Unprotect)+len(s.Env.Pass)+len(s.Env.Set)+len(s.Sockets) > 0 ||
		s.Profile != Strict || s.Broker == BrokerOff || s.Keys != KeysNone || p.Hooks.Mode != HooksPinned || e.Ask {
		t.Fatalf("opened without a yes:\n%s", p)
	}
	for _, g := range append(s.Read, s.Write...) {
		if !within(g.Real, "/nonexistent/home/repo") || !within(g.Path, "/nonexistent/home/repo") {
			t.Fatalf("granted without a yes: %s", g.Path)
		}
	}
}

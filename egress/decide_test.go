package egress

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentguard/guard/event"
	"agentguard/guard/policy"
)

// load reads a policy as a user's file.
func load(t testing.TB, text string) policy.Egress {
	t.Helper()
	p, err := policy.Load(policy.Input{User: &policy.Source{Name: "test.yaml", Data: []byte(text)}})
	if err != nil {
		t.Fatalf("loading the policy: %v", err)
	}
	return p.Egress
}

// verdict is "allowed -" or "denied CODE" for one request.
func verdict(e policy.Egress, method, target string) string {
	r, err := ParseRequest(method, target)
	var re *RequestError
	if errors.As(err, &re) {
		return "denied " + string(re.Code)
	}
	d := Decide(e, r)
	if d.Verdict == event.Allowed && d.Code == "" {
		return "allowed -"
	}
	return d.Verdict.String() + " " + string(d.Code)
}

func TestDecideTables(t *testing.T) {
	files, err := filepath.Glob("../testdata/egress/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			head, rows, ok := strings.Cut(string(b), "\n---\n")
			if !ok {
				t.Fatal("no line of dashes")
			}
			e := load(t, head)
			for _, row := range strings.Split(strings.TrimSpace(rows), "\n") {
				request, want, ok := strings.Cut(row, " => ")
				method, target, ok2 := strings.Cut(request, " ")
				if !ok || !ok2 {
					t.Fatalf("malformed row %q", row)
				}
				if got := verdict(e, method, target); got != want {
					t.Errorf("%s: got %q, want %q", request, got, want)
				}
			}
		})
	}
}

func TestZeroValuesDeny(t *testing.T) {
	if (Decision{}).Verdict != event.Denied {
		t.Error("the zero Decision allows")
	}
	r, err := ParseRequest("GET", "http://example.com/")
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]Decision{
		"zero policy":          Decide(policy.Egress{}, r),
		"zero request":         Decide(policy.Egress{Allow: []policy.Rule{rule(t, "example.com")}}, Request{}),
		"zero rule":            Decide(policy.Egress{Allow: []policy.Rule{{}}}, r),
		"rule without ports":   Decide(policy.Egress{Allow: []policy.Rule{{Host: mustHost(t, "example.com")}}}, r),
		"unsupported upstream": Decide(policy.Egress{UpstreamProxy: "http://x", Allow: []policy.Rule{rule(t, "example.com")}}, r),
	} {
		if d.Verdict != event.Denied || d.Reason == "" {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A policy that this proxy cannot hold a request to does not start.
func TestNewRefusesWhatIsNotEnforced(t *testing.T) {
	git := rule(t, "github.com")
	git.Git = &policy.GitRule{Fetch: []string{"a/b"}}
	budget := rule(t, "example.com")
	budget.Budget.Requests = 1
	for name, e := range map[string]policy.Egress{
		"git":         {Allow: []policy.Rule{git}},
		"budget":      {Deny: []policy.Rule{budget}},
		"passthrough": {Passthrough: []policy.HostPattern{mustHost(t, "example.com")}},
		"ask":         {Ask: true},
		"ca":          {UpstreamCA: make([]policy.Grant, 1)},
	} {
		if _, err := New(Config{Policy: e}); err == nil {
			t.Errorf("%s: accepted and ignored", name)
		}
	}
}

// What the refusal tells the user to write allows exactly what was refused.
func TestAllowLinesAllow(t *testing.T) {
	for _, req := range []string{
		"GET http://example.com/", "POST http://example.com:8080/a/b,c%20d", "CONNECT example.com:443", "CONNECT example.com:22",
		"GET http://[2001:db8::1]:81/x:y", "DELETE http://192.0.2.1/~a", "GET http://example.com/a%2Fb/?q=1",
	} {
		t.Run(req, func(t *testing.T) {
			method, target, _ := strings.Cut(req, " ")
			r, err := ParseRequest(method, target)
			if err != nil {
				t.Fatal(err)
			}
			d := Decide(policy.Egress{}, r)
			text := "version: 1\n" + strings.Join(d.Allow, "\n") + "\n"
			e := load(t, text)
			if got := Decide(e, r); got.Verdict != event.Allowed {
				t.Errorf("%s\nstill refuses: %s", text, got.Reason)
			}
			if other := verdict(e, "PUT", "http://other.example.net/"); !strings.HasPrefix(other, "denied") {
				t.Errorf("%s\nallows something else too", text)
			}
		})
	}
}

func TestDecisionNamesRule(t *testing.T) {
	e := load(t, "version: 1\negress:\n  allow:\n    - {host: a.example.com}\n    - {host: b.example.com, methods: [GET]}\n  deny:\n    - {host: c.example.com}\n")
	for _, tt := range []struct{ method, target, rule string }{
		{"GET", "http://a.example.com/", "test.yaml:4:"},
		{"POST", "http://b.example.com/", "test.yaml:5:"},
		{"GET", "http://c.example.com/", "test.yaml:7:"},
	} {
		r, err := ParseRequest(tt.method, tt.target)
		if err != nil {
			t.Fatal(err)
		}
		if d := Decide(e, r); d.Rule == nil || !strings.HasPrefix(d.Rule.Pos.String(), tt.rule) {
			t.Errorf("%s %s: decided by %v, want %s", tt.method, tt.target, d.Rule, tt.rule)
		}
	}
}

// The index finds every rule that matches, in order.
func TestHostIndex(t *testing.T) {
	var rules []policy.Rule
	for _, h := range []string{"a.test", "*.a.test", "*.test", "b.a.test", "*.b.a.test", "a.test", "192.0.2.1", "2001:db8::1", "*.a.test"} {
		rules = append(rules, rule(t, h))
	}
	ix := indexHosts(rules)
	for _, host := range []string{"a.test", "b.a.test", "c.b.a.test", "test", "x.test", "192.0.2.1", "2001:db8::1", "other", "xa.test", "a.test.other"} {
		var want, got []int
		for i := range rules {
			if rules[i].Host.Match(host) {
				want = append(want, i)
			}
		}
		for _, i := range ix.find(host, nil) {
			if rules[i].Host.Match(host) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found %v, want %v", host, got, want)
		}
	}
}

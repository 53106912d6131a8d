package policy

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestPathPatternMatch(t *testing.T) {
	tests := []struct {
		pattern, path string
		want          bool
	}{
		{"/", "/", true},
		{"/", "/a", false},
		{"/", "", false},
		{"/**", "/", true},
		{"/**", "/a/b", true},
		{"/v1/**", "/v1/", true},
		{"/v1/**", "/v1/a", true},
		{"/v1/**", "/v1/a/b", true},
		{"/v1/**", "/v1", false},
		{"/v1/**", "/v1x/a", false},
		{"/v1/**", "/V1/a", false},
		{"/v1/**", "v1/a", false},
		{"/v1", "/v1", true},
		{"/v1", "/v1/", false},
		{"/v1/", "/v1/", true},
		{"/v1/", "/v1", false},
		{"/*/x", "/a/x", true},
		{"/*/x", "//x", false},
		{"/*/x", "/a/b/x", false},
		{"/a/*", "/a/b", true},
		{"/a/*", "/a/b/c", false},
		{"/a/*", "/a/", false},
		{"/a/*", "/a", false},
		{"/*/**", "/a/b/c", true},
		{"/*/**", "/a", false},
		{"/@scope%2Fname", "/@scope%2Fname", true},
		{"/@scope%2Fname", "/@scope/name", false},
	}
	for _, tt := range tests {
		t.Run(tt.pattern+" "+tt.path, func(t *testing.T) {
			p, err := ParsePath(tt.pattern)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Match(tt.path); got != tt.want {
				t.Errorf("Match(%q) = %v, want %v", tt.path, got, tt.want)
			}
		})
	}
	if (PathPattern{}).Match("/") || (PathPattern{}).Match("") {
		t.Error("the zero pattern matches")
	}
}

func TestParsePathRefuses(t *testing.T) {
	tests := []struct{ in, want string }{
		{"v1", `starts with "/"`},
		{"", `starts with "/"`},
		{"/a b", "' '"},
		{"/a?x=1", "'?'"},
		{"/a#b", "'#'"},
		{`/a\b`, `'\\'`},
		{"/ü", "percent-encoded"},
		{"/**/a", "last segment"},
		{"/a*", "whole segment"},
		{"/***", "whole segment"},
		{"/a//b", `"//"`},
		{"//", `"//"`},
		{"/a/../b", `".."`},
		{"/..;x/b", `".."`},
		{"/.", `".."`},
		{"/%", "unfinished"},
		{"/%4", "unfinished"},
		{"/%zz", "broken"},
		{"/%61", "needless"},
		{"/%2e%2e/x", "needless"},
		{"/a%2fb", "upper case"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			p, err := ParsePath(tt.in)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ParsePath(%q) = %q, %v, want an error with %q", tt.in, p, err, tt.want)
			}
		})
	}
}

func TestPathPatternCovers(t *testing.T) {
	tests := []struct {
		p, q string
		want bool
	}{
		{"/**", "/", true},
		{"/**", "/a/**", true},
		{"/a/**", "/a/b", true},
		{"/a/**", "/a/*/c", true},
		{"/a/**", "/a/**", true},
		{"/a/**", "/a", false},
		{"/a/b/**", "/a/**", false},
		{"/a/*", "/a/b", true},
		{"/a/*", "/a/**", false},
		{"/a/b", "/a/*", false},
		{"/a/*", "/a/", false},
		{"/*/b", "/a/b", true},
	}
	for _, tt := range tests {
		p, q := mustPath(t, tt.p), mustPath(t, tt.q)
		if got := p.covers(q); got != tt.want {
			t.Errorf("%q covers %q = %v, want %v", tt.p, tt.q, got, tt.want)
		}
	}
}

// FuzzPathPatternCovers holds that a pattern which covers another matches
// whatever the other does.
func FuzzPathPatternCovers(f *testing.F) {
	f.Add("/a/**", "/a/*", "/a/b")
	f.Add("/*/**", "/x/**", "/x/")
	f.Fuzz(func(t *testing.T, a, b, path string) {
		p, err := ParsePath(a)
		if err != nil {
			return
		}
		q, err := ParsePath(b)
		if err != nil {
			return
		}
		if p.covers(q) && q.Match(path) && !p.Match(path) {
			t.Fatalf("%q covers %q but does not match %q", a, b, path)
		}
	})
}

func TestZeroRuleMatchesNothing(t *testing.T) {
	var r Rule
	if r.Host.Match("example.com") || r.MatchPort(443) || r.MatchPort(0) {
		t.Error("the zero rule matches")
	}
}

func TestRuleMatch(t *testing.T) {
	r := Rule{
		Methods: []string{"GET"}, Ports: []uint16{443},
		Paths: []PathPattern{mustPath(t, "/v1/**")}, Query: map[string]string{"service": "git-upload-pack"},
	}
	if !r.NeedsRequest() {
		t.Error("a rule with methods can be decided for a tunnel")
	}
	if !r.MatchMethod("GET") || r.MatchMethod("get") || r.MatchMethod("POST") {
		t.Error("methods are not compared as they are")
	}
	if !r.MatchPort(443) || r.MatchPort(80) {
		t.Error("ports")
	}
	if !r.MatchPath("/v1/x") || r.MatchPath("/v2/x") {
		t.Error("paths")
	}
	for query, want := range map[string]bool{
		"service=git-upload-pack":                          true,
		"service=git-upload-pack&x=1":                      true,
		"service=git-receive-pack":                         false,
		"service=git-upload-pack&service=git-receive-pack": false,
		"": false,
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.MatchQuery(q); got != want {
			t.Errorf("MatchQuery(%q) = %v, want %v", query, got, want)
		}
	}
}

func TestIsMetadata(t *testing.T) {
	for s, want := range map[string]bool{
		"169.254.169.254": true, "::ffff:169.254.169.254": true, "168.63.129.16": true, "100.100.100.200": true,
		"192.0.0.192": true, "fd00:ec2::254": true, "169.254.1.1": false, "10.0.0.1": false, "::1": false,
	} {
		if got := IsMetadata(netip.MustParseAddr(s)); got != want {
			t.Errorf("IsMetadata(%s) = %v, want %v", s, got, want)
		}
	}
}

func mustPath(t *testing.T, s string) PathPattern {
	t.Helper()
	p, err := ParsePath(s)
	if err != nil {
		t.Fatalf("ParsePath(%q): %v", s, err)
	}
	return p
}

package guard

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"agentguard/integrity"
)

func versionOf(path, entry, content string) version {
	sum := integrity.Sum(sha256.Sum256([]byte(content)))
	v := version{File: integrity.File{Path: path, Entry: entry, Kind: integrity.Regular, Mode: 0o100644, Whole: sum, Part: sum}}
	v.take([]byte(content))
	return v
}

func TestEffect(t *testing.T) {
	none := version{File: integrity.File{Path: "x"}}
	pkg := func(s string) version { return versionOf("package.json", "npm-package-json", s) }
	config := func(s string) version { return versionOf(".git/config", "git-config-local", s) }
	exec := versionOf("Makefile", "make-files", "all:\n")
	exec.Mode = 0o100755
	unread := versionOf("Makefile", "make-files", "other")
	unread.read = false
	for _, tc := range []struct {
		name     string
		old, now version
		want     []string
	}{
		{"a script is added", pkg(`{"scripts":{"a":"b"}}`), pkg(`{"scripts":{"a":"b","postinstall":"node x.js"}}`), []string{"+ scripts.postinstall: node x.js"}},
		{"a script goes", pkg(`{"scripts":{"a":"b"}}`), pkg(`{}`), []string{"- scripts.a: b"}},
		{"only a dependency", pkg(`{"scripts":{"a":"b"}}`), pkg(`{"scripts":{"a":"b"},"dependencies":{"x":"1"}}`), nil},
		{"malformed is shown whole", pkg(`{"scripts":{"a":"b"}}`), pkg(`{"scripts`), []string{"  @@ line 1 @@", `- {"scripts":{"a":"b"}}`, `+ {"scripts`}},
		{"a setting", config("[core]\n\tbare = false\n"), config("[core]\n\tbare = false\n\tfsmonitor = ./m\n"), []string{`+ core.fsmonitor="./m"`}},
		{"new", none, versionOf("Makefile", "make-files", "all:\n\ttrue\n"), []string{"+ all:", "+ \ttrue"}},
		{"gone", versionOf("Makefile", "make-files", "all:\n"), none, []string{"- all:"}},
		{"mode", versionOf("Makefile", "make-files", "all:\n"), exec, []string{"  mode 100644 becomes 100755"}},
		{"binary", none, versionOf("x", "make-files", "a\x00b"), []string{"+ binary, 3 bytes, sha256 " + integrity.Sum(sha256.Sum256([]byte("a\x00b"))).String()}},
		{"not read", exec, unread, []string{"  mode 100755 becomes 100644", "  its content is not shown: it is too large, or no file"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := effect(tc.old, tc.now); !slices.Equal(got, tc.want) {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// TestTakeRefusesOtherContent: what is shown must be what was hashed.
func TestTakeRefusesOtherContent(t *testing.T) {
	v := versionOf("Makefile", "make-files", "all:\n")
	v.data, v.read = nil, false
	v.take([]byte("evil:\n"))
	if v.read || v.readable() {
		t.Error("content of another hash was taken")
	}
}

func TestLineDiff(t *testing.T) {
	old := strings.Split("a b c d e f", " ")
	now := strings.Split("a b c X e f", " ")
	want := []string{"  @@ line 2 @@", "  b", "  c", "- d", "+ X", "  e", "  f"}
	if got := lineDiff(old, now); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

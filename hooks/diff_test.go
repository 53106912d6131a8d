package hooks

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnified(t *testing.T) {
	sh := func(lines ...string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
	for _, tc := range []struct {
		name     string
		old, now tree
		want     string
	}{
		{"nothing", tree{{path: "a", data: sh("1")}}, tree{{path: "a", data: sh("1")}}, ""},
		{"added", nil, tree{{path: "pre-commit", exec: true, data: sh("#!/bin/sh", "make")}}, `diff .githooks/pre-commit
new mode 100755
--- /dev/null
+++ .githooks/pre-commit
@@ -0,0 +1,2 @@
+#!/bin/sh
+make
`},
		{"gone", tree{{path: "a", data: sh("1")}}, nil, `diff .githooks/a
gone mode 100644
--- approved/.githooks/a
+++ /dev/null
@@ -1 +0,0 @@
-1
`},
		{"mode alone", tree{{path: "a", data: sh("1")}}, tree{{path: "a", exec: true, data: sh("1")}}, `diff .githooks/a
old mode 100644
new mode 100755
`},
		{"two hunks", tree{{path: "a", data: sh("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12")}},
			tree{{path: "a", data: sh("1", "x", "3", "4", "5", "6", "7", "8", "9", "10", "12")}}, `diff .githooks/a
--- approved/.githooks/a
+++ .githooks/a
@@ -1,5 +1,5 @@
 1
-2
+x
 3
 4
 5
@@ -8,5 +8,4 @@
 8
 9
 10
-11
 12
`},
		{"no newline at the end", tree{{path: "a", data: []byte("1")}}, tree{{path: "a", data: []byte("1\n")}}, `diff .githooks/a
--- approved/.githooks/a
+++ .githooks/a
@@ -1 +1 @@
-1
\ No newline at end of file
+1
`},
		{"hidden characters", nil, tree{{path: "a", data: []byte("ok\r\x1b[1A\u202e\xff\n")}}, `diff .githooks/a
new mode 100644
--- /dev/null
+++ .githooks/a
@@ -0,0 +1 @@
+ok\u000d\u001b[1A\u202e\xff
`},
		{"binary", tree{{path: "a", data: []byte("x")}}, tree{{path: "a", data: []byte("\x00yz")}}, `diff .githooks/a
binary, 3 bytes, were 1
`},
		{"directory", nil, tree{{path: "d", dir: true}}, "diff .githooks/d\nnew directory\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := unified(tc.old, tc.now, ".githooks"); got != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
			}
		})
	}
}

// TestEditsBeyondTheBound checks that a difference too large to search is
// shown whole rather than wrong.
func TestEditsBeyondTheBound(t *testing.T) {
	var old, now []string
	for i := range 3 * maxEdits {
		old = append(old, strings.Repeat("a", i%7)+"\n")
		now = append(now, strings.Repeat("b", i%5)+"c\n")
	}
	checkEdits(t, old, now)
}

func checkEdits(t *testing.T, old, now []string) {
	t.Helper()
	var was, is []string
	for _, e := range edits(old, now) {
		if e.op != '+' {
			was = append(was, e.line)
		}
		if e.op != '-' {
			is = append(is, e.line)
		}
	}
	if strings.Join(was, "") != strings.Join(old, "") || strings.Join(is, "") != strings.Join(now, "") {
		t.Errorf("the edits of %q to %q give %q and %q", old, now, was, is)
	}
}

// FuzzDiff holds that nothing is lost between two texts, that nothing a
// terminal obeys is printed, and that patch(1) makes the one from the other.
func FuzzDiff(f *testing.F) {
	for _, s := range []string{"", "a\n", "a\nb\nc\n", "a\nc\n", "b\na\nb\na", "\x1b[0m\r\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n"} {
		f.Add(s, "a\nb\n")
		f.Add("1\n2\n3\n4\n5\n6\n7\n8\n9\n", s)
	}
	f.Fuzz(func(t *testing.T, old, now string) {
		checkEdits(t, lines([]byte(old)), lines([]byte(now)))
		diff := unified(tree{{path: "a", data: []byte(old)}}, tree{{path: "a", data: []byte(now)}}, "d")
		for _, c := range []byte(diff) {
			if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
				t.Errorf("the difference of %q and %q holds %q", old, now, c)
			}
		}
		if (diff == "") != (old == now) {
			t.Errorf("the difference of %q and %q is %q", old, now, diff)
		}
	})
}

// TestPatchAgrees makes the new text with patch(1) from the difference.
func TestPatchAgrees(t *testing.T) {
	if _, err := exec.LookPath("patch"); err != nil {
		t.Skip("no patch here; FuzzDiff holds the same without it")
	}
	old := strings.Repeat("a\nb\nc\nd\ne\nf\ng\n", 10)
	now := "first\n" + strings.Replace(strings.Replace(old, "c\n", "", 3), "g\na\n", "g\nnew\na\n", 5) + "last"
	dir := t.TempDir()
	put(t, dir, map[string]string{"a": old})
	cmd := exec.Command("patch", "-s", filepath.Join(dir, "a"))
	cmd.Stdin = strings.NewReader(unified(tree{{path: "a", data: []byte(old)}}, tree{{path: "a", data: []byte(now)}}, "d"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("patch: %v: %s", err, out)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != now {
		t.Errorf("patch gives %q, want %q", got, now)
	}
}

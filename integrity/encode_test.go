package integrity

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
)

func sum(s string) Sum { return sha256.Sum256([]byte(s)) }

// file is a regular file all of which executes.
func file(path, content string) File {
	return File{Path: path, Entry: "e", Kind: Regular, Mode: 0o100644, Whole: sum(content), Part: sum(content), Size: int64(len(content))}
}

func text(t testing.TB, m *Manifest) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := m.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRoundTrip(t *testing.T) {
	part := file("package.json", "whole")
	part.Part = sum("scripts")
	m := NewManifest([]File{
		file("Makefile", "x"), part,
		{Path: "a\nb \"c\"\\", Entry: "e", Kind: Link, Mode: 0o120000, Whole: sum("t"), Part: sum("t")},
		{Path: "caf\xc3\xa9/\xff\xfe", Entry: "protect: data/**", Kind: Regular, Mode: 0o100755},
		{Path: "<<<<<<< HEAD", Entry: "e", Kind: Dir, Mode: 0o040000},
		{Path: "\"quoted\"", Entry: "e", Kind: Gitlink, Mode: 0o160000, Whole: sum("id"), Part: sum("id")},
		{Path: "fifo", Entry: "e", Kind: Other},
	})
	out := text(t, m)
	for i, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		if i > 0 && len(strings.Split(line, " ")) != columns {
			t.Errorf("line %q has not %d columns", line, columns)
		}
	}
	back, err := Read(strings.NewReader(out))
	if err != nil {
		t.Fatalf("Read: %v\n%s", err, out)
	}
	if d := Diff(m, back); len(d) != 0 || len(back.Files()) != 7 {
		t.Errorf("differs after a round trip: %+v", d)
	}
	if again := text(t, back); again != out {
		t.Errorf("second text differs:\n%s\n%s", out, again)
	}
	if back.Digest() != sum(out) || NewManifest(nil).Digest() == back.Digest() {
		t.Error("the digest is not that of the text")
	}
	if got := back.Get("Makefile").Entry; got != "e" {
		t.Errorf("entry = %q", got)
	}
}

func TestReadRefuses(t *testing.T) {
	h := sum("x").String()
	line := func(path string) string { return path + " e file 100644 " + h + " =\n" }
	rows := []struct {
		name, text string
		line       int
		msg        string
	}{
		{"empty", "", 1, "empty"},
		{"no header", line("a"), 1, "no manifest"},
		{"another version", "agentguard.sum 2\n", 1, `version "2"`},
		{"no last newline", header + "\n" + strings.TrimSuffix(line("a"), "\n"), 2, "cut off"},
		{"twice", header + "\n" + line("a") + line("a"), 3, `"a" is there twice`},
		{"unsorted", header + "\n" + line("b") + line("a"), 3, `"a" is not sorted`},
		{"conflict", header + "\n<<<<<<< HEAD\n" + line("a"), 2, "unresolved merge conflict"},
		{"conflict, middle", header + "\n" + line("a") + "=======\n", 3, "unresolved merge conflict"},
		{"conflict, end", header + "\n" + line("a") + ">>>>>>> x\n", 3, "unresolved merge conflict"},
		{"conflict, base", header + "\n" + line("a") + "||||||| x\n", 3, "unresolved merge conflict"},
		{"conflict in the first line", "<<<<<<< HEAD\n" + header + "\n", 1, "unresolved merge conflict"},
		{"carriage return", header + "\r\n", 1, "version"},
		{"carriage return in a line", header + "\n" + strings.ReplaceAll(line("a"), "\n", "\r\n"), 2, "no sum"},
		{"blank line", header + "\n\n" + line("a"), 2, "columns"},
		{"a column more", header + "\na e file 100644 " + h + " = x\n", 2, "columns"},
		{"two spaces", header + "\na  e file 100644 " + h + " =\n", 2, "columns"},
		{"unknown kind", header + "\na e pipe 100644 " + h + " =\n", 2, "kind"},
		{"absent", header + "\na e absent 000000 " + h + " =\n", 2, "kind"},
		{"short mode", header + "\na e file 644 " + h + " =\n", 2, "mode"},
		{"mode not octal", header + "\na e file 100648 " + h + " =\n", 2, "mode"},
		{"upper-case sum", header + "\na e file 100644 " + strings.ToUpper(h) + " =\n", 2, "no sum"},
		{"short sum", header + "\na e file 100644 abcd =\n", 2, "no sum"},
		{"sum spelled twice", header + "\na e file 100644 " + h + " " + h + "\n", 2, "same sum twice"},
		{"needless quotes", header + "\n" + line(`"a"`), 2, "spelled otherwise"},
		{"another spelling", header + "\n" + line(`"\x61"`), 2, "spelled otherwise"},
		{"raw bytes", header + "\n" + line("caf\xc3\xa9"), 2, "spelled otherwise"},
		{"open quote", header + "\n" + line(`"a`), 2, "not quoted right"},
		{"empty path", header + "\n" + line(""), 2, "spelled otherwise"},
		{"endless line", header + "\n" + strings.Repeat("a", maxLine+1), 2, "too long"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			m, err := Read(strings.NewReader(row.text))
			if m != nil {
				t.Error("a manifest beside the error")
			}
			se, ok := errors.AsType[*SyntaxError](err)
			if !ok {
				t.Fatalf("err = %v, want a SyntaxError", err)
			}
			if se.Line != row.line || !strings.Contains(se.Msg, row.msg) {
				t.Errorf("err = %v, want line %d and %q", se, row.line, row.msg)
			}
		})
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("disk gone") }

func TestReadPassesAnErrorOn(t *testing.T) {
	if m, err := Read(brokenReader{}); err == nil || m != nil || !strings.Contains(err.Error(), "disk gone") {
		t.Errorf("Read = %v, %v", m, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(header + "\n")
	f.Add(header + "\nMakefile e file 100644 " + sum("x").String() + " =\n")
	f.Add(header + "\n\"a\\x20b\" e link 120000 " + sum("x").String() + " " + sum("y").String() + "\n")
	f.Add("<<<<<<< HEAD\n")
	f.Fuzz(func(t *testing.T, in string) {
		m, err := Read(strings.NewReader(in))
		if err != nil {
			return
		}
		// What is accepted has one spelling only, so text and meaning agree.
		if out := text(t, m); out != in {
			t.Errorf("accepted %q, which is written %q", in, out)
		}
	})
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"a", "a b", "\x00", "\xff", "é", `"`, `\`, "=", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		word := quote(s)
		if strings.ContainsAny(word, " \n\r\t") {
			t.Errorf("quote(%q) = %q is no word", s, word)
		}
		if back, err := unquote(word); err != nil || back != s {
			t.Errorf("unquote(quote(%q)) = %q, %v", s, back, err)
		}
	})
}

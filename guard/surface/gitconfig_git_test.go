package surface

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// gitList is how git itself reads a configuration file, which it is told not
// to follow into others; ok is false when it refuses the file.
func gitList(t *testing.T, content string) (lines []string, ok bool) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "c")
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "config", "--file", file, "--no-includes", "--list", "-z")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}
	out, err := cmd.Output()
	if err != nil {
		return nil, false
	}
	for _, s := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if s != "" {
			lines = append(lines, s)
		}
	}
	return lines, true
}

// ownList is the same in the words of this package's parser.
func ownList(all []setting) (lines []string) {
	for _, s := range all {
		line := s.section
		if s.hasSub {
			line += "." + s.sub
		}
		line += "." + s.key
		if !s.bare {
			line += "\n" + s.value
		}
		lines = append(lines, line)
	}
	return lines
}

// What this package's parser accepts, git reads the same way: else a change
// could hide in the difference.
func TestConfigParserAgreesWithGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		if slices.Contains(strings.Split(os.Getenv("AGENTGUARD_REQUIRE"), ","), "git") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	for _, content := range []string{
		"[core]\n\teditor = a b  c \n", "[a]x=1\n[b]y", "[a \"b\\\"c\\\\d\"]\nk=v", "[a.B.c]\nk=v\n", "[A]\nK-1 = V\n",
		"[a]\nk = \"x ; y\" ; z\n", "[a]\nk = x\\\n  y\\\n\n", "[a]\nk = \\\"q\\\"\\t\\n\\b\n", "[a]\nk =\n", "[a]\nk = \"\"\n",
		"[a]\nk = \"  lead\" trail  \n", "[a]\n\n\n;c\n#d\nk=v;c\n", "[a]\r\nk = v\r\n", "[a]\nk = v\rw\n", "[a] k=v [b] l=w\n",
		"[a \"\"]\nk=v\n", "[a  \t \"b\"]\nk=v\n", "[a \"b]\"]\nk=v\n", "[-a]\nk=v\n", "[a-b]\nk=v\n", "[1]\nk=v\n",
		"[a]\nk = a\"b\"c\n", "[a]\nk = \"a\\\nb\"\n", "[a]\nk = v \\\n # c\n", "[a]\n  k\n", "[a]\nk \t = \t v\n", "[a\t\"b\"]\nk=v\n",
		"\n \t[a]\nk=\xff\n", "[a]\nk = \"x\" \"y\"\n", "[a]\nk = # only a comment\n", "[a]\nk=\\", "[a]\nk=v\\\n", "[a.]\nk=v\n", "[.a]\nk=v\n", "[a..b]\nk=v\n",
	} {
		t.Run(content, func(t *testing.T) {
			all, accepted := parseConfig([]byte(content))
			want, ok := gitList(t, content)
			if accepted && !ok {
				t.Fatalf("accepts what git refuses: %q", ownList(all))
			}
			if got := ownList(all); accepted && !slices.Equal(got, want) {
				t.Errorf("reads %q, git %q", got, want)
			}
			if odd := strings.ContainsAny(content, ".\r") || strings.Contains(content, "\\\n") || strings.HasSuffix(content, "\\"); ok && !accepted && !odd {
				t.Errorf("refuses what git reads: %q", want)
			}
		})
	}
}

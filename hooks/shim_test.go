package hooks

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// put writes files below dir; a name that ends in "/" is a directory, content
// that begins with "#!" makes it executable, "-> x" a symbolic link.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		at := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		target, isLink := strings.CutPrefix(content, "-> ")
		switch {
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(at, 0o755))
		case isLink:
			must(t, os.Symlink(target, at))
		default:
			mode := os.FileMode(0o644)
			if strings.HasPrefix(content, "#!") {
				mode = 0o755
			}
			must(t, os.WriteFile(at, []byte(content), mode))
			must(t, os.Chmod(at, mode))
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type ran struct {
	status         int
	stdout, stderr string
}

// runShim runs the shim of pre-commit in the directory work.
func runShim(t *testing.T, approved, work, stdin string, args ...string) ran {
	t.Helper()
	script := filepath.Join(t.TempDir(), "pre-commit")
	must(t, os.WriteFile(script, shim("pre-commit", approved, DefaultSource), 0o755))
	return runProgram(t, script, work, stdin, args...)
}

func runProgram(t *testing.T, program, work, stdin string, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = work, strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s hangs", program)
	}
	return ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func TestShim(t *testing.T) {
	const hook = "#!/bin/sh\necho ran\nexit 42\n"
	for _, tc := range []struct {
		name              string
		approved, tracked map[string]string // nil: the directory is not there
		status            int
		stdout            string
		stderr            string // part of it, empty: nothing
	}{
		{"as approved", map[string]string{"pre-commit": hook}, map[string]string{"pre-commit": hook}, 42, "ran\n", ""},
		{"no source on this branch", map[string]string{"pre-commit": hook}, nil, 42, "ran\n", ""},
		{"hook missing on this branch", map[string]string{"pre-commit": hook, "a": "1"}, map[string]string{"a": "1"}, 42, "ran\n", ""},
		{"file missing at depth", map[string]string{"pre-commit": hook, "d/a": "1", "d/b": "1"}, map[string]string{"pre-commit": hook, "d/a": "1"}, 42, "ran\n", ""},
		{"hook changed", map[string]string{"pre-commit": hook}, map[string]string{"pre-commit": "#!/bin/sh\necho evil\n"}, 1, "", "agentguard hooks approve"},
		{"file beside it changed", map[string]string{"pre-commit": hook, "lib": "1"}, map[string]string{"pre-commit": hook, "lib": "2"}, 1, "", ".githooks/lib"},
		{"file at depth changed", map[string]string{"pre-commit": hook, "d/lib": "1"}, map[string]string{"pre-commit": hook, "d/lib": "2"}, 1, "", ".githooks/d/lib"},
		{"another hook added", map[string]string{"pre-commit": hook}, map[string]string{"pre-commit": hook, "post-merge": hook}, 1, "", "post-merge"},
		{"directory added", map[string]string{"pre-commit": hook}, map[string]string{"pre-commit": hook, "d/": ""}, 1, "", "d"},
		{"file became a directory", map[string]string{"pre-commit": hook, "a": "1"}, map[string]string{"pre-commit": hook, "a/": ""}, 1, "", "a"},
		{"source is a link", map[string]string{"pre-commit": hook}, map[string]string{"..": "link"}, 1, "", "symbolic link"},
		{"source is a file", map[string]string{"pre-commit": hook}, map[string]string{"..": "file"}, 1, "", "not a directory"},
		{"approved copy gone", nil, map[string]string{"pre-commit": hook}, 1, "", "approved copy is gone"},
		{"no such hook approved", map[string]string{"commit-msg": hook}, map[string]string{"commit-msg": hook}, 0, "", ""},
		{"approved but not executable", map[string]string{"pre-commit": "echo no"}, map[string]string{"pre-commit": "echo no"}, 0, "", ""},
		{"a name that lies about where it is", map[string]string{"pre-commit": hook}, map[string]string{"pre-commit": hook, "x\nOnly in /": "1"}, 1, "", "x"},
		{"no interpreter line", map[string]string{"pre-commit": "#!\necho ran\nexit 42\n"}, nil, 42, "ran\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			approved, work := filepath.Join(dir, "it's a copy"), filepath.Join(dir, "work")
			must(t, os.Mkdir(work, 0o755))
			if tc.approved != nil {
				put(t, approved, tc.approved)
			}
			source := filepath.Join(work, DefaultSource)
			switch tc.tracked[".."] {
			case "link":
				must(t, os.Symlink(approved, source))
			case "file":
				put(t, work, map[string]string{DefaultSource: "x"})
			default:
				put(t, source, tc.tracked)
			}
			got := runShim(t, approved, work, "")
			if got.status != tc.status || got.stdout != tc.stdout {
				t.Errorf("status %d, stdout %q, want %d, %q; stderr %q", got.status, got.stdout, tc.status, tc.stdout, got.stderr)
			}
			if (tc.stderr == "") != (got.stderr == "") || !strings.Contains(got.stderr, tc.stderr) {
				t.Errorf("stderr %q, want %q in it", got.stderr, tc.stderr)
			}
		})
	}
}

// TestShimPassesEverything compares a hook run through its shim with the same
// hook run by itself: arguments, input, output, status, working directory and
// environment.
func TestShimPassesEverything(t *testing.T) {
	const hook = `#!/bin/sh
for a in "$@"; do printf '[%s]' "$a"; done
cat
pwd
cat "$(dirname "$0")/lib"
env | grep -v '^_=' | sort
echo problem >&2
exit 7
`
	dir := t.TempDir()
	approved, work := filepath.Join(dir, "copy"), filepath.Join(dir, "work")
	files := map[string]string{"pre-commit": hook, "lib": "of the copy\n"}
	put(t, approved, files)
	put(t, filepath.Join(work, DefaultSource), files)
	t.Setenv("line", "x")
	t.Setenv("IFS_TEST", "a b")
	args := []string{"", "a b", "*", "-n", "new\nline", `back\slash`, "$HOME"}
	want := runProgram(t, filepath.Join(approved, "pre-commit"), work, "input\x00\xff\n", args...)
	got := runShim(t, approved, work, "input\x00\xff\n", args...)
	if got != want {
		t.Errorf("through the shim %+v, by itself %+v", got, want)
	}
	if want.status != 7 || !strings.Contains(want.stdout, "of the copy") {
		t.Errorf("the hook itself does not do what it should: %+v", want)
	}
}

func TestShimDoesNotHangOrFollow(t *testing.T) {
	const hook = "#!/bin/sh\necho ran\n"
	dir := t.TempDir()
	approved, work := filepath.Join(dir, "copy"), filepath.Join(dir, "work")
	put(t, approved, map[string]string{"pre-commit": hook, "lib": "1"})
	put(t, filepath.Join(work, DefaultSource), map[string]string{"pre-commit": hook})
	must(t, syscall.Mkfifo(filepath.Join(work, DefaultSource, "lib"), 0o644))
	if got := runShim(t, approved, work, ""); got.status != 1 || got.stdout != "" {
		t.Errorf("a FIFO in the source: %+v, want refused", got)
	}
}

func TestShimShowsNothingATerminalObeys(t *testing.T) {
	dir := t.TempDir()
	approved, work := filepath.Join(dir, "copy"), filepath.Join(dir, "work")
	put(t, approved, map[string]string{"pre-commit": "#!/bin/sh\n"})
	put(t, filepath.Join(work, DefaultSource), map[string]string{"pre-commit": "#!/bin/sh\n", "\x1b[2Jx": "1"})
	got := runShim(t, approved, work, "")
	if got.status != 1 || strings.ContainsRune(got.stderr, '\x1b') {
		t.Errorf("%+v, want refused and no escape", got)
	}
}

func TestQuote(t *testing.T) {
	for _, s := range []string{"", "a", "a b", "it's", "''", "$HOME`id`", "new\nline", `\`, "*?[a]"} {
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+quote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("quote(%q) is %q to a shell (%v)", s, out, err)
		}
	}
}

func TestKnown(t *testing.T) {
	list := Known()
	sorted := slices.IsSortedFunc(list, func(a, b Hook) int { return strings.Compare(a.Name, b.Name) })
	if !sorted {
		t.Error("Known is not sorted by name")
	}
	for _, h := range list {
		if !shimName(h.Name) || h.When == "" {
			t.Errorf("%+v: no name of a shim, or nothing said of when", h)
		}
	}
	for _, bad := range []string{"", "Pre-Commit", "pre-commit.sample", "a/b", "a b", "a;b", "_"} {
		if shimName(bad) {
			t.Errorf("shimName(%q) = true", bad)
		}
	}
}

// TestKnownAsGitHas compares the table with the samples git itself ships.
func TestKnownAsGitHas(t *testing.T) {
	needGit(t)
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q")
	samples, err := filepath.Glob(filepath.Join(dir, ".git/hooks/*.sample"))
	must(t, err)
	for _, s := range samples {
		if name := strings.TrimSuffix(filepath.Base(s), ".sample"); !known(name) {
			t.Errorf("git has a sample of %s, which is not in Known", name)
		}
	}
}

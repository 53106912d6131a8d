package guard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentguard/guard/surface"
	"agentguard/sandbox"
)

// BenchmarkRun compares, in turn and in one run, what a user waits for:
// agentguard run -- true, bubblewrap alone, and bubblewrap given the same
// mounts. The ratios of the medians are what counts; the times depend on the
// machine.
func BenchmarkRun(b *testing.B) {
	exe := buildBinary(b)
	for _, files := range []int{100, 20_000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			ws, home := benchRepo(b, files)
			env := append(os.Environ(), "HOME="+home, "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "XDG_CONFIG_HOME=")
			command(b, ws, env, exe, "init")
			same := sameMounts(b, ws, home)
			contenders := []struct {
				name string
				argv []string
			}{
				{"agentguard", []string{exe, "run", "--", "true"}},
				{"bwrap", []string{"/usr/bin/bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"}},
				{"bwrap-same-mounts", append(same, "true")},
			}
			times := map[string][]time.Duration{}
			for b.Loop() {
				for _, c := range contenders {
					begin := time.Now()
					command(b, ws, env, c.argv...)
					times[c.name] = append(times[c.name], time.Since(begin))
				}
				begin := time.Now()
				walkNames(b, ws)
				times["walk"] = append(times["walk"], time.Since(begin))
			}
			for name, list := range times {
				b.ReportMetric(float64(median(list).Microseconds())/1000, name+"-ms")
			}
			b.ReportMetric(float64(median(times["agentguard"]))/float64(median(times["bwrap-same-mounts"])), "of-same-mounts")
			b.ReportMetric(float64(median(times["agentguard"]))/float64(median(times["bwrap"])), "of-bwrap")
		})
	}
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

func command(b *testing.B, dir string, env []string, argv ...string) {
	b.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v: %s", argv[0], err, out)
	}
}

func buildBinary(b *testing.B) string {
	b.Helper()
	exe := filepath.Join(b.TempDir(), "agentguard")
	cmd := exec.Command("go", "build", "-trimpath", "-o", exe, "agentguard/cmd/agentguard")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("building: %v: %s", err, out)
	}
	return exe
}

// benchRepo is a repository of n files, twenty a directory, with a few
// surfaces among them.
func benchRepo(b *testing.B, n int) (ws, home string) {
	b.Helper()
	top, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	ws, home = filepath.Join(top, "ws"), filepath.Join(top, "home")
	for i := range n {
		dir := filepath.Join(ws, "src", fmt.Sprint(i/20))
		if i%20 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.c", i)), []byte(strings.Repeat("x", 900)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for _, name := range []string{"package.json", "Makefile", "src/0/package.json", ".github/workflows/ci.yml", "conftest.py"} {
		path := filepath.Join(ws, name)
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte("{}\n"), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		b.Fatal(err)
	}
	env := append(os.Environ(), "HOME="+home, "GIT_CONFIG_NOSYSTEM=1")
	for _, args := range [][]string{
		{"init", "-q"}, {"config", "user.name", "t"}, {"config", "user.email", "t@example.com"}, {"add", "-A"}, {"commit", "-qm", "init"},
	} {
		command(b, ws, env, append([]string{"/usr/bin/git"}, args...)...)
	}
	return ws, home
}

// sameMounts is bubblewrap's command line for the mounts of a run's plan.
func sameMounts(b *testing.B, ws, home string) []string {
	b.Helper()
	g := &Guard{Dir: ws, PWD: ws, Env: map[string]string{"HOME": home, "PATH": os.Getenv("PATH")}, Stderr: os.Stderr, Now: time.Now}
	s, err := g.prepare(b.Context(), RunOptions{Argv: []string{"true"}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.close()
	argv := []string{"/usr/bin/bwrap", "--unshare-all"}
	for _, m := range s.plan.mounts() {
		switch m.Kind {
		case sandbox.ReadOnly:
			argv = append(argv, "--ro-bind-try", m.Source, m.Target)
		case sandbox.Writable:
			argv = append(argv, "--bind", m.Source, m.Target)
		case sandbox.Tmpfs:
			if m.Target != "/dev" {
				argv = append(argv, "--tmpfs", m.Target)
			}
		case sandbox.Proc:
			argv = append(argv, "--proc", m.Target, "--dev", "/dev")
		case sandbox.Link:
			if !strings.HasPrefix(m.Target, "/dev/") {
				argv = append(argv, "--symlink", m.Source, m.Target)
			}
		case sandbox.Pin:
			argv = append(argv, "--bind-try", m.Target, m.Target)
		case sandbox.Freeze:
			argv = append(argv, "--ro-bind-try", m.Target, m.Target)
		}
	}
	return argv
}

// walkNames is the floor for whoever has to see every name: one walk.
func walkNames(b *testing.B, dir string) {
	b.Helper()
	t, err := surface.WorkTree(dir)
	if err != nil {
		b.Fatal(err)
	}
	if err := t.Walk(func(surface.WalkEntry) error { return nil }); err != nil {
		b.Fatal(err)
	}
}

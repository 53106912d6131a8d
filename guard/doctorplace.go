package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// fewWatches is below what the directories of one larger project take.
const fewWatches = 8192

func lookInotify(e *examination) Diagnosis {
	if runtime.GOOS != "linux" {
		return Diagnosis{Standing: Noted, Found: "only Linux has it"}
	}
	const dir = "proc/sys/fs/inotify/"
	watches, instances := e.value(dir+"max_user_watches"), e.value(dir+"max_user_instances")
	w, err1 := strconv.Atoi(watches)
	i, err2 := strconv.Atoi(instances)
	if err1 != nil || err2 != nil {
		return Diagnosis{Standing: Noted, Found: "the kernel does not tell its limits"}
	}
	d := Diagnosis{Standing: Fine, Found: fmt.Sprintf("%d watches, %d instances a user", w, i)}
	if w < fewWatches {
		d.Mend = append(d.Mend, "sudo sysctl -w fs.inotify.max_user_watches=524288")
	}
	if i < 16 {
		d.Mend = append(d.Mend, "sudo sysctl -w fs.inotify.max_user_instances=512")
	}
	if len(d.Mend) > 0 {
		d.Standing = Finding
		d.Follows = "changes during a run may be told late in a large repository; the check at its end finds them all the same"
	}
	return d
}

// program finds a program on PATH as the caller would start it, but never one
// that the workspace brings along.
func (e *examination) program(name string) string {
	for _, dir := range filepath.SplitList(e.g.Env["PATH"]) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		real, err := filepath.EvalSymlinks(path)
		if err != nil || within(real, e.g.Dir) || within(path, e.g.Dir) || e.w != nil && (within(real, e.w.Root) || within(path, e.w.Root)) {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

func lookGit(e *examination) Diagnosis {
	path := e.program("git")
	if path == "" {
		return Diagnosis{
			Standing: Finding, Found: "not on PATH",
			Follows: "agentguard reads repositories by itself; agentguard selftest, hooks and the agent need git", Mend: []string{e.install("git")},
		}
	}
	cmd := exec.CommandContext(e.ctx, path, "--version")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
	out, err := cmd.Output()
	if err != nil {
		return Diagnosis{Standing: Finding, Found: fmt.Sprintf("%s --version: %v", path, err), Follows: "agentguard selftest, hooks and the agent need git", Mend: []string{e.install("git")}}
	}
	return Diagnosis{Standing: Fine, Found: path + ", version " + strings.TrimSpace(strings.TrimPrefix(string(out), "git version "))}
}

func lookBinary(e *examination) Diagnosis {
	exe := e.g.Exe
	real, err := filepath.EvalSymlinks(exe)
	if err != nil {
		return Diagnosis{Found: err.Error()}
	}
	info, err := os.Stat(real)
	if err != nil {
		return Diagnosis{Found: err.Error()}
	}
	d := Diagnosis{Standing: Fine, Found: quote(real) + ", version " + e.g.Version}
	switch {
	case e.w != nil && within(real, e.w.Root):
		d.Standing, d.Follows = Finding, "it lies in the workspace: a run can put another in its place"
		d.Mend = []string{"sudo install -m 755 " + quote(real) + " /usr/local/bin/agentguard"}
	case info.Mode()&0o022 != 0:
		d.Standing, d.Follows = Finding, "others than its owner can change it"
		d.Mend = []string{"chmod go-w " + quote(real)}
	}
	return d
}

// lookDirectories tries whether agentguard can write what it keeps, and that
// no run can.
func lookDirectories(e *examination) Diagnosis {
	d, err := e.g.dirs()
	if err != nil {
		return Diagnosis{Standing: Finding, Found: err.Error(), Follows: "every command but doctor and selftest ends with this", Mend: []string{"export HOME=/home/NAME"}}
	}
	if e.w != nil {
		d = e.w.dirs
	}
	out := Diagnosis{Standing: Fine, Found: fmt.Sprintf("%s, %s, %s", quote(d.config), quote(d.state), quote(d.cache))}
	for _, own := range []struct{ variable, dir string }{{"XDG_CONFIG_HOME", d.config}, {"XDG_STATE_HOME", d.state}, {"XDG_CACHE_HOME", d.cache}} {
		why, mend := e.ownDirectory(own.dir, own.variable)
		if why == "" {
			continue
		}
		out.Standing, out.Found = Finding, why
		out.Follows = "runs end before they begin, or what agentguard knows can be changed by one"
		out.Mend = append(out.Mend, mend)
	}
	return out
}

func (e *examination) ownDirectory(dir, variable string) (why, mend string) {
	if e.w != nil && within(dir, e.w.Root) {
		return quote(dir) + " lies in the workspace", "export " + variable + "=DIRECTORY, one outside of every repository"
	}
	there := dir
	for !exists(there) {
		there = filepath.Dir(there)
	}
	if info, err := os.Stat(there); err == nil && there == dir && info.Mode()&0o022 != 0 {
		return quote(dir) + " can be changed by others", "chmod go-w " + quote(dir)
	}
	f, err := os.CreateTemp(there, ".agentguard-doctor-")
	if err != nil {
		return err.Error(), "sudo chown -R " + strconv.Itoa(os.Getuid()) + " " + quote(there)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return err.Error(), "rm " + quote(f.Name())
	}
	return "", ""
}

func lookWorkspace(e *examination) Diagnosis {
	if e.w == nil {
		d := Diagnosis{Standing: Finding, Found: e.openErr.Error(), Follows: "no run is possible in this directory", Mend: []string{"go to the directory of one project"}}
		if _, ok := errors.AsType[*WorkspaceError](e.openErr); ok {
			d.Standing = Noted // nothing is wrong with the machine
		}
		return d
	}
	who := "you"
	switch as := e.g.identity(e.w); {
	case as != nil:
		who = fmt.Sprintf("its owner, user %d, and not as root", as.UID)
	case os.Geteuid() == 0:
		who = "root without a capability"
	}
	if e.w.Repo == nil {
		return Diagnosis{Standing: Noted, Found: fmt.Sprintf("%s is no git repository; a command runs as %s", quote(e.w.Root), who), Follows: "no hooks, and nothing to check at commit and merge", Mend: []string{"git init"}}
	}
	return Diagnosis{Standing: Fine, Found: fmt.Sprintf("%s, a git repository; a command runs as %s", quote(e.w.Root), who)}
}

// lookRuns counts the marks that no living run holds; it does not settle them.
func lookRuns(e *examination) Diagnosis {
	if e.w == nil {
		return Diagnosis{Standing: Noted, Found: "no workspace here"}
	}
	marks, err := e.w.unfinished()
	if err != nil {
		return Diagnosis{Found: err.Error()}
	}
	for _, m := range marks {
		if err := m.lock.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			return Diagnosis{Found: err.Error()}
		}
	}
	if len(marks) == 0 {
		return Diagnosis{Standing: Fine, Found: "none"}
	}
	return Diagnosis{
		Standing: Finding, Found: count(len(marks), "run") + " without an end-of-run check",
		Follows: "what they changed has not been told; the next command of agentguard here does it first",
		Mend:    []string{"agentguard scan"},
	}
}

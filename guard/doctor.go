package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentguard/guard/policy"
	"agentguard/sandbox"
)

// Standing is how one thing that doctor looks at stands.
type Standing uint8

// The standings. The zero value counts as a finding: what was not looked at is
// not fine.
const (
	Unknown Standing = iota // could not be looked at
	Fine
	Noted   // worth knowing, nothing to mend
	Finding // to be mended; what a run promises is weaker, or a run is refused here
	Missing // without it no run is possible on this machine
)

// String returns the word for s that is printed.
func (s Standing) String() string {
	switch s {
	case Fine:
		return "ok"
	case Noted:
		return "note"
	case Finding:
		return "finding"
	case Missing:
		return "missing"
	}
	return "unknown"
}

// Diagnosis is one check, made.
type Diagnosis struct {
	Code     string   `json:"code"`
	Title    string   `json:"title"`
	Standing Standing `json:"-"`
	Word     string   `json:"standing"`
	Found    string   `json:"found"`             // what was seen
	Follows  string   `json:"follows,omitempty"` // what that means for a run
	Mend     []string `json:"mend,omitempty"`    // what to type, or to do
}

// check is one row of the registry.
type check struct {
	code  string // stable
	title string
	look  func(*examination) Diagnosis
}

// checks is the registry, in the order of the report.
func checks() []check {
	return []check{
		{"sandbox.start", "starting a sandbox", lookSandbox},
		{"sandbox.bubblewrap", "bubblewrap", lookBubblewrap},
		{"kernel.namespaces", "user namespaces", lookNamespaces},
		{"kernel.version", "kernel", lookKernel},
		{"kernel.landlock", "Landlock, the second layer", lookLandlock},
		{"kernel.seccomp", "system call filter", lookSeccomp},
		{"sandbox.broker", "refusing names that do not exist yet", lookBroker},
		{"egress.proxy", "proxy", lookProxy},
		{"watch.inotify", "inotify", lookInotify},
		{"git.program", "git", lookGit},
		{"agentguard.binary", "agentguard's binary", lookBinary},
		{"agentguard.directories", "agentguard's directories", lookDirectories},
		{"workspace", "workspace", lookWorkspace},
		{"workspace.policy", "policy", lookPolicy},
		{"workspace.hooks", "core.hooksPath", lookHooks},
		{"workspace.runs", "runs that were killed", lookRuns},
	}
}

// examination is what the checks look at.
type examination struct {
	ctx     context.Context
	g       *Guard
	root    string          // before /proc, /sys and the files that mark a container
	support sandbox.Support // what a start in which nothing runs met
	force   int             // Landlock's interface in force in a sandbox
	w       *Workspace      // nil where openErr says why
	openErr error
}

// Doctor is what all checks say.
type Doctor struct{ Checks []Diagnosis }

// Doctor looks at everything that a run here stands on. It changes nothing.
func (g *Guard) Doctor(ctx context.Context) Doctor {
	e := &examination{ctx: ctx, g: g, root: "/", support: sandbox.Detect(ctx)}
	if e.support.Err == nil {
		e.force = landlockInForce(ctx)
	}
	e.w, e.openErr = g.Open()
	return e.examine()
}

func (e *examination) examine() Doctor {
	var d Doctor
	for _, c := range checks() {
		r := c.look(e)
		r.Code, r.Title, r.Word = c.code, c.title, r.Standing.String()
		d.Checks = append(d.Checks, r)
	}
	return d
}

// Possible says whether a sandbox can be started on this machine.
func (d Doctor) Possible() bool { return d.count(Missing) == 0 }

// Findings is the number of checks that ask for something to be mended.
func (d Doctor) Findings() int { return d.count(Finding) + d.count(Unknown) + d.count(Missing) }

func (d Doctor) count(s Standing) int {
	n := 0
	for _, c := range d.Checks {
		if c.Standing == s {
			n++
		}
	}
	return n
}

// Text writes the checks for a person.
func (d Doctor) Text(w io.Writer) {
	width := 0
	for _, c := range d.Checks {
		width = max(width, len(c.Title))
	}
	for _, c := range d.Checks {
		fmt.Fprintf(w, "%-7s  %-*s  %s\n", c.Standing, width, c.Title, quoteLine(c.Found))
		if c.Follows != "" {
			fmt.Fprintf(w, "%-7s  %-*s  so: %s\n", "", width, "", quoteLine(c.Follows))
		}
		for _, m := range c.Mend {
			fmt.Fprintf(w, "%-7s  %-*s  mend: %s\n", "", width, "", quoteLine(m))
		}
	}
	switch {
	case !d.Possible():
		fmt.Fprintln(w, "no sandbox is possible on this machine: agentguard run starts nothing")
	case d.Findings() > 0:
		fmt.Fprintf(w, "a sandbox is possible on this machine; %s to mend\n", count(d.Findings(), "finding"))
	default:
		fmt.Fprintln(w, "a run can be in force on this machine; agentguard selftest tries it")
	}
}

// JSON writes the same for a program.
func (d Doctor) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Possible bool        `json:"possible"`
		Findings int         `json:"findings"`
		Checks   []Diagnosis `json:"checks"`
	}{d.Possible(), d.Findings(), d.Checks})
}

// value reads one small file of the machine; "" when it is not there.
func (e *examination) value(path string) string {
	b, err := os.ReadFile(filepath.Join(e.root, path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// policy loads the policy of the workspace.
func (e *examination) policy() (*policy.Policy, error) {
	return e.g.loadPolicy(e.w, policy.Flags{})
}

// container names what this machine is inside of, "" for none that shows.
func (e *examination) container() string {
	for _, mark := range []struct{ path, name string }{{".dockerenv", "Docker"}, {"run/.containerenv", "Podman"}} {
		if exists(filepath.Join(e.root, mark.path)) {
			return mark.name
		}
	}
	if e.g.Env["KUBERNETES_SERVICE_HOST"] != "" {
		return "Kubernetes"
	}
	return e.g.Env["container"] // systemd's word, set by most others
}

// install is the command that installs a package of this machine's
// distribution.
func (e *examination) install(name string) string {
	for _, m := range []struct{ program, words string }{
		{"apt-get", "sudo apt-get install "}, {"dnf", "sudo dnf install "}, {"pacman", "sudo pacman -S "},
		{"zypper", "sudo zypper install "}, {"apk", "sudo apk add "},
	} {
		if slices.ContainsFunc([]string{"usr/bin", "sbin"}, func(dir string) bool { return exists(filepath.Join(e.root, dir, m.program)) }) {
			return m.words + name
		}
	}
	return "install " + name
}

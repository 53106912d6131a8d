package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"agentguard/sandbox"
	"agentguard/sandbox/seccomp"
)

// landlockInForce starts a sandbox in which nothing can run and asks for the
// Landlock interface that it was put under.
func landlockInForce(ctx context.Context) int {
	p, err := sandbox.Start(ctx, sandbox.Spec{Argv: []string{"/nothing"}, Dir: "/", Mounts: []sandbox.Mount{
		{Kind: sandbox.Proc, Target: "/proc"}, {Kind: sandbox.Tmpfs, Target: "/dev", Perm: 0o755}, {Kind: sandbox.Pts, Target: "/dev/pts"},
	}})
	if err != nil {
		return 0
	}
	_, _ = p.Wait() // there is no such command
	return p.Landlock()
}

func lookSandbox(e *examination) Diagnosis {
	if e.support.Err == nil {
		return Diagnosis{Standing: Fine, Found: "one was started, with nothing in it"}
	}
	d := Diagnosis{Standing: Missing, Found: e.support.Err.Error(), Follows: "agentguard run refuses to start anything, and never runs a command without the sandbox"}
	if runtime.GOOS != "linux" {
		d.Mend = []string{"work in a Linux virtual machine or container"}
		return d
	}
	if u, ok := errors.AsType[*sandbox.UnavailableError](e.support.Err); ok && e.support.Bwrap != "" && !isNamespaceError(u) {
		d.Mend = append(d.Mend, e.support.Bwrap+" --unshare-user --unshare-pid --ro-bind / / --proc /proc true  # says what the machine refuses")
	}
	if c := e.container(); c != "" && e.support.Bwrap != "" {
		d.Mend = append(d.Mend, inContainer(c)...)
	}
	return d
}

// isNamespaceError says that bubblewrap got no user namespace.
func isNamespaceError(err error) bool {
	u, ok := errors.AsType[*sandbox.UnavailableError](err)
	return ok && strings.Contains(u.Need, "namespace")
}

// inContainer is what a container has to be started with, or where else to
// put the boundary. The default filter of a container refuses namespaces, and
// its masked /proc keeps a new one from being mounted.
func inContainer(kind string) []string {
	switch kind {
	case "Kubernetes":
		return []string{
			"in the pod: hostUsers: false; in the container's securityContext: procMount: Unmasked, seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}",
			"that opens the container itself; or run agentguard on the machine and not in the container",
		}
	case "Podman":
		return []string{
			"podman run --security-opt seccomp=unconfined --security-opt unmask=ALL IMAGE",
			"that opens the container itself; or run agentguard on the machine and not in the container",
		}
	}
	return []string{
		"docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined IMAGE",
		"that opens the container itself; or run agentguard on the machine and not in the container",
	}
}

func lookBubblewrap(e *examination) Diagnosis {
	s := e.support
	if runtime.GOOS != "linux" {
		return Diagnosis{Standing: Noted, Found: "only Linux has it"}
	}
	if s.Bwrap == "" {
		d := Diagnosis{Standing: Missing, Found: "not found", Follows: "there is nothing to make a sandbox with", Mend: []string{e.install("bubblewrap")}}
		if s.Err != nil {
			d.Found = s.Err.Error()
		}
		switch {
		case !strings.Contains(d.Found, "changed by others"):
		case !e.rootExists():
			d.Found = "this is inside a user namespace in which root does not exist, so nothing shows that only root can change bubblewrap"
			d.Mend = []string{"call agentguard outside of this sandbox or container, or in one whose user namespace maps root"}
		default:
			d.Mend = []string{"sudo chown root:root /usr/bin/bwrap && sudo chmod 755 /usr/bin/bwrap"}
		}
		return d
	}
	info, err := os.Stat(s.Bwrap)
	if err != nil {
		return Diagnosis{Found: err.Error()}
	}
	owner := "owner unknown"
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = fmt.Sprintf("owned by user %d", st.Uid)
		if st.Uid == 0 {
			owner = "owned by root"
		}
	}
	d := Diagnosis{Standing: Fine, Found: fmt.Sprintf("%s, version %s, %s, mode %04o", s.Bwrap, s.BwrapVersion, owner, info.Mode().Perm())}
	if info.Mode()&os.ModeSetuid != 0 {
		d.Standing, d.Found = Noted, d.Found+", set-uid"
		d.Follows = "it makes namespaces with root's rights, which it needs only where users may not make their own"
	}
	return d
}

// rootExists says that user 0 of this process's user namespace is somebody.
func (e *examination) rootExists() bool {
	ids := e.value("proc/self/uid_map")
	for line := range strings.Lines(ids) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "0" {
			return true
		}
	}
	return ids == "" // it does not tell
}

// namespaceLimits are the switches that close user namespaces, with the value
// that does.
var namespaceLimits = []struct{ file, closed, mend string }{
	{"kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
	{"user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"},
	{"kernel/apparmor_restrict_unprivileged_userns", "1", appArmorMend},
}

// appArmorMend lets bubblewrap, and no other program, make user namespaces.
const appArmorMend = `printf 'abi <abi/4.0>,\ninclude <tunables/global>\nprofile bwrap /usr/bin/bwrap flags=(unconfined) {\n  userns,\n}\n' | sudo tee /etc/apparmor.d/bwrap && sudo apparmor_parser -r /etc/apparmor.d/bwrap`

func lookNamespaces(e *examination) Diagnosis {
	if runtime.GOOS != "linux" {
		return Diagnosis{Standing: Noted, Found: "only Linux has them"}
	}
	var seen, mend []string
	for _, l := range namespaceLimits {
		v := e.value("proc/sys/" + l.file)
		if v == "" {
			continue // this kernel has no such switch
		}
		seen = append(seen, strings.ReplaceAll(l.file, "/", ".")+"="+v)
		if v == l.closed {
			mend = append(mend, l.mend)
		}
	}
	found := strings.Join(seen, ", ")
	if found == "" {
		found = "this kernel has no switch for them"
	}
	switch {
	case e.support.Err == nil:
		return Diagnosis{Standing: Fine, Found: "bubblewrap gets one; " + found}
	case e.support.Bwrap == "":
		return Diagnosis{Standing: Noted, Found: "not tried without bubblewrap; " + found, Mend: mend}
	case isNamespaceError(e.support.Err):
		if len(mend) == 0 && e.container() != "" {
			mend = inContainer(e.container())
		}
		if len(mend) == 0 {
			mend = []string{"this kernel refuses them by another way: the machine's administrator has to allow user namespaces to " + e.support.Bwrap}
		}
		return Diagnosis{Standing: Missing, Found: "bubblewrap gets none; " + found, Follows: "there is nothing to make a sandbox with", Mend: mend}
	}
	return Diagnosis{Standing: Noted, Found: found, Mend: mend}
}

// kernelAtLeast compares a release as uname gives it.
func kernelAtLeast(release string, major, minor int) bool {
	parts := strings.FieldsFunc(release, func(r rune) bool { return r < '0' || r > '9' })
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}

func lookKernel(e *examination) Diagnosis {
	r := e.support.Kernel
	switch {
	case runtime.GOOS != "linux":
		return Diagnosis{Standing: Missing, Found: runtime.GOOS, Follows: "this version has a sandbox for Linux only", Mend: []string{"work in a Linux virtual machine"}}
	case r == "":
		return Diagnosis{Found: "the kernel does not tell its version"}
	case !kernelAtLeast(r, 5, 12) && e.support.Err != nil:
		return Diagnosis{Standing: Missing, Found: r, Follows: "mounts cannot be made read-only as a tree before 5.12", Mend: []string{"start a kernel of 5.12 or later, better 6.12"}}
	case !kernelAtLeast(r, 6, 12):
		return Diagnosis{Standing: Noted, Found: r, Follows: "signals and abstract sockets are scoped by Landlock from 6.12 on; the namespaces hold them alone before"}
	}
	return Diagnosis{Standing: Fine, Found: r}
}

func lookLandlock(e *examination) Diagnosis {
	if runtime.GOOS != "linux" {
		return Diagnosis{Standing: Noted, Found: "only Linux has it"}
	}
	kernel, force := e.support.Landlock, e.force
	scopes := "without scopes"
	if force >= 6 {
		scopes = "scopes for signals and abstract sockets"
	}
	switch {
	case e.support.Err != nil:
		return Diagnosis{Standing: Noted, Found: fmt.Sprintf("the kernel offers interface version %d; not in force without a sandbox", kernel)}
	case kernel == 0:
		return Diagnosis{
			Standing: Finding, Found: "the kernel has none or did not start it (/sys/kernel/security/lsm: " + e.value("sys/kernel/security/lsm") + ")",
			Follows: "the mounts and the system call filter hold a run alone",
			Mend:    []string{"add landlock to the lsm= list of the kernel's command line, and start the machine again"},
		}
	case force != kernel:
		return Diagnosis{Standing: Finding, Found: fmt.Sprintf("the kernel offers interface version %d, %d is in force inside", kernel, force), Follows: "a part of the second layer is missing", Mend: []string{"agentguard selftest says what is open"}}
	case force < 6:
		return Diagnosis{Standing: Noted, Found: fmt.Sprintf("interface version %d in force, %s", force, scopes), Follows: "signals and abstract sockets are held by the namespaces alone"}
	}
	return Diagnosis{Standing: Fine, Found: fmt.Sprintf("interface version %d in force, %s", force, scopes)}
}

func lookSeccomp(e *examination) Diagnosis {
	if runtime.GOOS != "linux" {
		return Diagnosis{Standing: Noted, Found: "only Linux has it"}
	}
	if len(seccomp.Program(runtime.GOARCH)) == 0 {
		return Diagnosis{Standing: Missing, Found: "there is none for " + runtime.GOARCH, Follows: "agentguard run refuses to start anything", Mend: []string{"work on an amd64 or arm64 machine"}}
	}
	actions := strings.Fields(e.value("proc/sys/kernel/seccomp/actions_avail"))
	switch {
	case e.support.Err == nil:
		return Diagnosis{Standing: Fine, Found: "in force inside, for " + runtime.GOARCH}
	case len(actions) > 0 && !slices.Contains(actions, "errno"):
		return Diagnosis{Standing: Missing, Found: "the kernel offers " + strings.Join(actions, " "), Follows: "calls cannot be refused", Mend: []string{"start a kernel with CONFIG_SECCOMP_FILTER"}}
	}
	return Diagnosis{Standing: Noted, Found: "there is one for " + runtime.GOARCH + "; not in force without a sandbox"}
}

func lookBroker(e *examination) Diagnosis {
	switch {
	case e.support.Err != nil:
		return Diagnosis{Standing: Noted, Found: "not known without a sandbox"}
	case e.support.NoBroker == "":
		return Diagnosis{Standing: Fine, Found: "in force: a frozen name is refused while the command runs, there or not"}
	}
	return Diagnosis{
		Standing: Finding, Found: e.support.NoBroker,
		Follows: "a frozen name that does not exist yet can come into being in a run: it is told when the run ends and not refused",
		Mend:    []string{"a kernel of 5.19 or newer, kernel.yama.ptrace_scope below 2, and no other such guard around this one"},
	}
}

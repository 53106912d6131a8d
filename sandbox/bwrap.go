package sandbox

import "agentguard/sandbox/stage"

// Args returns bubblewrap's arguments for spec. They are the same for every
// run but for the network, because the mounts are the inner stage's: bwrap
// reads the whole mount table again after each of its own, which makes sixty
// cost more than everything else together.
//
// Line by line: namespaces of its own for users (so that the rest needs no
// privilege and no capability reaches the host), processes, network, System V
// and POSIX queues, host name and control groups; the stage is process 1 and
// dies with the supervisor; it keeps the capabilities of the new user
// namespace until it has built the root; the host's tree is shown to it, and
// to it alone, at one place.
func Args() []string {
	return []string{
		"--unshare-user",
		"--unshare-pid",
		"--unshare-net",
		"--unshare-ipc",
		"--unshare-uts",
		"--unshare-cgroup-try",
		"--hostname", "agentguard",
		"--as-pid-1",
		"--die-with-parent",
		"--cap-add", "ALL",
		"--dev-bind", "/", stage.HostRoot,
		"--chdir", "/",
	}
}

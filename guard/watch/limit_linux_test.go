package watch

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const limitedEnv = "WATCH_TEST_LIMITED"

// The limit on watches is one of the user namespace, so a child in a new one
// really runs out without taking them from anybody else.
func TestPollWhenWatchesRunOut(t *testing.T) {
	if os.Getenv(limitedEnv) != "" {
		limited(t)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestPollWhenWatchesRunOut$", "-test.v")
	cmd.Env = append(os.Environ(), limitedEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if _, ran := err.(*exec.ExitError); err != nil && !ran {
		if slices.Contains(strings.Split(os.Getenv("AGENTGUARD_REQUIRE"), ","), "userns") {
			t.Fatalf("no user namespace: %v", err)
		}
		t.Skipf("no user namespace: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "PASS: TestPollWhenWatchesRunOut") {
		t.Errorf("%v\n%s", err, out)
	}
}

func limited(t *testing.T) {
	must(t, os.WriteFile("/proc/sys/user/max_inotify_watches", []byte("8"), 0))
	root := files(t, "Makefile")
	for i := range 10 {
		write(t, root, fmt.Sprintf("d%d/Makefile", i), "old")
	}
	r := begin(t, root, Options{Interval: 10 * time.Millisecond})
	r.waitGap("cannot be watched")
	write(t, root, "Makefile", "new")
	r.wait("Makefile", "changed")
	for i := range 10 {
		write(t, root, fmt.Sprintf("d%d/new/package.json", i), "new")
		r.wait(fmt.Sprintf("d%d/new/package.json", i), "created")
	}
	// No instance at all: everything is polled.
	must(t, os.WriteFile("/proc/sys/user/max_inotify_instances", []byte("0"), 0))
	r = begin(t, root, Options{Interval: 10 * time.Millisecond})
	r.waitGap("no notices")
	write(t, root, "e/Makefile", "new")
	r.wait("e/Makefile", "created")
}

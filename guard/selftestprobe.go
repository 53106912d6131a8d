package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"agentguard/guard/policy"
	"agentguard/sandbox/probe"
)

// The hidden commands of the self-test: the process that makes the attempts,
// and the one that an attempt starts. The word keeps a person who types the
// command from mounting, tracing and writing things by accident.
const (
	probeCommand     = "__probe"
	probeStepCommand = "__probe-step"
	probeWord        = "started-by-selftest"
)

// Probe is this process's part in a self-test, if args name one.
func Probe(args []string, stdin io.Reader, stdout, stderr io.Writer) (status int, mine bool) {
	if len(args) == 0 || args[0] != probeCommand && args[0] != probeStepCommand {
		return 0, false
	}
	if len(args) < 2 || args[1] != probeWord {
		fmt.Fprintf(stderr, "agentguard: error: %s is a part of agentguard selftest and does nothing by itself\n", args[0])
		return 2, true
	}
	if args[0] == probeStepCommand {
		return probe.Step(args[2:], stdin, stdout), true
	}
	if err := probeMain(stdin, stdout); err != nil {
		fmt.Fprintf(stderr, "agentguard: error: %v\n", err)
		return 125, true
	}
	return 0, true
}

// longestEnv bounds what is read of a probe's input.
const longestEnv = 1 << 20

// probeMain makes every attempt, in a planted workspace only.
func probeMain(stdin io.Reader, stdout io.Writer) error {
	text, err := io.ReadAll(io.LimitReader(stdin, longestEnv))
	if err != nil {
		return fmt.Errorf("reading where the plant is: %w", err)
	}
	var env probe.Env
	if err := json.Unmarshal(text, &env); err != nil {
		return fmt.Errorf("reading where the plant is: %w", err)
	}
	if err := isPlanted(env); err != nil {
		return err
	}
	return probe.Main(bytes.NewReader(text), stdout)
}

// isPlanted refuses to attack what a person works on.
func isPlanted(env probe.Env) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if env.Canary == "" || env.AllowedHost == "" || dir != env.Workspace {
		return fmt.Errorf("%q is not the workspace of a self-test", dir)
	}
	content, err := os.ReadFile(filepath.Join(dir, policy.FileName))
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(env.AllowedHost)
	if err != nil || !bytes.Contains(content, []byte(host)) {
		return fmt.Errorf("%q is not the workspace of a self-test", dir)
	}
	return nil
}

// counter counts the lines that two processes write.
type counter struct {
	mu   sync.Mutex // guards done, and calls of tell
	done int
	of   int
	tell func(done, of int)
}

func (c *counter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := bytes.Count(p, []byte("\n"))
	c.done += lines
	if c.tell != nil && lines > 0 {
		c.tell(c.done, c.of)
	}
	return len(p), nil
}

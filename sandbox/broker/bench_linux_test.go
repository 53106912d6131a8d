//go:build amd64 || arm64

package broker

import (
	"os"
	"testing"
)

// TestFloor runs the command named by BROKER_FLOOR inside a run and prints what
// it says: a loop that times its opens, to compare with the same loop under a
// minimal broker in C.
func TestFloor(t *testing.T) {
	cmd := os.Getenv("BROKER_FLOOR")
	if cmd == "" {
		t.Skip("BROKER_FLOOR is not set")
	}
	w := newWorld(t, 0)
	o := w.sh(t, cmd)
	t.Logf("%s\n%v", o.Stdout, o.Counts)
}

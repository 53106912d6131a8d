package guard

import (
	"fmt"
	"os"
	"time"
)

// patience is how long something may take before a person at a terminal is
// told what it is.
const patience = time.Second

// progress says what is being done if it takes long. The caller calls done
// when it is over.
func (g *Guard) progress(what string) (done func()) {
	f, ok := g.Stderr.(*os.File)
	if !ok || !IsTerminal(f) {
		return func() {}
	}
	t := time.AfterFunc(patience, func() { fmt.Fprintf(f, "agentguard: %s…\r\n", what) })
	return func() { t.Stop() }
}

//go:build amd64 || arm64

package broker

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	users(t, func(t *testing.T, w *world) {
		o := w.sh(t, `set -x; id; echo a >a; cat a; echo x >frozen.txt; mkdir d; echo y >d/FROZEN.txt; mv a d/b; ls -l . d; echo err >/dev/stderr; umask 077; echo a>c; ls -l c; rm -rf d; ls; cat /proc/self/status | grep -E "Cap|NoNew"`)
		t.Logf("%+v", o)
	})
}

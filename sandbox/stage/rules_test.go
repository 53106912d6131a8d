package stage

import (
	"strings"
	"testing"

	"agentguard/guard/surface"
)

func TestJudge(t *testing.T) {
	b := &Broker{
		Mode:    BrokerAuto,
		Protect: []string{"/hk"},
		Areas: []Area{
			{Dir: "/w", Dirs: []string{".git", ".git/hooks", "src", "nested", "nested/.git", "node_modules", "node_modules/p"}},
			{Dir: "/main/.git", Prefix: ".git", Dirs: []string{"hooks"}},
			{Dir: "/plain", Git: true},
		},
	}
	git := map[string]bool{"/w/lib": true, "/w/src": true, "/w/nested": true, "/w/src/deep": true}
	n := newNames(b, func(dir string) bool { return git[dir] })
	for _, tc := range []struct {
		path   string
		typ    surface.Type
		frozen bool
	}{
		{"/w/main.c", surface.Regular, false},
		{"/w/conftest.py", surface.Regular, true},
		{"/w/CONFTEST.py", surface.Regular, true},
		{"/w/src/a/b/conftest.py", surface.Regular, true},
		{"/w/.vscode", surface.Dir, true},
		{"/w/.vscode/tasks.json", surface.Regular, true},
		{"/w/.git/hooks/pre-commit", surface.Regular, true},
		{"/w/.git/config", surface.Regular, true},
		{"/w/.git/commondir", surface.Regular, true},
		{"/w/.git/index.lock", surface.Regular, false},
		{"/w/.git/objects/aa/bb", surface.Regular, false},
		{"/w/hk/pre-commit", surface.Regular, true},
		{"/w/node_modules/p/.vscode/settings.json", surface.Regular, false},
		{"/main/.git/hooks/pre-commit", surface.Regular, true},
		{"/main/.git/config", surface.Regular, true},
		{"/main/.git/refs/heads/x", surface.Regular, false},
		{"/elsewhere/package.json", surface.Regular, false},
		{"/w-not/package.json", surface.Regular, false},
		{"/plain/package.json", surface.Regular, false},
		{"/w", surface.Dir, false},
		// A repository that the run made: its names are free.
		{"/w/lib/.git", surface.Dir, false},
		{"/w/lib/.git/hooks/pre-commit.sample", surface.Regular, false},
		{"/w/lib/.git/hooks/pre-commit", surface.Regular, true},
		{"/w/lib/package.json", surface.Regular, false},
		// A directory that was there does not become one by a new .git.
		{"/w/src/package.json", surface.Regular, true},
		{"/w/src/deep/package.json", surface.Regular, false},
		{"/w/nested/package.json", surface.Regular, true},
		// What is unknown is judged as a file and as a directory.
		{"/w/.vscode", surface.Other, true},
		{"/w/conftest.py", surface.Other, true},
		{"/w/main.c", surface.Other, false},
	} {
		t.Run(strings.ReplaceAll(tc.path, "/", "_"), func(t *testing.T) {
			if v := n.judge(tc.path, tc.typ); v.frozen != tc.frozen || v.frozen && v.rule == "" {
				t.Errorf("frozen %v by %q, want %v", v.frozen, v.rule, tc.frozen)
			}
		})
	}
}

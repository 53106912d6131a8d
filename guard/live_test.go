package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentguard/guard/event"
	"agentguard/guard/surface"
)

func TestLiveTellsNewsOnly(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"there", ".vscode", "own/.git/hooks", "old/.git"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree := &area{dir: root, dirs: []string{"there", "old"}, set: &surface.Set{Members: []surface.Member{{WalkEntry: surface.WalkEntry{Path: "was/Makefile"}}}}}
	change := func(path, what, entry, protection string) event.Event {
		return event.Event{Kind: event.WatchChange, Subject: path, Reason: what, Rule: entry, Detail: map[string]string{"protection": protection}}
	}
	rows := []struct {
		name  string
		event event.Event
		want  string // "" for silence
	}{
		{"a frozen file", change("there/Makefile", "created", "make-files", "freeze"), "agentguard: created there/Makefile (make-files; freeze)\n"},
		{"a reviewed file that executes as a whole", change("Makefile", "changed", "make-files", "review"), "agentguard: changed Makefile (make-files; review)\n"},
		{"a reviewed file with data beside its keys", change("package.json", "changed", "npm-package-json", "review"), ""},
		{"a frozen one with data beside its keys", change("package.json", "changed", "npm-package-json", "freeze"), "agentguard: changed package.json (npm-package-json; freeze)\n"},
		{"what is noted", change("Makefile", "changed", "make-files", "note"), ""},
		{"the same content", change("Makefile", "written with the same content", "make-files", "freeze"), ""},
		{"made and taken away with its directory", change("gone/Makefile", "removed", "make-files", "freeze"), ""},
		{"removed with its directory, and the user's", change("was/Makefile", "removed", "make-files", "freeze"), "agentguard: removed was/Makefile (make-files; freeze)\n"},
		{"in a repository of the run's own", change("own/Makefile", "created", "make-files", "freeze"), ""},
		{"a hook in a repository of the run's own", change("own/.git/hooks/x", "created", "git-hooks", "freeze"), "agentguard: created own/.git/hooks/x (git-hooks; freeze)\n"},
		{"in a repository that was there", change("old/Makefile", "created", "make-files", "freeze"), "agentguard: created old/Makefile (make-files; freeze)\n"},
		{"a name that moves the cursor", change("there/\x1b[2J", "created", "x", "freeze"), "agentguard: created \"there/\\x1b[2J\" (x; freeze)\n"},
		{"a gap", event.Event{Kind: event.WatchGap, Subject: "/w", Reason: "a queue overflowed"}, "agentguard: changes in /w may have been missed: a queue overflowed\n"},
		{"a request", event.Event{Kind: event.EgressHTTP, Subject: "GET http://x/"}, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var out strings.Builder
			l := &live{w: &out, start: &start{areas: []*area{tree}}, said: map[string]bool{}, own: map[string]bool{}}
			l.Report(r.event)
			l.Report(r.event) // once is enough
			if out.String() != r.want {
				t.Errorf("told %q, want %q", out.String(), r.want)
			}
		})
	}
}

func TestShimsState(t *testing.T) {
	w := &Workspace{dirs: dirs{state: "/s"}}
	rows := []struct{ name, dir, want string }{
		{"a directory of shims", "/s/hooks/id/current/shims", "/s/hooks/id"},
		{"the state itself", "/s", ""},
		{"all hooks", "/s/hooks", ""},
		{"one repository's", "/s/hooks/id", ""},
		{"deeper", "/s/hooks/id/current/shims/x", ""},
		{"elsewhere", "/t/hooks/id/current/shims", ""},
		{"other state", "/s/repos/id/current/shims", ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := w.shimsState(r.dir); got != r.want {
				t.Errorf("shimsState(%q) = %q, want %q", r.dir, got, r.want)
			}
		})
	}
}

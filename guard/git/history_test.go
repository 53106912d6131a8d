package git

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// commitGraph makes commits of a small random history without a work tree, by
// fast-import, and returns their names. With lying dates they are in no order.
func commitGraph(f *fixture, n int, lying bool) []string {
	f.Helper()
	f.mkdir("ws")
	f.git("ws", "init", "-q")
	var in strings.Builder
	seed := uint32(7)
	next := func(n int) int { seed = seed*1664525 + 1013904223; return int(seed>>8) % n }
	for i := 1; i <= n; i++ {
		date := 1_700_000_000 + 60*i
		if lying {
			date = 1_700_000_000 + next(100_000)
		}
		fmt.Fprintf(&in, "commit refs/heads/c%d\nmark :%d\ncommitter t <t@example.com> %d +0000\ndata 1\nx\n", i, i, date)
		if i > 1 && next(12) > 0 {
			fmt.Fprintf(&in, "from :%d\n", max(1, i-1-next(6)))
			if i > 4 && next(3) == 0 {
				fmt.Fprintf(&in, "merge :%d\n", max(1, i-2-next(i/2)))
			}
		}
		in.WriteString("\n")
	}
	cmd := f.command("ws", "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("fast-import: %v\n%s", err, out)
	}
	var names []string
	for i := 1; i <= n; i++ {
		names = append(names, strings.TrimSpace(f.read(fmt.Sprintf("ws/.git/refs/heads/c%d", i))))
	}
	return names
}

func TestHistoryAsGit(t *testing.T) {
	for _, lying := range []bool{false, true} {
		t.Run(fmt.Sprintf("lying dates %v", lying), func(t *testing.T) {
			f := newFixture(t)
			names := commitGraph(f, 60, lying)
			r := f.open("ws")
			for i := 0; i < len(names); i += 5 {
				for j := 1; j < len(names); j += 15 {
					checkMergeBase(t, f, r, names[i], names[j])
					checkCommits(t, f, r, names[i], names[j], lying)
				}
			}
		})
	}
}

func checkMergeBase(t *testing.T, f *fixture, r *Repo, a, b string) {
	t.Helper()
	out, err := f.command("ws", "merge-base", "--all", a, b).Output()
	bases := strings.Fields(string(out))
	got, gerr := r.MergeBase(f.hash(a), f.hash(b))
	switch {
	case gerr != nil:
		t.Errorf("MergeBase: %v", gerr)
	case err != nil && !got.IsZero(), err == nil && !slices.Contains(bases, got.String()):
		t.Errorf("MergeBase(%s, %s) = %v, git says %q", a, b, got, bases)
	}
}

// checkCommits compares with what git reaches from each side: where dates lie,
// git's own "b ^a" has commits too many.
func checkCommits(t *testing.T, f *fixture, r *Repo, a, b string, lying bool) {
	t.Helper()
	list, err := r.Commits(f.hash(a), f.hash(b), 1000)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range list {
		got = append(got, h.String())
	}
	left := strings.Fields(f.git("ws", "rev-list", a))
	want := slices.DeleteFunc(strings.Fields(f.git("ws", "rev-list", b)), func(h string) bool { return slices.Contains(left, h) })
	for _, h := range want {
		if !slices.Contains(got, h) {
			t.Errorf("Commits(%s, %s) lacks %s", a, b, h)
		}
	}
	if !lying && len(got) != len(want) {
		t.Errorf("Commits(%s, %s) = %q, want %q", a, b, got, want)
	}
}

func TestCommitsLimit(t *testing.T) {
	f := newFixture(t)
	f.history("ws")
	r := f.open("ws")
	head := f.hash(f.git("ws", "rev-parse", "v1")) // a tag
	if list, err := r.Commits(Hash{}, head, 7); err != nil || len(list) != 7 {
		t.Errorf("Commits = %d, %v", len(list), err)
	}
	if _, err := r.Commits(Hash{}, head, 6); errType(err) != "UnsupportedError" {
		t.Errorf("Commits over the limit: %v", err)
	}
}

func TestShallowHistory(t *testing.T) {
	f := newFixture(t)
	f.history("src")
	f.git(".", "clone", "-q", "--depth=2", "file://"+f.path("src"), "ws")
	head := f.hash(f.git("ws", "rev-parse", "HEAD"))
	if list, err := f.open("ws").Commits(Hash{}, head, 100); err != nil || len(list) != 2 {
		t.Errorf("Commits of a shallow clone = %d, %v", len(list), err)
	}
	// A forged shallow file hides nothing that is there.
	f.write("src/.git/shallow", head.String()+"\n")
	if list, err := f.open("src").Commits(Hash{}, head, 100); err != nil || len(list) != 7 {
		t.Errorf("Commits with a forged shallow file = %d, %v", len(list), err)
	}
	// A parent that is missing for no reason is an error.
	f.remove("ws/.git/shallow")
	if _, err := f.open("ws").Commits(Hash{}, head, 100); errType(err) != "MissingError" {
		t.Errorf("Commits with missing parents: %v", err)
	}
}

func TestParseCommitRefuses(t *testing.T) {
	h := strings.Repeat("1", 40)
	for _, tc := range []struct {
		name, data string
		good       bool
	}{
		{"good", "tree " + h + "\nparent " + h + "\nauthor a <b> 1 +0\ncommitter a <b> 1 +0\n\nx", true},
		{"lying date", "tree " + h + "\nauthor a <b> 1 +0\ncommitter a <b> x +0\n\nx", true},
		{"no tree", "parent " + h + "\ncommitter a <b> 1 +0\n", false},
		{"no committer", "tree " + h + "\n\ncommitter a <b> 1 +0\n", false},
		{"parent of another format", "tree " + h + "\nparent " + h + h[:24] + "\ncommitter a <b> 1 +0\n", false},
		{"empty", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := parseCommit(Hash{}, []byte(tc.data), SHA1); (err == nil) != tc.good {
				t.Errorf("parseCommit: %v", err)
			}
		})
	}
}

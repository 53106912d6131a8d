package surface

import "testing"

// What git writes during add, commit, switch, stash, rebase, merge, gc,
// worktree, notes, bisect, init and clone (recorded from its system calls)
// must not be frozen, or everyday work fails in the sandbox. Left out are
// .git/config, which branch -m and -d rewrite, and the pointers that worktree
// add writes: whoever guards the names lets those pass by their content.
func TestEverydayGitIsNotFrozen(t *testing.T) {
	m := mustMatcher(t, Rules{})
	for _, tt := range []struct {
		path string
		typ  Type
	}{
		{".git/index", Regular}, {".git/index.lock", Regular}, {".git/HEAD", Regular}, {".git/HEAD.lock", Regular},
		{".git/ORIG_HEAD", Regular}, {".git/MERGE_HEAD", Regular}, {".git/MERGE_MSG", Regular}, {".git/AUTO_MERGE", Regular},
		{".git/CHERRY_PICK_HEAD", Regular}, {".git/REVERT_HEAD", Regular}, {".git/FETCH_HEAD", Regular},
		{".git/COMMIT_EDITMSG", Regular}, {".git/TAG_EDITMSG", Regular}, {".git/NOTES_EDITMSG", Regular},
		{".git/BISECT_START", Regular}, {".git/BISECT_LOG", Regular}, {".git/config.lock", Regular},
		{".git/packed-refs", Regular}, {".git/packed-refs.lock", Regular}, {".git/gc.pid", Regular},
		{".git/refs/heads/feature/x", Regular}, {".git/refs/heads/feature", Dir}, {".git/refs/stash", Regular},
		{".git/refs/tags/v1", Regular}, {".git/refs/notes/commits", Regular}, {".git/refs/bisect/bad", Regular},
		{".git/refs/heads/Makefile", Regular}, {".git/logs/HEAD", Regular}, {".git/logs/refs/heads/package.json", Regular},
		{".git/objects/ab", Dir}, {".git/objects/ab/cdef", Regular}, {".git/objects/pack/pack-1.idx", Regular},
		{".git/objects/info/packs", Regular}, {".git/objects/info/commit-graphs/commit-graph-chain", Regular},
		{".git/info/refs", Regular}, {".git/rebase-merge", Dir}, {".git/rebase-merge/git-rebase-todo", Regular},
		{".git/rebase-apply/patch", Regular}, {".git/sequencer/todo", Regular}, {".git/worktrees/wt", Dir},
		{".git/worktrees/wt/HEAD", Regular}, {".git/worktrees/wt/index", Regular},
		{".git/worktrees/wt/logs/HEAD", Regular}, {"wt/.git", Regular},
		{"lib/.git", Dir}, {"lib/.git/HEAD", Regular}, {"lib/.git/config", Regular}, {"lib/.git/description", Regular},
		{"lib/.git/hooks", Dir}, {"lib/.git/hooks/pre-commit.sample", Regular}, {"lib/.git/info/exclude", Regular},
		{"lib/.git/objects/pack", Dir}, {"lib/.git/refs/heads", Dir},
	} {
		if h, ok := m.Match(tt.path, tt.typ); ok && h.Protection == Freeze {
			t.Errorf("%s is frozen by %s (%s)", tt.path, h.Entry.ID, h.Rule)
		}
	}
}

// What installs and builds write must not be frozen either.
func TestEverydayToolsAreNotFrozen(t *testing.T) {
	m := mustMatcher(t, Rules{})
	for _, path := range []string{
		"node_modules/p/package.json", "node_modules/.bin/eslint", "node_modules/p/.npmrc", "node_modules/p/.husky/pre-commit",
		"package-lock.json", "yarn.lock", "pnpm-lock.yaml", "go.sum", "Cargo.lock", "poetry.lock",
		".venv/bin/activate", ".venv/lib/python3.11/site-packages/distutils-precedence.pth", ".venv/pyvenv.cfg",
		"__pycache__/conftest.cpython-311.pyc", "target/debug/build/x/out/build.rs", "build/CMakeFiles/Makefile.cmake",
		"dist/index.js", ".next/server/next.config.js", ".pytest_cache/README.md", "coverage/index.html",
	} {
		if h, ok := m.Match(path, Regular); ok && h.Protection == Freeze {
			t.Errorf("%s is frozen by %s (%s)", path, h.Entry.ID, h.Rule)
		}
	}
	for _, dir := range []string{"build", "targets", "bootstrap", "configure", "missing", "dune", "plugins", "project", "inc", "bin", "docs", "tasks"} {
		if h, ok := m.Match("src/"+dir, Dir); ok && h.Protection == Freeze {
			t.Errorf("directory %s is frozen by %s (%s)", dir, h.Entry.ID, h.Rule)
		}
	}
}

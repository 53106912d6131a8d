package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	for _, tc := range []struct {
		name  string
		setup func(f *fixture)
		dir   string // to open, default ws
		want  string // error type, empty for none
		text  string // in the error
		check func(t *testing.T, f *fixture, r *Repo)
	}{
		{name: "ordinary", setup: func(f *fixture) { f.repo("ws") }, check: func(t *testing.T, f *fixture, r *Repo) {
			if r.Root != f.path("ws") || r.GitDir != f.path("ws/.git") || r.CommonDir != r.GitDir || r.Linked || r.Submodule || r.Bare || r.ObjectFormat != SHA1 || r.Ino == 0 {
				t.Errorf("got %v", describe(r))
			}
		}},
		{name: "from below", setup: func(f *fixture) { f.repo("ws"); f.mkdir("ws/x/y") }, dir: "ws/x/y", check: rootIs("ws")},
		{name: "through a symlink", setup: func(f *fixture) { f.repo("ws"); f.mkdir("ws/x"); f.symlink("ws/x", "l") }, dir: "l", check: rootIs("ws")},
		{name: "dot dot behind a symlink", setup: func(f *fixture) { f.repo("ws"); f.mkdir("ws/x"); f.symlink("ws/x", "l") }, dir: "l/..", check: rootIs("ws")},
		{name: "empty repository", setup: func(f *fixture) { f.mkdir("ws"); f.git("ws", "init", "-q") }, check: rootIs("ws")},
		{name: "no config file", setup: func(f *fixture) { f.repo("ws"); f.remove("ws/.git/config") }, check: rootIs("ws")},
		{name: "no template", setup: func(f *fixture) { f.mkdir("ws"); f.git("ws", "init", "-q", "--template=") }, check: rootIs("ws")},
		{name: "detached", setup: func(f *fixture) { f.repo("ws"); f.git("ws", "checkout", "-q", "--detach") }, check: rootIs("ws")},
		{name: "sha256", setup: func(f *fixture) { f.repo("ws", "--object-format=sha256") }, check: func(t *testing.T, _ *fixture, r *Repo) {
			if r.ObjectFormat != SHA256 {
				t.Errorf("object format %v", r.ObjectFormat)
			}
		}},
		{name: "no repository", setup: func(f *fixture) { f.mkdir("ws") }, want: "NotRepoError", text: "not inside"},
		{name: "bare", setup: func(f *fixture) { f.repo("src"); f.git(".", "clone", "-q", "--bare", "src", "ws") }, want: "BareError"},
		{name: "below bare", setup: func(f *fixture) { f.repo("src"); f.git(".", "clone", "-q", "--bare", "src", "ws") }, dir: "ws/refs/heads", want: "BareError"},
		{name: "buried bare", setup: func(f *fixture) { f.repo("ws"); f.git("ws", "init", "-q", "--bare", "sub") }, dir: "ws/sub", want: "BareError"},
		{name: "inside .git", setup: func(f *fixture) { f.repo("ws") }, dir: "ws/.git/hooks", want: "BareError"},
		{name: "core.bare", setup: func(f *fixture) { f.repo("ws"); f.git("ws", "config", "core.bare", "true") }, want: "BareError"},
		{name: "empty .git does not pass to the parent", setup: func(f *fixture) { f.repo("."); f.mkdir("ws/.git") }, want: "PointerError", text: "no git directory"},
		{name: "core.worktree elsewhere", setup: func(f *fixture) {
			f.repo("ws")
			f.mkdir("other")
			f.git("ws", "config", "core.worktree", "../../other")
		}, want: "PointerError", text: "core.worktree"},
		{name: "core.worktree here", setup: func(f *fixture) { f.repo("ws"); f.git("ws", "config", "core.worktree", "..") }, check: rootIs("ws")},
		{name: "commondir in an ordinary .git", setup: func(f *fixture) { f.repo("ws"); f.repo("e"); f.write("ws/.git/commondir", f.path("e/.git")+"\n") }, want: "PointerError", text: "takes nothing from another"},
		{name: "commondir dot", setup: func(f *fixture) { f.repo("ws"); f.write("ws/.git/commondir", ".\n") }, check: rootIs("ws")},
		{name: "empty commondir", setup: func(f *fixture) { f.repo("ws"); f.write("ws/.git/commondir", "") }, want: "PointerError", text: "does not hold one path"},
		{name: "shallow clone", setup: func(f *fixture) {
			f.repo("src")
			f.git(".", "clone", "-q", "--depth=1", "file://"+f.path("src"), "ws")
		}, check: rootIs("ws")},
		{name: "partial clone", setup: func(f *fixture) {
			f.repo("src")
			f.git("src", "config", "uploadpack.allowfilter", "true")
			f.git(".", "clone", "-q", "--filter=blob:none", "file://"+f.path("src"), "ws")
		}, check: rootIs("ws")},
		{name: "format version 2", setup: func(f *fixture) { f.repo("ws"); f.git("ws", "config", "core.repositoryformatversion", "2") }, want: "UnsupportedError", text: `version "2"`},
		{name: "reftable", setup: func(f *fixture) { f.repo("ws"); f.git("ws", "config", "extensions.refStorage", "reftable") }, want: "UnsupportedError", text: "reftable"},
		{name: "unknown extension", setup: func(f *fixture) { f.repo("ws"); f.git("ws", "config", "extensions.novel", "x") }, want: "UnsupportedError", text: "novel"},
		{name: "unknown object format", setup: func(f *fixture) { f.repo("ws"); f.git("ws", "config", "extensions.objectFormat", "md5") }, want: "UnsupportedError", text: "md5"},
		{name: "config does not parse", setup: func(f *fixture) { f.repo("ws"); f.write("ws/.git/config", "[core\n") }, want: "ConfigError", text: "config:1"},
		{name: "FIFO as .git is refused without waiting", setup: func(f *fixture) { f.mkdir("ws"); mkfifo(f, "ws/.git") }, want: "PointerError", text: "neither"},
		{name: "FIFO as config", setup: func(f *fixture) { f.repo("ws"); f.remove("ws/.git/config"); mkfifo(f, "ws/.git/config") }, want: "CorruptError", text: "regular"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			tc.setup(f)
			dir := tc.dir
			if dir == "" {
				dir = "ws"
			}
			r, err := Open(f.dir + "/" + dir) // not cleaned
			checkOpened(t, f, r, err, tc.want, tc.text, tc.check)
		})
	}
}

func checkOpened(t *testing.T, f *fixture, r *Repo, err error, want, text string, check func(*testing.T, *fixture, *Repo)) {
	t.Helper()
	if got := errType(err); got != want {
		t.Fatalf("Open: got %v (%s), want %s", err, got, want)
	}
	if err != nil {
		if r != nil {
			t.Error("a refused repository was returned")
		}
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
		return
	}
	defer r.Close()
	check(t, f, r)
}

func rootIs(want string) func(*testing.T, *fixture, *Repo) {
	return func(t *testing.T, f *fixture, r *Repo) {
		t.Helper()
		if r.Root != f.path(want) {
			t.Errorf("Root = %q, want %q", r.Root, f.path(want))
		}
	}
}

func describe(r *Repo) []any {
	return []any{r.Root, r.GitDir, r.CommonDir, r.Linked, r.Submodule, r.Bare, r.ObjectFormat, r.Ino}
}

func TestOpenPointers(t *testing.T) {
	linked := func(f *fixture) {
		f.repo("main")
		f.git("main", "worktree", "add", "-q", f.path("ws"), "-b", "w")
	}
	submodule := func(f *fixture) {
		f.repo("up")
		f.repo("super")
		f.git("super", "submodule", "--quiet", "add", f.path("up"), "sub")
	}
	for _, tc := range []struct {
		name  string
		setup func(f *fixture)
		dir   string
		want  string
		text  string
		check func(t *testing.T, f *fixture, r *Repo)
	}{
		{name: "linked worktree", setup: linked, check: func(t *testing.T, f *fixture, r *Repo) {
			if r.Root != f.path("ws") || r.GitDir != f.path("main/.git/worktrees/ws") || r.CommonDir != f.path("main/.git") || !r.Linked || r.Submodule {
				t.Errorf("got %v", describe(r))
			}
		}},
		{name: "linked worktree inside the repository", setup: func(f *fixture) {
			f.repo("main")
			f.git("main", "worktree", "add", "-q", ".worktrees/x", "-b", "x")
		}, dir: "main/.worktrees/x", check: rootIs("main/.worktrees/x")},
		{name: "linked worktree of a bare repository", setup: func(f *fixture) {
			f.repo("src")
			f.git(".", "clone", "-q", "--bare", "src", "b.git")
			f.git("b.git", "worktree", "add", "-q", f.path("ws"))
		}, check: rootIs("ws")},
		{name: "linked worktree with config.worktree", setup: func(f *fixture) {
			linked(f)
			f.git("main", "config", "extensions.worktreeConfig", "true")
			f.git("ws", "config", "--worktree", "core.hooksPath", "h")
		}, check: rootIs("ws")},
		{name: "linked worktree through a symlink in its gitdir", setup: func(f *fixture) {
			linked(f)
			f.symlink(f.dir, "here")
			f.write("main/.git/worktrees/ws/gitdir", f.path("here/ws/.git")+"\n")
		}, check: rootIs("ws")},
		{name: "relative pointers", setup: func(f *fixture) {
			linked(f)
			f.write("main/.git/worktrees/ws/gitdir", "../../../../ws/.git\n")
			f.write("ws/.git", "gitdir: ../main/.git/worktrees/ws\n")
		}, check: rootIs("ws")},
		{name: "moved worktree", setup: func(f *fixture) { linked(f); f.rename("ws", "moved") }, dir: "moved", want: "PointerError", text: "does not name this work tree back"},
		{name: "commondir rewritten", setup: func(f *fixture) {
			linked(f)
			f.repo("e")
			f.write("main/.git/worktrees/ws/commondir", f.path("e/.git")+"\n")
		}, want: "PointerError", text: "does not lie in its worktrees"},
		{name: "forged admin directory in the work tree", setup: func(f *fixture) {
			f.repo("ws")
			f.rename("ws/.git", "ws/fake")
			f.write("ws/fake/worktrees/x/HEAD", "ref: refs/heads/main\n")
			f.write("ws/fake/worktrees/x/commondir", "../..\n")
			f.write("ws/fake/worktrees/x/gitdir", f.path("ws/.git")+"\n")
			f.write("ws/.git", "gitdir: fake/worktrees/x\n")
		}, want: "PointerError", text: "inside the work tree"},
		{name: "submodule", setup: submodule, dir: "super/sub", check: func(t *testing.T, f *fixture, r *Repo) {
			if r.Root != f.path("super/sub") || r.GitDir != f.path("super/.git/modules/sub") || r.CommonDir != r.GitDir || !r.Submodule || r.Linked {
				t.Errorf("got %v", describe(r))
			}
		}},
		{name: "linked worktree of a submodule", setup: func(f *fixture) {
			submodule(f)
			f.git("super/sub", "worktree", "add", "-q", f.path("ws"), "-b", "w")
		}, check: func(t *testing.T, f *fixture, r *Repo) {
			if r.CommonDir != f.path("super/.git/modules/sub") || !r.Linked {
				t.Errorf("got %v", describe(r))
			}
		}},
		{name: "gitfile to another submodule", setup: func(f *fixture) {
			submodule(f)
			f.write("ws/.git", "gitdir: "+f.path("super/.git/modules/sub")+"\n")
		}, want: "PointerError", text: "names another work tree"},
		{name: "forged gitfile into another repository", setup: func(f *fixture) {
			f.repo("other")
			f.write("ws/.git", "gitdir: "+f.path("other/.git")+"\n")
		}, want: "PointerError", text: "no work tree back"},
		{name: "gitfile to a linked worktree's directory", setup: func(f *fixture) {
			linked(f)
			f.write("evil/.git", "gitdir: "+f.path("main/.git/worktrees/ws")+"\n")
		}, dir: "evil", want: "PointerError", text: "does not name this work tree back"},
		{name: "separate git directory", setup: func(f *fixture) { f.mkdir("ws"); f.git("ws", "init", "-q", "--separate-git-dir", f.path("sep.git")) }, want: "PointerError", text: "core.worktree is not set"},
		{name: "separate git directory that names back", setup: func(f *fixture) {
			f.mkdir("ws")
			f.git("ws", "init", "-q", "--separate-git-dir", f.path("sep.git"))
			f.git("ws", "config", "core.worktree", f.path("ws"))
		}, check: func(t *testing.T, f *fixture, r *Repo) {
			if r.GitDir != f.path("sep.git") || r.Submodule {
				t.Errorf("got %v", describe(r))
			}
		}},
		{name: "gitfile to nothing", setup: func(f *fixture) { f.write("ws/.git", "gitdir: ../gone\n") }, want: "PointerError", text: "does not exist"},
		{name: "gitfile to no git directory", setup: func(f *fixture) { f.write("ws/.git", "gitdir: ../home\n") }, want: "PointerError", text: "no git directory"},
		{name: "gitfile of another form", setup: func(f *fixture) { f.write("ws/.git", "hello\n") }, want: "PointerError", text: "gitdir: PATH"},
		{name: "symlink at .git into another repository", setup: func(f *fixture) { f.repo("other"); f.mkdir("ws"); f.symlink("../other/.git", "ws/.git") }, want: "PointerError", text: "no work tree back"},
		{name: "symlink at .git that is named back", setup: func(f *fixture) {
			f.repo("ws")
			f.rename("ws/.git", "store.git")
			f.symlink("../store.git", "ws/.git")
			f.git("ws", "config", "core.worktree", f.path("ws"))
		}, check: rootIs("ws")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			tc.setup(f)
			dir := tc.dir
			if dir == "" {
				dir = "ws"
			}
			r, err := Open(f.dir + "/" + dir) // not cleaned
			checkOpened(t, f, r, err, tc.want, tc.text, tc.check)
		})
	}
}

func TestOpenRefusesSymlinksInGitDir(t *testing.T) {
	for _, name := range mustBeReal {
		if name == "commondir" || name == "gitdir" || name == "shallow" {
			continue // read, or refused, before
		}
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.repo("ws")
			p := "ws/.git/" + name
			if _, err := os.Lstat(f.path(p)); err == nil {
				f.rename(p, "away")
			} else {
				f.mkdir("away")
			}
			f.mkdir(filepath.Dir(p))
			f.symlink(f.path("away"), p)
			_, err := Open(f.path("ws"))
			if got := errType(err); got != "PointerError" || !strings.Contains(err.Error(), "symbolic link") {
				t.Errorf("Open with a link at %s: %v", name, err)
			}
		})
	}
}

func TestOpenIgnoresEnvironment(t *testing.T) {
	f := newFixture(t)
	f.repo("ws")
	f.repo("other")
	for _, name := range []string{"GIT_DIR", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE"} {
		t.Setenv(name, f.path("other/.git"))
	}
	t.Setenv("GIT_WORK_TREE", f.path("other"))
	t.Setenv("GIT_CEILING_DIRECTORIES", f.path("ws"))
	rootIs("ws")(t, f, f.open("ws"))
}

func TestOpenBare(t *testing.T) {
	f := newFixture(t)
	f.repo("src")
	f.git(".", "clone", "-q", "--bare", "src", "b.git")
	r, err := OpenBare(f.path("b.git"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !r.Bare || r.Root != "" || r.GitDir != f.path("b.git") {
		t.Errorf("got %v", describe(r))
	}
	if h, err := r.Resolve("main"); err != nil || h.String() != f.git("src", "rev-parse", "HEAD") {
		t.Errorf("Resolve(main) = %v, %v", h, err)
	}
	if _, err := OpenBare(f.path("src")); errType(err) != "NotRepoError" {
		t.Errorf("OpenBare of a work tree: %v", err)
	}
}

func TestZeroValues(t *testing.T) {
	if _, err := ParseIndex([]byte("DIRC"), 0); err == nil {
		t.Error("an index of no object format was read")
	}
	var f ObjectFormat
	if !f.HashObject(nil).IsZero() {
		t.Error("the zero object format hashes")
	}
	var r Repo
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

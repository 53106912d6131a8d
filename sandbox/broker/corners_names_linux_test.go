//go:build amd64 || arm64

package broker

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

func frozenAbsent() error {
	var c checks
	dir := unix.AT_FDCWD
	c.ok("mkdir", os.MkdirAll("a/b/c", 0o755))
	c.ok("dir link", os.Symlink("a/b", "short"))
	c.ok("dangling link", os.Symlink("frozen.txt", "dangling"))
	c.ok("dangling link 2", os.Symlink("../b/FROZEN.TXT", "a/b/dangling"))
	c.ok("file", put("file"))
	for _, n := range []string{"frozen.txt", "Frozen.TXT", "a/b/c/frozen.txt", "./a/../frozen.txt", "short/frozen.txt", "/proc/self/cwd/frozen.txt", "/proc/thread-self/cwd/short/c/frozen.txt", "a//b///frozen.txt"} {
		for _, f := range []int{unix.O_WRONLY | unix.O_CREAT, unix.O_RDONLY | unix.O_CREAT, unix.O_RDWR | unix.O_CREAT | unix.O_EXCL, unix.O_RDWR | unix.O_CREAT | unix.O_NOFOLLOW} {
			c.want(fmt.Sprintf("open %s %#o", n, f), open(n, f), unix.EPERM)
		}
		c.want("mknod "+n, unix.Mknodat(dir, n, typeRegular|0o644, 0), unix.EPERM)
		c.want("mkfifo "+n, unix.Mkfifo(n, 0o644), unix.EPERM)
		c.want("mkdir "+n, unix.Mkdir(n, 0o755), unix.EPERM)
		c.want("symlink "+n, unix.Symlink("file", n), unix.EPERM)
		c.want("link "+n, unix.Link("file", n), unix.EPERM)
		c.want("rename "+n, unix.Rename("file", n), unix.EPERM)
		c.want("noreplace "+n, unix.Renameat2(dir, "file", dir, n, renameNoReplace), unix.EPERM)
		c.want("unlink "+n, unix.Unlink(n), unix.ENOENT)
		c.want("truncate "+n, unix.Truncate(n, 0), unix.ENOENT)
		c.want("write "+n, open(n, unix.O_WRONLY), unix.ENOENT)
	}
	c.want("mkdir/", unix.Mkdir("frozen.txt/", 0o755), unix.EPERM)
	c.want("mkdir//", unix.Mkdir("frozen.txt//", 0o755), unix.EPERM)
	c.want("dangling", open("dangling", unix.O_WRONLY|unix.O_CREAT), unix.EPERM)
	c.want("dangling 2", open("a/b/dangling", unix.O_WRONLY|unix.O_CREAT), unix.EPERM)
	c.want("creat", open("short/dangling", unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC), unix.EPERM)
	d, err := unix.Open("a/b", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	c.ok("dir", err)
	_, err = unix.Openat(d, "frozen.txt", unix.O_CREAT|unix.O_WRONLY, 0o644)
	c.want("openat dirfd", err, unix.EPERM)
	c.want("dev fd", open(fmt.Sprintf("/dev/fd/%d/frozen.txt", d), unix.O_CREAT|unix.O_WRONLY), unix.EPERM)
	c.want("mkdirat dirfd", unix.Mkdirat(d, "frozen.txt", 0o755), unix.EPERM)
	_, err = os.Lstat("a/b/frozen.txt")
	c.want("lstat", err, unix.ENOENT)
	return c.err()
}

// frozenPresent finds frozen files where an earlier, unguarded name became one:
// they are brought in by the test's own directory (see hostFiles).
func frozenPresent() error {
	var c checks
	dir := unix.AT_FDCWD
	c.ok("file", put("file"))
	n := "host/frozen.txt"
	for _, f := range []int{unix.O_WRONLY, unix.O_RDWR, unix.O_RDONLY | unix.O_TRUNC, unix.O_WRONLY | unix.O_CREAT, unix.O_WRONLY | unix.O_APPEND, unix.O_WRONLY | unix.O_NOFOLLOW} {
		c.want(fmt.Sprintf("open %#o", f), open(n, f), unix.EPERM)
		c.want(fmt.Sprintf("link %#o", f), open("host/link", f&^unix.O_NOFOLLOW), unix.EPERM)
	}
	c.want("excl", open(n, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL), unix.EEXIST)
	c.want("mkdir", unix.Mkdir(n, 0o755), unix.EEXIST)
	c.want("truncate", unix.Truncate(n, 0), unix.EPERM)
	c.want("chmod", unix.Chmod(n, 0o777), unix.EPERM)
	c.want("unlink", unix.Unlink(n), unix.EPERM)
	c.want("rename from", unix.Rename(n, "other"), unix.EPERM)
	c.want("rename onto", unix.Rename("file", n), unix.EPERM)
	c.want("exchange", unix.Renameat2(dir, "file", dir, n, renameExchange), unix.EPERM)
	c.want("exchange back", unix.Renameat2(dir, n, dir, "file", renameExchange), unix.EPERM)
	c.want("link from", unix.Link(n, "other"), unix.EPERM)
	c.want("link from, followed", unix.Linkat(dir, "host/link", dir, "other", flagFollow), unix.EPERM)
	c.want("parent away", unix.Rename("host", "elsewhere"), unix.EPERM)
	fd, err := unix.Open(n, unix.O_RDONLY, 0)
	c.ok("read", err)
	c.want("reopen", open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY), unix.EPERM)
	c.want("reopen dev", open(fmt.Sprintf("/dev/fd/%d", fd), unix.O_RDWR|unix.O_TRUNC), unix.EPERM)
	c.want("fchmod", unix.Fchmod(fd, 0o777), unix.EPERM)
	c.want("link fd", unix.Linkat(dir, fmt.Sprintf("/proc/self/fd/%d", fd), dir, "other", flagFollow), unix.EPERM)
	c.want("link empty", unix.Linkat(fd, "", dir, "other", flagEmpty), unix.EPERM)
	p, err := unix.Open(n, unix.O_PATH, 0)
	c.ok("O_PATH", err)
	c.want("reopen path", open(fmt.Sprintf("/proc/self/fd/%d", p), unix.O_WRONLY), unix.EPERM)
	got, err := os.ReadFile(n)
	c.that("content changed", err == nil && string(got) == "host")
	return c.err()
}

func frozenRename() error {
	var c checks
	dir := unix.AT_FDCWD
	c.ok("x", os.MkdirAll("x/deeper", 0o755))
	c.ok("x/tasks.json", put("x/tasks.json"))
	c.want("dir becomes .vscode", unix.Rename("x", ".vscode"), unix.EPERM)
	c.ok("empty .VSCode", unix.Mkdir(".VSCode", 0o755))
	c.want("file into it", unix.Rename("x/tasks.json", ".VSCode/tasks.json"), unix.EPERM)
	c.want("exchange dirs", unix.Renameat2(dir, "x", dir, ".VSCode", renameExchange), unix.EPERM)
	c.want("exchange dirs back", unix.Renameat2(dir, ".VSCode", dir, "x", renameExchange), unix.EPERM)
	c.want("replace empty", unix.Rename("x", ".VSCode"), unix.EPERM)
	c.ok("git", os.MkdirAll("git/hooks", 0o755))
	c.ok("git hook", put("git/hooks/pre-commit"))
	c.want("becomes .git", unix.Rename("git", ".git"), unix.EPERM)
	c.ok("links", os.MkdirAll("plain/logs", 0o755))
	c.ok("link in it", os.Symlink("/etc/passwd", "plain/logs/HEAD"))
	c.want("becomes .git with a link", unix.Rename("plain", ".git"), unix.EPERM)
	c.ok("deep", os.MkdirAll("p/q/r/.vs/s", 0o755))
	c.ok("deep file", put("p/q/r/.vs/tasks.json"))
	c.want("deep rename", unix.Rename("p/q/r/.vs", "p/q/r/.vscode"), unix.EPERM)
	c.ok("harmless rename", unix.Rename("p/q", "p/w"))
	c.ok("unread", os.Mkdir("unread", 0o300))
	c.want("unread directory", unix.Rename("unread", "unread2"), unix.EPERM)
	c.ok("modules", os.MkdirAll("node_modules", 0o755))
	c.ok("free tree", unix.Rename("x", "node_modules/.x"))
	return c.err()
}

// dotDot renames a directory that another path goes up from.
func dotDot() error {
	var c checks
	c.ok("dirs", os.MkdirAll("one/two/three", 0o755))
	c.ok("vscode", os.MkdirAll("v/.vscode/sub", 0o755))
	d, err := unix.Open("one/two/three", unix.O_PATH, 0)
	c.ok("open", err)
	c.ok("move", unix.Rename("one/two/three", "v/.vscode/sub/three"))
	_, err = unix.Openat(d, "../../tasks.json", unix.O_CREAT|unix.O_WRONLY, 0o644)
	c.want("up into a frozen name", err, unix.EPERM)
	fd, err := unix.Openat(d, "../../other.json", unix.O_CREAT|unix.O_WRONLY, 0o644)
	c.ok("up into a free name", err)
	unix.Close(fd)
	_, err = os.Stat("v/.vscode/other.json")
	c.ok("where it went", err)
	c.ok("chdir", unix.Fchdir(d))
	c.ok("remove the directory we are in", unix.Rmdir("../three"))
	c.want("create in a removed directory", open("new", unix.O_CREAT|unix.O_WRONLY), unix.ENOENT)
	return c.err()
}

// inodes opens a frozen file by another name of it.
func inodes() error {
	var c checks
	c.want("other name of a frozen inode", open("host/alias", unix.O_WRONLY), unix.EPERM)
	c.want("truncate", unix.Truncate("host/alias", 0), unix.EPERM)
	c.want("chmod", unix.Chmod("host/alias", 0o700), unix.EPERM)
	c.want("link", unix.Link("host/alias", "third"), unix.EPERM)
	return c.err()
}

// deep goes below what a path can name.
func deep() error {
	var c checks
	name := strings.Repeat("d", 200)
	dir, err := unix.Open(".", unix.O_PATH, 0)
	c.ok("open", err)
	var depth int
	for depth = 0; depth < 40; depth++ {
		if err := unix.Mkdirat(dir, name, 0o755); err != nil {
			c.want("too deep to judge", err, unix.ENAMETOOLONG)
			break
		}
		fd, err := unix.Openat(dir, "frozen.txt", unix.O_CREAT|unix.O_WRONLY, 0o644)
		if err == nil {
			unix.Close(fd)
		}
		c.want(fmt.Sprint("frozen at depth ", depth), err, unix.EPERM)
		next, err := unix.Openat(dir, name, unix.O_PATH, 0)
		c.ok("down", err)
		unix.Close(dir)
		dir = next
	}
	c.that(fmt.Sprint("depth ", depth), depth >= 18 && depth < 40)
	raw := "\xff\xfe\x80 \n\t\"'"
	c.ok("not UTF-8", put(raw))
	c.ok("remove", os.Remove(raw))
	c.want("too long", put(strings.Repeat("x", 256)), unix.ENAMETOOLONG)
	c.ok("longest", put(strings.Repeat("x", 255)))
	return c.err()
}

func tmpfile() error {
	var c checks
	at := unix.AT_FDCWD
	fd, err := unix.Open(".", unix.O_TMPFILE|unix.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("O_TMPFILE: %w", err)
	}
	_, err = unix.Write(fd, []byte("tmp"))
	c.ok("write", err)
	link := fmt.Sprintf("/proc/self/fd/%d", fd)
	c.want("frozen", unix.Linkat(at, link, at, "frozen.txt", flagFollow), unix.EPERM)
	c.ok("free", unix.Linkat(at, link, at, "named", flagFollow))
	c.want("frozen, empty path", unix.Linkat(fd, "", at, "frozen.txt", flagEmpty), unix.EPERM)
	got, _ := os.ReadFile("named")
	c.that("content", string(got) == "tmp")
	fd, err = unix.Open(".", unix.O_TMPFILE|unix.O_RDWR|unix.O_EXCL, 0o644)
	c.ok("unlinkable", err)
	c.want("cannot be named", unix.Linkat(at, fmt.Sprintf("/proc/self/fd/%d", fd), at, "named2", flagFollow), unix.ENOENT)
	return c.err()
}

func gitWorks() error {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil
	}
	var c checks
	run := func(args ...string) string {
		cmd := exec.Command(git, args...)
		cmd.Env = append(os.Environ(), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		if err != nil {
			c.bad = append(c.bad, fmt.Errorf("git %v: %w: %s", args, err, out))
		}
		return string(out)
	}
	run("init", "-q", "repo")
	c.ok("file", put("repo/file"))
	run("-C", "repo", "add", ".")
	run("-C", "repo", "commit", "-q", "-m", "first")
	run("-C", "repo", "branch", "other")
	run("-C", "repo", "switch", "-q", "other")
	run("-C", "repo", "gc", "-q")
	run("clone", "-q", "--no-hardlinks", "repo", "clone")
	run("-C", "repo", "worktree", "add", "-q", "../tree")
	c.want("hook", put("repo/.git/hooks/pre-commit"), unix.EPERM)
	c.want("hook in the clone", put("clone/.git/hooks/post-checkout"), unix.EPERM)
	c.want("link", os.Symlink("/etc/passwd", "repo/.git/COMMIT_EDITMSG2"), unix.EPERM)
	c.that("clean", run("-C", "repo", "status", "--porcelain") == "")
	return c.err()
}

package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGrants(t *testing.T) {
	place := newPlace(t)
	h := place.home
	for _, d := range []string{".config/gcloud", ".cache/go-build", ".aws", "dotfiles/aws", "src/other"} {
		mkdir(t, h, d)
	}
	write(t, h+"/.ssh/known_hosts", "")
	write(t, h+"/.netrc", "")
	for link, target := range map[string]string{
		"tokeys": ".ssh", "tohosts": ".ssh/known_hosts", "tohome": ".", "todata": "data", "tostate": place.own,
		"toroot": "/", "dangling": "nowhere", "toproc": "/proc", "src/repo/out": "../../data", "src/repo/keys": "../../.ssh",
	} {
		must(t, os.Symlink(target, filepath.Join(h, link)))
	}
	// A secret directory that is itself a link: its target is as secret.
	must(t, os.Remove(h+"/.aws"))
	must(t, os.Symlink("dotfiles/aws", h+"/.aws"))

	tests := []struct {
		path        string
		read, write string // what the error holds; "" is granted
	}{
		{"~/data", "", ""},
		{"~/data/", "", ""},
		{h + "/data/../data", "", ""},
		{"~/todata", "", ""},
		{"~/.cache/go-build", "", ""},
		{"~/.cache/absent/deep", "", ""},
		{"../other", "", ""},
		{"sub", "", ""},
		{".", "", ""},
		{"/usr/share", "", ""},
		{"/usr/lib", "", "runs as others"},
		{"/usr", "", "runs as others"},
		{"/etc/hosts", "", "runs as others"},
		{"/", "whole machine", "whole machine"},
		{"//", "whole machine", "whole machine"},
		{"/usr/..", "whole machine", "whole machine"},
		{"~/toroot", "leads to /: ", "leads to /: "},
		{"~", "home directory", "home directory"},
		{h, "home directory", "home directory"},
		{filepath.Dir(h), "contains", "contains"},
		{"~/..", "contains", "contains"},
		{"~/tohome", "home directory", "home directory"},
		{"~/.ssh", "ssh keys", "ssh keys"},
		{"~/.SSH", "ssh keys", "ssh keys"},
		{"~/.ssh/", "ssh keys", "ssh keys"},
		{"~/data/../.ssh", "ssh keys", "ssh keys"},
		{"~/tokeys", "ssh keys", "ssh keys"},
		{"keys", "ssh keys", "ssh keys"},
		{"~/.ssh/known_hosts", "", "ssh keys"},
		{"~/tohosts", "", "ssh keys"},
		{"~/.config", "contains", "contains"},
		{"~/.config/gcloud", "cloud credentials", "cloud credentials"},
		{"~/.aws", "cloud credentials", "cloud credentials"},
		{"~/dotfiles/aws", "cloud credentials", "cloud credentials"},
		{"~/dotfiles", "contains", "contains"},
		{"~/.netrc", "passwords", "passwords"},
		{"~/.git-credentials", "passwords", "passwords"},
		{"~/.local/share", "keyring", "keyring"},
		{"~/.local/share/keyrings/login.keyring", "keyring", "keyring"},
		{"~/.local", "contains", "contains"},
		{place.own, "own state", "own state"},
		{place.own + "/trust", "own state", "own state"},
		{"~/tostate", "own state", "own state"},
		{"~/.local/state", "own state", "own state"},
		{"/etc", "contains", "contains"},
		{"/etc/shadow", "password hashes", "password hashes"},
		{"/proc", "other processes", "other processes"},
		{"/proc/self/root", "other processes", "other processes"},
		{"~/toproc/1", "other processes", "other processes"},
		{"/sys/fs", "kernel", "kernel"},
		{"/dev/shm", "devices", "devices"},
		{"/run", "sockets", "sockets"},
		{"/run/docker.sock", "root", "root"},
		{"/var/run/docker.sock", "root", "root"},
		{"/run/user/1000/bus", "session", "session"},
		{"~/src/other/.git", "", "git would run"},
		{"~/src/other/.GIT/hooks", "", "git would run"},
		{".git/hooks", "", "git would run"},
		{"~/dangling", "leads nowhere", "leads nowhere"},
		{"~other/x", "not expanded", "not expanded"},
		{"$HOME/x", "not expanded", "not expanded"},
		{"${HOME}", "not expanded", "not expanded"},
	}
	g := newGranter(Input{Home: h, WorkspaceRoot: place.root, Own: []string{place.own}})
	for _, tt := range tests {
		for _, writable := range []bool{false, true} {
			key, want := "read", tt.read
			if writable {
				key, want = "write", tt.write
			}
			t.Run(key+" "+strings.ReplaceAll(tt.path, "/", "|"), func(t *testing.T) {
				gr, err := g.grant(word[string]{tt.path, origin{pos: Pos{"f", 1, 2}, key: key}}, writable)
				switch {
				case want == "" && err != nil:
					t.Errorf("refused: %v", err)
				case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "f:1:2: "+key)):
					t.Errorf("grant = %+v, %v, want an error with %q", gr, err, want)
				case err == nil && (!filepath.IsAbs(gr.Path) || filepath.Clean(gr.Path) != gr.Path || filepath.Clean(gr.Real) != gr.Real):
					t.Errorf("grant = %+v is not clean", gr)
				}
			})
		}
	}
}

// TestNeverGranted holds that each row of the table is refused on its own.
func TestNeverGranted(t *testing.T) {
	for _, f := range neverGranted {
		t.Run(f.path, func(t *testing.T) {
			if f.why == "" {
				t.Error("the row has no reason")
			}
			g := newGranter(Input{Home: "/nonexistent/home", WorkspaceRoot: "/nonexistent/repo"})
			if _, err := g.grant(word[string]{v: f.path}, false); err == nil {
				t.Error("it can be read")
			}
			if _, err := g.grant(word[string]{v: f.path + "/below"}, f.below == writeBelow); (err == nil) != (f.below == noneBelow) {
				t.Errorf("below it: %v", err)
			}
		})
	}
}

func TestGrantReal(t *testing.T) {
	place := newPlace(t)
	must(t, os.Symlink("data", place.home+"/link"))
	g := newGranter(Input{Home: place.home, WorkspaceRoot: place.root})
	for path, want := range map[string]Grant{
		"~/data":      {Path: place.home + "/data", Real: place.home + "/data"},
		"~/link":      {Path: place.home + "/link", Real: place.home + "/data"},
		"~/link/new":  {Path: place.home + "/link/new", Real: place.home + "/data/new", Missing: true},
		"~/new/other": {Path: place.home + "/new/other", Real: place.home + "/new/other", Missing: true},
	} {
		got, err := g.grant(word[string]{v: path}, false)
		if err != nil || got != want {
			t.Errorf("grant(%q) = %+v, %v, want %+v", path, got, err, want)
		}
	}
}

// TestGrantInWorkspace holds that a grant below the workspace needs no yes
// when the agent may write there anyway, and one that a link leads out does.
func TestGrantInWorkspace(t *testing.T) {
	place := newPlace(t)
	must(t, os.Symlink(place.home+"/data", place.root+"/out"))
	tests := []struct {
		name, user, repo string
		read, write      int // granted
		pending          int
	}{
		{"inside", "-", "sandbox: {read: [sub], write: [sub]}", 1, 1, 0},
		{"inside, read-only by the same file", "-", "sandbox: {workspace: read, write: [sub]}", 0, 1, 0},
		{"inside, read-only by the user", "sandbox: {workspace: read}", "sandbox: {read: [sub], write: [sub]}", 1, 0, 1},
		{"a link out", "-", "sandbox: {read: [out], write: [out]}", 0, 0, 2},
		{"up and out", "-", "sandbox: {read: [sub/../../other], write: [../repo2]}", 0, 0, 2},
		{"git's own", "-", "sandbox: {write: [.git/hooks]}", 0, 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := place.load(tt.user, tt.repo, false, Flags{})
			must(t, err)
			if len(p.Sandbox.Read) != tt.read || len(p.Sandbox.Write) != tt.write || len(p.Pending) != tt.pending {
				t.Errorf("got\n%s", p)
			}
		})
	}
}

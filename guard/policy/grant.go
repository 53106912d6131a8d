package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// below says what is refused of the paths below a forbidden one.
type below uint8

const (
	allBelow   below = iota // every path below is refused too
	writeBelow              // a path below may be read when it is named, never written
	noneBelow               // only the path itself and what contains it
)

// forbidden is a path that no grant may open: not it, not what contains it.
type forbidden struct {
	path  string // absolute, or below the home directory with "~/"; "~" is home itself
	below below
	why   string
}

// neverGranted is the table of what a grant must not open by accident. What
// agentguard keeps itself is added by [Load].
var neverGranted = []forbidden{
	{"/", noneBelow, "it is the whole machine"},
	{"~", noneBelow, "it is the home directory with every key and token in it"},
	{"/root", writeBelow, "it is root's home directory"},
	{"~/.ssh", writeBelow, "it holds ssh keys"},
	{"~/.gnupg", writeBelow, "it holds gpg keys"},
	{"~/.aws", writeBelow, "it holds cloud credentials"},
	{"~/.config/gcloud", writeBelow, "it holds cloud credentials"},
	{"~/.azure", writeBelow, "it holds cloud credentials"},
	{"~/.oci", writeBelow, "it holds cloud credentials"},
	{"~/.kube", writeBelow, "it holds cluster credentials"},
	{"~/.docker", writeBelow, "it holds registry credentials and plugins"},
	{"~/.config/containers", writeBelow, "it holds registry credentials"},
	{"~/.config/gh", writeBelow, "it holds GitHub tokens"},
	{"~/.config/op", writeBelow, "it belongs to a password manager"},
	{"~/.password-store", writeBelow, "it belongs to a password manager"},
	{"~/.local/share/keyrings", allBelow, "it is the keyring"},
	{"~/.local/share/kwalletd", allBelow, "it is the keyring"},
	{"~/Library/Keychains", allBelow, "it is the keychain"},
	{"~/.mozilla", writeBelow, "it holds the browser's sessions"},
	{"~/.config/google-chrome", writeBelow, "it holds the browser's sessions"},
	{"~/.config/chromium", writeBelow, "it holds the browser's sessions"},
	{"~/.netrc", allBelow, "it holds passwords"},
	{"~/.git-credentials", allBelow, "it holds passwords"},
	{"~/.config/git/credentials", allBelow, "it holds passwords"},
	{"~/.pgpass", allBelow, "it holds passwords"},
	{"~/.vault-token", allBelow, "it is a token"},
	{"/etc/shadow", allBelow, "it holds password hashes"},
	{"/etc/gshadow", allBelow, "it holds password hashes"},
	{"/etc/sudoers", allBelow, "it says who is root"},
	{"/etc/ssh", writeBelow, "it holds the machine's keys"},
	{"/proc", allBelow, "it shows other processes"},
	{"/sys", allBelow, "it is the kernel's"},
	{"/dev", allBelow, "it holds devices"},
	{"/run/user", allBelow, "it holds the sockets of the session"},
	{"/run/secrets", allBelow, "it holds secrets"},
	{"/run/docker.sock", allBelow, "whoever reaches it is root"},
	{"/run/containerd", allBelow, "whoever reaches it is root"},
	{"/run/podman", allBelow, "whoever reaches it starts containers"},
	{"/run/dbus", allBelow, "it starts services"},
	{"/var/run/docker.sock", allBelow, "whoever reaches it is root"},
	{"/var/lib/docker", allBelow, "it holds every container's files"},
	{"/run", writeBelow, "it holds the sockets of services"},
	{"/boot", writeBelow, "the machine starts from it"},
}

// systemDirs are readable by everybody and must not be written: what lies
// there runs as somebody else. Paths below are meant too.
var systemDirs = []string{"/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec", "/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/etc", "/System", "/Library"}

// granter turns what a file says into grants.
type granter struct {
	home, root string // either may be empty
	own        []string
	table      []forbidden // made at the first grant
	links      links
}

func newGranter(in Input) *granter {
	return &granter{home: in.Home, root: in.WorkspaceRoot, own: in.Own, links: links{}}
}

// rows returns the table for this user, with what links lead to.
func (g *granter) rows() []forbidden {
	if g.table != nil {
		return g.table
	}
	for _, f := range neverGranted {
		if rest, ok := strings.CutPrefix(f.path, "~"); ok {
			if g.home == "" || f.path == "~" && g.home == "/" {
				continue // told by the row of "/"
			}
			f.path = filepath.Join(g.home, rest)
		}
		if f.path == "/root" && g.home != "" && within(g.home, f.path) {
			continue // the row of the home directory says more
		}
		g.add(f)
	}
	for _, own := range g.own {
		g.add(forbidden{own, allBelow, "agentguard keeps its own state there"})
	}
	return g.table
}

// add puts a row into the table, and again for what links lead to.
func (g *granter) add(f forbidden) {
	f.path = filepath.Clean(f.path)
	g.table = append(g.table, f)
	if at := g.links.resolve(f.path); at.err == nil && at.real != f.path {
		f.path = at.real
		g.table = append(g.table, f)
	}
}

// grant makes a grant of a path as written in a policy.
func (g *granter) grant(w word[string], write bool) (Grant, *Error) {
	path, err := g.expand(w.v)
	if err != nil {
		return Grant{}, w.err(err)
	}
	at := g.links.resolve(path)
	if at.err != nil {
		return Grant{}, w.err(fmt.Errorf("%s cannot be looked at: %w", quote(path), at.err))
	}
	for _, p := range []string{path, at.real} {
		if err := g.check(p, write); err != nil {
			if p != path {
				err = fmt.Errorf("%s leads to %s: %w", quote(path), quote(p), err)
			}
			return Grant{}, w.err(err)
		}
	}
	return Grant{Path: path, Real: at.real, Missing: at.missing, Pos: w.pos}, nil
}

// expand makes a written path absolute.
func (g *granter) expand(s string) (string, error) {
	switch {
	case s == "~" || strings.HasPrefix(s, "~/"):
		if g.home == "" {
			return "", errors.New("there is no home directory that ~ could mean")
		}
		return filepath.Join(g.home, s[1:]), nil
	case strings.HasPrefix(s, "~"):
		return "", errors.New("~name is not expanded: write the path in full")
	case strings.HasPrefix(s, "$"):
		return "", errors.New("variables are not expanded: write the path in full, or with ~")
	case filepath.IsAbs(s):
		return filepath.Clean(s), nil
	case g.root == "":
		return "", errors.New("there is no workspace that a relative path could begin at")
	}
	return filepath.Join(g.root, s), nil
}

// check refuses a path by the table.
func (g *granter) check(path string, write bool) error {
	for _, f := range g.rows() {
		// Without regard to case, for file systems that have none.
		p, row := strings.ToLower(path), strings.ToLower(f.path)
		inside := p != row && within(p, row)
		switch {
		case p == row:
			return fmt.Errorf("%s cannot be granted: %s", quote(path), f.why)
		case within(row, p):
			return fmt.Errorf("%s cannot be granted: it contains %s, and %s", quote(path), quote(f.path), f.why)
		case inside && (f.below == allBelow || f.below == writeBelow && write):
			return fmt.Errorf("%s cannot be granted: it is in %s, and %s", quote(path), quote(f.path), f.why)
		}
	}
	if !write {
		return nil
	}
	for _, dir := range systemDirs {
		if within(path, dir) || within(dir, path) {
			return fmt.Errorf("%s cannot be made writable: what is in %s runs as others", quote(path), dir)
		}
	}
	for name := range strings.SplitSeq(path, "/") {
		if strings.EqualFold(name, ".git") {
			return fmt.Errorf("%s cannot be made writable: git would run what is put there", quote(path))
		}
	}
	return nil
}

// inWorkspace says whether a grant lies in the workspace, as written and as
// links lead.
func (g *granter) inWorkspace(gr Grant) bool {
	if g.root == "" {
		return false
	}
	at := g.links.resolve(g.root)
	return at.err == nil && within(gr.Real, at.real) && (within(gr.Path, g.root) || within(gr.Path, at.real))
}

// within says whether path is dir or below it; both are clean and absolute.
func within(path, dir string) bool {
	if dir == "/" {
		return strings.HasPrefix(path, "/")
	}
	rest, ok := strings.CutPrefix(path, dir)
	return ok && dir != "" && (rest == "" || rest[0] == '/')
}

// cleanRelative says whether s is a relative slash path that stays below where
// it begins and is not in a git directory.
func cleanRelative(s string) bool {
	if s == "." || strings.ContainsAny(s, "\\\x00") || !filepath.IsLocal(s) || filepath.Clean(s) != s {
		return false
	}
	for name := range strings.SplitSeq(s, "/") {
		if strings.EqualFold(name, ".git") {
			return false
		}
	}
	return true
}

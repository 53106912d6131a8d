package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentguard/guard/policy"
	"agentguard/guard/surface"
)

// secretNames are the names under which tools keep keys and logins. Inside a
// directory that is granted as a whole they are shown empty: who wants one
// seen names it.
var secretNames = map[string]string{
	".ssh":              "ssh keys",
	".gnupg":            "OpenPGP keys",
	".aws":              "AWS credentials",
	".azure":            "Azure logins",
	".kube":             "cluster credentials",
	".docker":           "registry logins",
	".netrc":            "passwords by host",
	"_netrc":            "passwords by host",
	".git-credentials":  "git's stored passwords",
	".npmrc":            "registry tokens",
	".pypirc":           "registry passwords",
	".pgpass":           "database passwords",
	".my.cnf":           "database passwords",
	".vault-token":      "a Vault token",
	".env":              "an application's secrets",
	".terraform.d":      "Terraform logins",
	".password-store":   "passwords",
	"gcloud":            "Google Cloud logins",
	"keyrings":          "the desktop's keyring",
	"auth.json":         "logins of command line tools",
	"hosts.yml":         "logins of the GitHub command line",
	"id_rsa":            "an ssh key",
	"id_dsa":            "an ssh key",
	"id_ecdsa":          "an ssh key",
	"id_ed25519":        "an ssh key",
	"id_ecdsa_sk":       "an ssh key",
	"id_ed25519_sk":     "an ssh key",
	".bash_history":     "what was typed, passwords among it",
	".zsh_history":      "what was typed, passwords among it",
	".mozilla":          "a browser's logins",
	"google-chrome":     "a browser's logins",
	"chromium":          "a browser's logins",
	"master.key":        "an application's key",
	"secring.gpg":       "OpenPGP keys",
	"access_tokens.db":  "logins",
	"credentials.db":    "logins",
	"cookies.sqlite":    "a browser's logins",
	"terraform.tfstate": "secrets in a state file",
}

// secretSuffixes and secretPrefixes are the same for names with a free part.
var (
	secretSuffixes = []string{".pem", ".key", ".p12", ".pfx", ".kdbx", ".keytab", ".jks"}
	secretPrefixes = []string{"credentials", ".env.", "service-account", "client_secret"}
)

// looksSecret says whether a base name is one that keys are kept under.
func looksSecret(name string) bool {
	lower := strings.ToLower(name)
	if _, ok := secretNames[lower]; ok {
		return true
	}
	for _, s := range secretSuffixes {
		if strings.HasSuffix(lower, s) {
			return true
		}
	}
	for _, p := range secretPrefixes {
		if strings.HasPrefix(lower, p) {
			return true
		}
	}
	return false
}

// maskLimit bounds how many names of one grant are looked at.
const maskLimit = 200_000

// TooBroadError says that a grant holds more than could be looked through for
// keys.
type TooBroadError struct{ Path string }

func (e *TooBroadError) Error() string {
	return "the grant of " + e.Path + " holds more than can be looked through for keys: grant the parts that are needed"
}

// masksOf returns what is shown empty inside the policy's grants, unless a
// grant names it.
func masksOf(p *policy.Policy, root string) ([]string, error) {
	var out []string
	named := map[string]bool{root: true}
	grants := slices.Concat(p.Sandbox.Read, p.Sandbox.Write)
	for _, g := range grants {
		named[g.Real] = true
	}
	for _, g := range grants {
		if g.Missing || within(g.Real, root) {
			continue
		}
		found, err := secretsBelow(g, named)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// secretsBelow walks one grant; links are not followed, because inside they
// lead nowhere that was not granted.
func secretsBelow(g policy.Grant, named map[string]bool) ([]string, error) {
	var out []string
	seen := 0
	err := filepath.WalkDir(g.Real, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
				return nil // not readable inside either
			}
			return err
		}
		if seen++; seen > maskLimit {
			return &TooBroadError{g.Path}
		}
		if named[path] {
			return nil
		}
		if looksSecret(d.Name()) || d.Type() == os.ModeSocket {
			out = append(out, filepath.Join(g.Path, strings.TrimPrefix(path, g.Real)))
			if d.IsDir() {
				return filepath.SkipDir
			}
		}
		return nil
	})
	return out, err
}

// socketFinder notes the sockets that a walk passes. One that is there before
// a run belongs to a program of the host, and a socket is reached by its name
// whatever network there is.
type socketFinder struct {
	surface.Tree
	area *area
}

func (f *socketFinder) Walk(fn func(surface.WalkEntry) error) error {
	return f.Tree.Walk(func(e surface.WalkEntry) error {
		if e.Type == surface.Other {
			path := f.area.path(e.Path)
			if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
				f.area.sockets = append(f.area.sockets, path)
			}
		}
		return fn(e)
	})
}

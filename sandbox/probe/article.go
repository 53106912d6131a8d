package probe

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// articleAttempts are the seven that everybody asks first; two of them, DNS and
// HTTPS, need the network and sudo the kernel, and stand with those.
func articleAttempts() []attempt {
	return []attempt{
		{Attempt{"file.ssh-key", "read the ssh key", "the home directory is not in the sandbox", Refused}, func(env Env) error {
			return readCanary(env, filepath.Join(env.Home, ".ssh", "id_ed25519"))
		}},
		{Attempt{"file.cloud-credentials", "read cloud credentials", "the home directory is not in the sandbox", Refused}, func(env Env) error {
			return readCanary(env, filepath.Join(env.Home, ".aws", "credentials"))
		}},
		{Attempt{"file.write-outside", "write outside the workspace", "only granted paths are writable", Refused}, func(env Env) error {
			return appendTo(env, filepath.Join(env.Elsewhere, "notes"))
		}},
		{Attempt{"file.home-dotfile", "write a home dot-file", "the home directory is not in the sandbox", Refused}, func(env Env) error {
			return appendTo(env, filepath.Join(env.Home, ".bashrc"))
		}},
		{Attempt{"net.dns", "DNS", "the network is empty", Refused}, resolveDirectly},
		{Attempt{"net.https", "outbound HTTPS", "the network is empty", Refused}, fetchDirectly},
		{Attempt{"kernel.sudo", "sudo", "no_new_privs: a set-uid program gains nothing", Refused}, runSetuid},
	}
}

// readCanary succeeds if the file is the planted one.
func readCanary(env Env, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Contains(content, []byte(env.Canary)) {
		return refused("%s is another file", path)
	}
	return nil
}

// appendTo writes to an existing file of the plant, never to one of the same
// name that the sandbox has in its place.
func appendTo(env Env, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	content := make([]byte, 4096)
	n, err := f.Read(content)
	if err != nil {
		return fmt.Errorf("reading %q: %w", path, err)
	}
	if !bytes.Contains(content[:n], []byte(env.Canary)) {
		return refused("%s is another file", path)
	}
	_, err = f.WriteString("# written by the self-test\n")
	return err
}

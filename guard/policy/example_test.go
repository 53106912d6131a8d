package policy_test

import (
	"fmt"
	"os"
	"path/filepath"

	"agentguard/guard/policy"
)

// How a run gets its policy: each file is read once, and the yes is looked up
// for the very bytes that are then loaded.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) // the example's own
	file := filepath.Join(dir, policy.FileName)
	text := "version: 1\negress:\n  allow:\n    - {host: modules.example.com}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	load := func(store policy.TrustStore) (*policy.Policy, error) {
		repo, err := policy.ReadSource(file, policy.FileName)
		if err != nil {
			return nil, err
		}
		id, err := policy.Identify(dir) // the common git directory, in a repository
		if err != nil {
			return nil, err
		}
		trusted, err := store.Trusted(id, repo)
		if err != nil {
			return nil, err
		}
		return policy.Load(policy.Input{WorkspaceRoot: dir, Own: []string{store.Dir}, Repo: repo, RepoTrusted: trusted})
	}
	p, err := load(policy.TrustStore{Dir: filepath.Join(dir, "trust")})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(p.Egress.Allow), "allowed, waiting:", p.Pending)
	// Output: 0 allowed, waiting: [.agentguard.yaml:4:7: egress.allow: {host: modules.example.com}]
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentguard/guard/policy"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(version: .*?)```")

// TestDocumentedPolicies holds every policy that the documentation shows, and
// the one of this repository, to what agentguard reads.
func TestDocumentedPolicies(t *testing.T) {
	top := filepath.Join("..", "..")
	own, err := os.ReadFile(filepath.Join(top, policy.FileName))
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string][]byte{policy.FileName: own, "init": policy.InitTemplate()}
	pages, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, filepath.Join(top, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllSubmatch(text, -1) {
			policies[filepath.Base(page)+" "+firstLines(block[1])] = block[1]
		}
	}
	if len(policies) < 5 {
		t.Errorf("found %d policies: the pattern misses the documentation's", len(policies))
	}
	for name, data := range policies {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Load(policy.Input{
				Home: "/nonexistent/home", WorkspaceRoot: "/nonexistent/workspace",
				Repo: &policy.Source{Name: policy.FileName, Data: data}, RepoTrusted: true,
			})
			if err != nil {
				t.Errorf("%v\n%s", err, data)
			}
		})
	}
}

func firstLines(block []byte) string {
	lines := strings.SplitN(string(block), "\n", 4)
	return strings.Join(lines[:min(3, len(lines))], " ")
}

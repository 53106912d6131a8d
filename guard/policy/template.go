package policy

// InitTemplate returns the policy file that `agentguard init` writes. It parses
// and widens nothing, so that it needs no yes.
func InitTemplate() []byte { return []byte(template) }

const template = `# What a coding agent may do in this repository: agentguard reads this file
# before every run. What it widens counts only after "agentguard trust".
version: 1

# sandbox:
#   workspace: write            # or read
#   profile: strict             # or balanced: build and test files are reviewed, not frozen
#   read: [~/reference]         # more directories the agent may read
#   write: [~/.cache/tool]      # more directories the agent may write
#   protect: ["infra/**"]       # more files of this repository to freeze
#   unprotect: ["tests/conftest.py"]
#   env: {pass: [LANG], set: {CI: "1"}}

# egress:                       # nothing is reachable that no rule names
#   allow:
#     - {host: modules.example.com}
#     - {host: "*.example.com", ports: [443]}
#     - {host: api.example.com, methods: [GET], paths: [/v1/**]}

# hooks: {path: .githooks}
`

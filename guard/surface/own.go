package surface

// ownEntries are the files that decide what agentguard itself does: whoever
// may write them decides.
func ownEntries() []Entry {
	return []Entry{
		{
			ID:        "agentguard-policy",
			Title:     "agentguard's policy and manifest",
			Ecosystem: "agentguard",
			Patterns:  rooted(".agentguard.yaml", ".agentguard.sum"),
			Trigger:   "every agentguard command",
			Why:       "they say what is protected and which hashes are approved",
			Source:    "agentguard",
			Fixed:     true,
		},
		{
			ID:        "agentguard-hooks",
			Title:     "the tracked hooks agentguard installs from",
			Ecosystem: "agentguard",
			Patterns:  rooted(".githooks/**"),
			Trigger:   "git commit, checkout, merge, rebase, push",
			Why:       "the reviewed source of every hook that runs",
			Source:    "https://git-scm.com/docs/git-config#Documentation/git-config.txt-corehooksPath",
		},
	}
}

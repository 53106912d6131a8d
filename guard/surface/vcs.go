package surface

// vcsEntries returns the rows of this file. Other version control.
func vcsEntries() []Entry {
	return []Entry{
		{
			ID:        "hgrc",
			Title:     "mercurial configuration",
			Ecosystem: "mercurial",
			Patterns:  anywhere(".hg/hgrc", ".hg/hgrc-not-shared"),
			Trigger:   "hg status and any hg command",
			Why:       "what counts: [hooks], [alias], [extensions], [ui] editor/merge tools; an agent never has to change it",
			Source:    "https://www.mercurial-scm.org/help/topics/config",
		},
		{
			ID:        "jj-config",
			Title:     "jujutsu configuration",
			Ecosystem: "jujutsu",
			Patterns:  anywhere(".jj/repo/config.toml", ".jj/workspace-config.toml"),
			Trigger:   "jj commands",
			Why:       "what counts: aliases with util exec, fix.tools, signing program, ui.editor/pager; an agent never has to change it",
			Source:    "https://docs.jj-vcs.dev/latest/config/",
		},
		{
			ID:        "sapling-config",
			Title:     "sapling configuration",
			Ecosystem: "sapling",
			Patterns:  anywhere(".sl/config", ".sl/hgrc"),
			Trigger:   "sl commands",
			Why:       "what counts: [hooks], [alias], [extensions]; an agent never has to change it",
			Source:    "https://sapling-scm.com/docs/introduction/",
		},
		{
			ID:        "arcconfig",
			Title:     "arcanist configuration",
			Ecosystem: "phabricator",
			Patterns:  rooted(".arcconfig", ".arclint", ".arcunit"),
			Trigger:   "arc diff, arc lint",
			Why:       "what counts: load: PHP libraries, lint script-and-regex commands; an agent rarely has to change it",
			Source:    "https://secure.phabricator.com/book/phabricator/article/arcanist_new_project/",
			Balanced:  Review,
		},
	}
}

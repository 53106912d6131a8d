package hooks

// Hook is one name that git looks for in its hooks directory.
type Hook struct {
	Name   string
	When   string // what makes git run it
	Veto   bool   // a status other than 0 stops what git was doing
	GitDir bool   // git runs it in the git directory, where the source is out of sight
}

// Known lists the hooks that git documents (githooks(5)), by name. A name that is
// not here gets a shim all the same when an approved file has it: git grows
// new ones.
func Known() []Hook {
	return []Hook{
		{Name: "applypatch-msg", When: "git am, before the message is used", Veto: true},
		{Name: "commit-msg", When: "git commit and git merge, after the message is written", Veto: true},
		{Name: "fsmonitor-watchman", When: "git status and whatever refreshes the index, when core.fsmonitor names it"},
		{Name: "p4-changelist", When: "git p4 submit, after the message is edited", Veto: true},
		{Name: "p4-post-changelist", When: "git p4 submit, after it succeeded"},
		{Name: "p4-pre-submit", When: "git p4 submit, before anything", Veto: true},
		{Name: "p4-prepare-changelist", When: "git p4 submit, before the message is edited", Veto: true},
		{Name: "post-applypatch", When: "git am, after the commit"},
		{Name: "post-checkout", When: "git checkout, switch, clone and worktree add, after the files are there"},
		{Name: "post-commit", When: "git commit, after it"},
		{Name: "post-index-change", When: "every write of the index"},
		{Name: "post-merge", When: "git merge and git pull, after they succeeded"},
		{Name: "post-receive", When: "a push into this repository, after all refs", GitDir: true},
		{Name: "post-rewrite", When: "git commit --amend and git rebase, after them"},
		{Name: "post-update", When: "a push into this repository, after all refs", GitDir: true},
		{Name: "pre-applypatch", When: "git am, before the commit", Veto: true},
		{Name: "pre-auto-gc", When: "git gc --auto", Veto: true},
		{Name: "pre-commit", When: "git commit, before anything", Veto: true},
		{Name: "pre-merge-commit", When: "git merge, before the merge commit; not for a fast-forward", Veto: true},
		{Name: "pre-push", When: "git push, before anything is sent", Veto: true},
		{Name: "pre-rebase", When: "git rebase, before anything", Veto: true},
		{Name: "pre-receive", When: "a push into this repository, before any ref", Veto: true, GitDir: true},
		{Name: "prepare-commit-msg", When: "git commit, before the editor; not skipped by --no-verify", Veto: true},
		{Name: "proc-receive", When: "a push to refs that receive.procReceiveRefs names", Veto: true, GitDir: true},
		{Name: "push-to-checkout", When: "a push to the branch checked out here", Veto: true, GitDir: true},
		{Name: "reference-transaction", When: "every change of refs, plumbing included", Veto: true},
		{Name: "sendemail-validate", When: "git send-email, before each message", Veto: true},
		{Name: "update", When: "a push into this repository, before each ref", Veto: true, GitDir: true},
	}
}

func known(name string) bool {
	for _, h := range Known() {
		if h.Name == name {
			return true
		}
	}
	return false
}

// always are the shims that are there without an approved hook of the name: a
// hook that a branch brings along is then told by the next commit at the
// latest, instead of being passed over in silence.
var always = [...]string{"pre-commit"}

// shimName tells whether git could look for a hook of this name: known ones,
// and any that is spelled like them.
func shimName(name string) bool {
	if name == "" {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

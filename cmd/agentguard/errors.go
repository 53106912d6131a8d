package main

import (
	"errors"
	"fmt"
	"io"

	"agentguard/guard"
	"agentguard/guard/git"
	"agentguard/guard/policy"
	"agentguard/hooks"
	"agentguard/sandbox"
)

// tell writes an error and, where there is one, the command that mends it:
// no capitals at the start, no period at the end.
func tell(w io.Writer, err error) {
	fmt.Fprintf(w, "agentguard: error: %v\n", err)
	for _, h := range hints(err) {
		fmt.Fprintf(w, "agentguard: hint: %s\n", h)
	}
}

// told tells err and gives the exit status for it.
func told(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	tell(w, err)
	if _, ok := errors.AsType[*enforceError](err); ok {
		return 125
	}
	if isUsage(err) {
		return 2
	}
	return 125
}

func isUsage(err error) bool {
	if _, ok := errors.AsType[policy.Errors](err); ok {
		return true
	}
	if _, ok := errors.AsType[*policy.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*git.NotRepoError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*git.BareError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*guard.PathError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*guard.RangeError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*guard.WorkspaceError](err); ok {
		return true
	}
	_, ok := errors.AsType[*usageError](err)
	return ok
}

func hints(err error) []string {
	if e, ok := errors.AsType[*sandbox.UnavailableError](err); ok {
		return unavailableHints(e)
	}
	if _, ok := errors.AsType[*git.NotRepoError](err); ok {
		return []string{"make one here (git init), or go to the repository's directory"}
	}
	if _, ok := errors.AsType[*git.BareError](err); ok {
		return []string{"work in a clone of it: git clone DIRECTORY"}
	}
	if _, ok := errors.AsType[*guard.WorkspaceError](err); ok {
		return []string{"go to the directory of one project and call agentguard there"}
	}
	if e, ok := errors.AsType[*guard.RangeError](err); ok {
		return []string{"fetch what is missing: git fetch --depth=1000 origin " + e.Rev + " (in CI, fetch-depth: 0)"}
	}
	if _, ok := errors.AsType[*hooks.ConflictError](err); ok {
		return []string{"see agentguard hooks status; --adopt copies what is there into .githooks, --replace takes over"}
	}
	if e, ok := errors.AsType[*hooks.SourceError](err); ok && e.Missing {
		return []string{"put hooks there (as .githooks/pre-commit, executable) and git add them; hooks install --adopt copies those that git runs now"}
	}
	if _, ok := errors.AsType[*hooks.RelativeGlobalError](err); ok {
		return []string{"make it absolute, or take it away: git config --global --unset core.hooksPath"}
	}
	if _, ok := errors.AsType[*hooks.NotInstalledError](err); ok {
		return []string{"agentguard hooks install"}
	}
	if e, ok := errors.AsType[*sandbox.NotStartedError](err); ok && e.Status == 127 {
		return []string{"only what lies in the system's directories, on PATH or in the workspace exists inside; --read PATH shows more"}
	}
	return nil
}

func unavailableHints(e *sandbox.UnavailableError) []string {
	switch {
	case e.Need == "bubblewrap is not installed":
		return []string{"sudo apt-get install bubblewrap"}
	case e.Need == "the system does not let bubblewrap make a user namespace":
		return []string{
			"sudo sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000",
			"in a container, it has to be started with user namespaces allowed; agentguard doctor says more",
		}
	}
	return []string{"agentguard doctor says what this machine offers"}
}

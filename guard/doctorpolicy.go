package guard

import (
	"errors"
	"fmt"
	"strings"

	"agentguard/guard/policy"
	"agentguard/hooks"
)

// lookPolicy loads the policy as a run would.
func lookPolicy(e *examination) Diagnosis {
	if e.w == nil {
		return Diagnosis{Standing: Noted, Found: "no workspace here"}
	}
	p, err := e.policy()
	if err != nil {
		return Diagnosis{
			Standing: Finding, Found: firstLine(err.Error()), Follows: "agentguard run starts nothing here",
			Mend: []string{"agentguard policy show says all that is wrong"},
		}
	}
	var names []string
	for _, l := range p.Layers {
		names = append(names, l.Name)
	}
	d := Diagnosis{Standing: Fine, Found: "built-in, " + strings.Join(names, ", ")}
	switch {
	case len(names) == 0:
		return Diagnosis{Standing: Noted, Found: "there is no file: the built-in policy", Follows: "a run may read the workspace and not write it", Mend: []string{"agentguard init"}}
	case len(p.Pending) > 0:
		d.Standing = Finding
		d.Found += fmt.Sprintf("; %s of %s not in force", count(len(p.Pending), "line"), policy.FileName)
		d.Follows = "what the repository's file opens counts only after your yes; what it closes counts already"
		d.Mend = []string{"agentguard trust --show", "agentguard trust"}
	case len(p.Warnings()) > 0:
		d.Standing, d.Follows = Noted, strings.Join(p.Warnings(), "; ")
	}
	return d
}

func firstLine(s string) string {
	line, rest, _ := strings.Cut(s, "\n")
	if rest != "" {
		line += " (and more)"
	}
	return line
}

// lookHooks says whether git runs the approved hooks.
func lookHooks(e *examination) Diagnosis {
	if e.w == nil || e.w.Repo == nil {
		return Diagnosis{Standing: Noted, Found: "no repository here"}
	}
	source := hooks.DefaultSource
	if p, err := e.policy(); err == nil {
		source = p.Hooks.Path // else policy says what is wrong
	}
	st, err := hooks.Status(hooks.Options{Repo: e.w.Repo, Source: source, StateDir: e.w.dirs.state, Home: e.g.home(), XDG: e.g.Env["XDG_CONFIG_HOME"]})
	if err != nil {
		d := Diagnosis{Standing: Finding, Found: err.Error(), Follows: "it is not known which hooks git runs here", Mend: []string{"agentguard hooks status"}}
		if _, ok := errors.AsType[*hooks.RelativeGlobalError](err); ok {
			d.Follows, d.Mend = "a clone brings hooks that run at once", []string{"git config --global --unset core.hooksPath"}
		}
		return d
	}
	return diagnoseHooks(st)
}

func diagnoseHooks(st hooks.State) Diagnosis {
	where := "not set; git runs hooks of " + quote(st.Path)
	if st.Value != "" {
		where = fmt.Sprintf("%s (%s)", quote(st.Value), st.Scope)
	}
	var conflicts []string
	dangerous := false
	for _, c := range st.Conflicts {
		conflicts = append(conflicts, c.Detail)
		dangerous = dangerous || c.Kind == hooks.RelativeGlobal
	}
	switch {
	case dangerous:
		return Diagnosis{Standing: Finding, Found: where + "; " + strings.Join(conflicts, "; "), Follows: "a clone brings hooks that run at once", Mend: []string{"git config --global --unset core.hooksPath"}}
	case !st.Installed:
		return Diagnosis{Standing: Noted, Found: where, Follows: "git runs the hooks that lie there, reviewed or not; in a run they are read-only", Mend: []string{"agentguard hooks install"}}
	case len(conflicts) > 0 || !st.Managed:
		return Diagnosis{Standing: Finding, Found: strings.TrimSuffix(where+"; "+strings.Join(conflicts, "; "), "; "), Follows: "the approved hooks are not those that run", Mend: []string{"agentguard hooks status", "agentguard hooks install"}}
	case st.Blocked():
		return Diagnosis{Standing: Finding, Found: fmt.Sprintf("%s; %s not as approved", where, count(len(st.Differs), "file")), Follows: "every hook refuses until that is decided", Mend: []string{"agentguard hooks approve"}}
	}
	return Diagnosis{Standing: Fine, Found: fmt.Sprintf("%s, approved copies of %s", where, count(len(st.Hooks), "hook"))}
}

package guard

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"agentguard/sandbox/probe"
)

// Selftest is a self-test, judged.
type Selftest struct {
	Results []probe.Result
	Took    time.Duration
	As      string // for whom the run was tried
}

// Red says that something must not be relied on.
func (t Selftest) Red() bool { return probe.Red(t.Results) }

// askedFirst are the attempts that everybody asks for; they are shown first.
var askedFirst = []string{
	"file.ssh-key", "file.cloud-credentials", "file.write-outside", "file.home-dotfile", "net.dns", "net.https", "kernel.sudo",
}

func verdictWord(v probe.Verdict) string {
	switch v {
	case probe.Proven:
		return "proven"
	case probe.Failed:
		return "FAILED"
	case probe.NotHere:
		return "not here"
	}
	return "not proven"
}

func wantWord(w probe.Want) string {
	if w == probe.Works {
		return "works"
	}
	return "refused"
}

// group is a part of the table.
type group struct {
	title   string
	results []probe.Result
}

func (t Selftest) groups() []group {
	groups := []group{
		{title: "asked first: refused inside, and possible on this machine without the sandbox"},
		{title: "the others of the kind"},
		{title: "everyday work: must be possible inside"},
	}
	for _, r := range t.Results {
		switch {
		case r.Want == probe.Works:
			groups[2].results = append(groups[2].results, r)
		case slices.Contains(askedFirst, r.ID):
			groups[0].results = append(groups[0].results, r)
		default:
			groups[1].results = append(groups[1].results, r)
		}
	}
	return groups
}

func (t Selftest) counts() map[probe.Verdict]int {
	n := map[probe.Verdict]int{}
	for _, r := range t.Results {
		n[r.Verdict]++
	}
	return n
}

// Text writes the table for a person: a line each, a second one where there is
// something to say, and a summary.
func (t Selftest) Text(w io.Writer) {
	width := 0
	for _, r := range t.Results {
		width = max(width, len(r.Title))
	}
	for _, g := range t.groups() {
		fmt.Fprintln(w, g.title)
		for _, r := range g.results {
			line := fmt.Sprintf("  %-10s  %-*s", verdictWord(r.Verdict), width, r.Title)
			if r.Want == probe.Refused {
				line += "  " + r.Proves
			}
			fmt.Fprintln(w, strings.TrimRight(line, " "))
			if r.Verdict != probe.Proven {
				fmt.Fprintf(w, "  %-10s  %s: %s\n", "", r.ID, quoteLine(r.Why))
			}
		}
	}
	n := t.counts()
	controls := len(t.groups()[2].results)
	fmt.Fprintf(w, "%d attacks and %d controls as %s in %.1f s: %d proven, %d failed, %d not proven, %d not here\n",
		len(t.Results)-controls, controls, t.As, t.Took.Seconds(), n[probe.Proven], n[probe.Failed], n[probe.NotProven], n[probe.NotHere])
	if t.Red() {
		fmt.Fprintln(w, "RED: do not rely on what is not proven")
	}
}

// resultJSON is one attempt as a program reads it.
type resultJSON struct {
	ID      string        `json:"id"`
	Title   string        `json:"title"`
	Proves  string        `json:"proves"`
	Want    string        `json:"want"` // refused or works
	Verdict string        `json:"verdict"`
	Why     string        `json:"why"`
	Outside probe.Outcome `json:"outside"`
	Inside  probe.Outcome `json:"inside"`
}

// JSON writes the same for a program.
func (t Selftest) JSON(w io.Writer) error {
	n := t.counts()
	out := struct {
		Red       bool         `json:"red"`
		As        string       `json:"as"`
		Seconds   float64      `json:"seconds"`
		Proven    int          `json:"proven"`
		Failed    int          `json:"failed"`
		NotProven int          `json:"not_proven"`
		NotHere   int          `json:"not_here"`
		Results   []resultJSON `json:"results"`
	}{t.Red(), t.As, t.Took.Seconds(), n[probe.Proven], n[probe.Failed], n[probe.NotProven], n[probe.NotHere], nil}
	for _, r := range t.Results {
		verdict := strings.ReplaceAll(strings.ToLower(verdictWord(r.Verdict)), " ", "_")
		out.Results = append(out.Results, resultJSON{r.ID, r.Title, r.Proves, wantWord(r.Want), verdict, r.Why, r.Outside, r.Inside})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

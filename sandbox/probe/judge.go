package probe

import "fmt"

// Judge puts the outcomes of both processes together, one result an attempt,
// in the order of [Attempts]. An outcome that is missing or given twice proves
// nothing.
func Judge(outside, inside []Outcome) []Result {
	var results []Result
	out, in := byID(outside), byID(inside)
	for _, a := range Attempts() {
		r := Result{Attempt: a, Outside: out[a.ID], Inside: in[a.ID]}
		r.Verdict, r.Why = judge(a.Want, r.Outside, r.Inside)
		results = append(results, r)
	}
	return results
}

// Red says whether the self-test as a whole failed: one result that failed or
// is not proven, or nothing that is proven.
func Red(results []Result) bool {
	proven := 0
	for _, r := range results {
		switch r.Verdict {
		case Proven:
			proven++
		case NotHere:
		default:
			return true
		}
	}
	return proven == 0
}

func byID(outcomes []Outcome) map[string]Outcome {
	m := map[string]Outcome{}
	for _, o := range outcomes {
		if _, twice := m[o.ID]; twice {
			o.State, o.Detail = Broken, "answered twice"
		}
		m[o.ID] = o
	}
	return m
}

func judge(want Want, outside, inside Outcome) (Verdict, string) {
	switch {
	case want == Works && inside.State == Succeeded:
		return Proven, "works inside"
	case want == Works && inside.State == Absent:
		return NotHere, inside.Detail
	case want == Works:
		return Failed, "does not work inside: " + met(inside)
	case inside.State == Succeeded:
		return Failed, "succeeded inside"
	case outside.State == Absent:
		return NotHere, outside.Detail
	case outside.State != Succeeded:
		return NotProven, "does not succeed outside either: " + met(outside)
	case inside.State != Denied:
		return NotProven, "was not refused inside: " + met(inside)
	}
	return Proven, "succeeds outside, inside: " + met(inside)
}

func met(o Outcome) string {
	switch {
	case o.State == NoAnswer:
		return "no answer"
	case o.Errno != "":
		return o.Errno
	}
	return fmt.Sprintf("%s (%s)", o.State, o.Detail)
}

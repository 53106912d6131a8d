package probe

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
)

func TestJudge(t *testing.T) {
	yes, no := Outcome{State: Succeeded}, Outcome{State: Denied, Errno: "EPERM"}
	broken, none, nothing := Outcome{State: Broken, Detail: "bug"}, Outcome{State: Absent, Detail: "none"}, Outcome{}
	tests := []struct {
		name            string
		want            Want
		outside, inside Outcome
		verdict         Verdict
	}{
		{"attack refused", Refused, yes, no, Proven},
		{"attack succeeds inside", Refused, yes, yes, Failed},
		{"attack succeeds only inside", Refused, no, yes, Failed},
		{"attack refused everywhere", Refused, no, no, NotProven},
		{"attack breaks outside", Refused, broken, no, NotProven},
		{"attack breaks inside", Refused, yes, broken, NotProven},
		{"attack without an answer inside", Refused, yes, nothing, NotProven},
		{"attack without an answer outside", Refused, nothing, no, NotProven},
		{"attack without any answer", Refused, nothing, nothing, NotProven},
		{"attack on what is not here", Refused, none, no, NotHere},
		{"attack on what is here only outside", Refused, yes, none, NotProven},
		{"attack succeeds on what outside has not", Refused, none, yes, Failed},
		{"control works", Works, yes, yes, Proven},
		{"control works only inside", Works, no, yes, Proven},
		{"control refused", Works, yes, no, Failed},
		{"control breaks", Works, yes, broken, Failed},
		{"control without an answer", Works, yes, nothing, Failed},
		{"control of what is not here", Works, none, none, NotHere},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, why := judge(tt.want, tt.outside, tt.inside)
			if got != tt.verdict || why == "" {
				t.Errorf("judge = %d (%s), want %d", got, why, tt.verdict)
			}
		})
	}
}

func TestJudgeEveryAttempt(t *testing.T) {
	results := Judge(nil, nil)
	if len(results) != len(Attempts()) {
		t.Errorf("%d results for %d attempts", len(results), len(Attempts()))
	}
	for _, r := range results {
		if r.Verdict == Proven || r.Verdict == NotHere {
			t.Errorf("%s is %d without an outcome", r.ID, r.Verdict)
		}
	}
	if !Red(results) || !Red(nil) {
		t.Error("a self-test without outcomes is not red")
	}
}

func TestRed(t *testing.T) {
	tests := []struct {
		name     string
		verdicts []Verdict
		red      bool
	}{
		{"all proven", []Verdict{Proven, Proven}, false},
		{"one not here", []Verdict{Proven, NotHere}, false},
		{"none here", []Verdict{NotHere}, true},
		{"one failed", []Verdict{Proven, Failed}, true},
		{"one not proven", []Verdict{Proven, NotProven}, true},
		{"the zero result", []Verdict{Proven, Result{}.Verdict}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var results []Result
			for _, v := range tt.verdicts {
				results = append(results, Result{Verdict: v})
			}
			if got := Red(results); got != tt.red {
				t.Errorf("Red = %v, want %v", got, tt.red)
			}
		})
	}
}

// TestJudgeTwice holds that a process inside cannot answer for an attempt a
// second time.
func TestJudgeTwice(t *testing.T) {
	outside := []Outcome{{ID: "file.ssh-key", State: Succeeded}}
	inside := []Outcome{{ID: "file.ssh-key", State: Succeeded}, {ID: "file.ssh-key", State: Denied}}
	for _, r := range Judge(outside, inside) {
		if r.ID == "file.ssh-key" && r.Verdict == Proven {
			t.Error("two answers prove a refusal")
		}
	}
}

func TestReadCutOff(t *testing.T) {
	outcomes, err := Read(strings.NewReader(`{"id":"a","state":"denied"}` + "\n" + `{"id":"b","sta`))
	if err == nil || len(outcomes) != 1 || outcomes[0].ID != "a" {
		t.Errorf("Read = %v, %v; want the first outcome and an error", outcomes, err)
	}
}

func TestOutcome(t *testing.T) {
	tests := []struct {
		name  string
		err   error
		state State
	}{
		{"success", nil, Succeeded},
		{"errno", syscall.EROFS, Denied},
		{"short of memory", syscall.ENOMEM, Broken},
		{"refusal", refused("status 403"), Denied},
		{"absence", absent("none"), Absent},
		{"plant broken", &brokenPlant{"x", syscall.ENOENT}, Broken},
		{"anything else", bytes.ErrTooLarge, Broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := outcome(attempt{Attempt{ID: "x"}, func(Env) error { return tt.err }}, Env{})
			if o.State != tt.state {
				t.Errorf("state %q, want %q", o.State, tt.state)
			}
		})
	}
}

func TestOutcomeHidesCanary(t *testing.T) {
	env := Env{Canary: "canary-1"}
	o := outcome(attempt{Attempt{ID: "x"}, func(Env) error { return refused("read canary-1") }}, env)
	if strings.Contains(o.Detail, env.Canary) {
		t.Errorf("detail %q tells the canary", o.Detail)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"id":"a","state":"denied"}`))
	f.Add([]byte(`{"id":"file.ssh-key","state":"succeeded"}{"id":"file.ssh-key","state":"denied"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		outcomes, _ := Read(bytes.NewReader(data)) // what came before the error counts
		for _, r := range Judge(nil, outcomes) {
			if r.Want == Refused && r.Verdict == Proven {
				t.Errorf("%s is proven without an outside", r.ID)
			}
		}
	})
}

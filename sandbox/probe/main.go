package probe

import (
	"encoding/json"
	"fmt"
	"io"
)

// Main reads an [Env], tries every attempt in this process and writes the
// outcomes, both as JSON. It is the body of the hidden command that runs once
// outside and once inside.
func Main(in io.Reader, out io.Writer) error {
	var env Env
	if err := json.NewDecoder(in).Decode(&env); err != nil {
		return fmt.Errorf("reading the environment of the probe: %w", err)
	}
	encoder := json.NewEncoder(out)
	// One line each, at once: what an attempt that kills this process leaves
	// out is missed by name.
	for _, a := range attempts() {
		if err := encoder.Encode(outcome(a, env)); err != nil {
			return fmt.Errorf("writing the outcomes of the probe: %w", err)
		}
	}
	return nil
}

// Read reads what [Main] wrote, also when it was cut off: then it gives what
// there is beside the error.
func Read(in io.Reader) ([]Outcome, error) {
	var outcomes []Outcome
	for decoder := json.NewDecoder(in); ; {
		var o Outcome
		switch err := decoder.Decode(&o); err {
		case nil:
			outcomes = append(outcomes, o)
		case io.EOF:
			return outcomes, nil
		default:
			return outcomes, fmt.Errorf("reading the outcomes of the probe: %w", err)
		}
	}
}

// attempt is an attempt with what it does: nil is success, any other error is
// sorted by [outcome].
type attempt struct {
	Attempt
	try func(Env) error
}

// Attempts gives every attempt in the order it is tried.
func Attempts() []Attempt {
	var all []Attempt
	for _, a := range attempts() {
		all = append(all, a.Attempt)
	}
	return all
}

// attempts puts the one that may end everything last.
func attempts() []attempt {
	var all []attempt
	for _, part := range [][]attempt{
		articleAttempts(), frozenAttempts(), absentAttempts(), leakAttempts(), processAttempts(), networkAttempts(),
		socketAttempts(), kernelAttempts(), workspaceControls(), systemControls(), processControls(), lastAttempts(),
	} {
		all = append(all, part...)
	}
	return all
}

// Try makes one attempt in this process.
func Try(env Env, id string) Outcome {
	for _, a := range attempts() {
		if a.ID == id {
			return outcome(a, env)
		}
	}
	return Outcome{ID: id, State: Broken, Detail: "no such attempt"}
}

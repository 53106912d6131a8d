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
	var outcomes []Outcome
	for _, a := range Attempts() {
		outcomes = append(outcomes, Try(env, a.ID))
	}
	if err := json.NewEncoder(out).Encode(outcomes); err != nil {
		return fmt.Errorf("writing the outcomes of the probe: %w", err)
	}
	return nil
}

// Read reads what [Main] wrote.
func Read(in io.Reader) ([]Outcome, error) {
	var outcomes []Outcome
	if err := json.NewDecoder(in).Decode(&outcomes); err != nil {
		return nil, fmt.Errorf("reading the outcomes of the probe: %w", err)
	}
	return outcomes, nil
}

// Attempts gives every attempt in the order it is tried.
func Attempts() []Attempt { return nil }

// Try makes one attempt in this process.
func Try(env Env, id string) Outcome {
	return Outcome{ID: id, State: Broken, Detail: "no such attempt"}
}

// Step runs the part of an attempt that needs a process of its own, named by
// args, and gives the exit status. It is the body of the command in Env.Self.
func Step(args []string, stdin io.Reader, stdout io.Writer) int { return 125 }

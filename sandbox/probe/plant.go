package probe

import "errors"

// Planted is what [Plant] laid out: two identical trees, one to be attacked
// without a sandbox and one with it, and the servers that both reach for.
type Planted struct {
	Outside, Inside Env

	// Environ is to be added to the environment of whoever starts the outside
	// process and the sandbox; it holds canaries that must not get in.
	Environ []string
}

// Plant lays out both trees below dir, which must be empty and not in another
// repository, and starts the servers and one process. self is Env.Self. The
// caller closes what it gets.
func Plant(dir string, self []string) (*Planted, error) {
	return nil, errors.New("planting: only on Linux")
}

// Close stops what Plant started. The trees are the caller's to remove.
func (p *Planted) Close() error { return nil }

//go:build !linux

package seccomp

import "errors"

// load fails: only Linux has seccomp.
func load([]Instruction) error {
	return errors.New("loading seccomp filter: only Linux has seccomp")
}

//go:build !linux

package probe

import (
	"errors"
	"io"
)

var errLinux = errors.New("only on Linux")

func socketAttempts() []attempt { return nil }

func kernelAttempts() []attempt { return nil }

func lastAttempts() []attempt { return nil }

func processControls() []attempt { return nil }

func runSetuid(Env) error { return errLinux }

func exchange(string) error { return errLinux }

func openAgain(string) error { return errLinux }

func seize(int) error { return errLinux }

func signalTarget(int) error { return errLinux }

func limitTarget(int) error { return errLinux }

func step(string, []string, io.Reader, io.Writer) error { return errLinux }

func duplicate(int) (int, error) { return 0, errLinux }

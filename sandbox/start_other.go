//go:build !linux

package sandbox

import (
	"context"
	"runtime"
)

func start(context.Context, *Spec) (*Process, error) { return nil, notHere() }

func detect(context.Context) Support { return Support{Err: notHere()} }

func notHere() error {
	return &UnavailableError{Need: "there is no sandbox for " + runtime.GOOS + " in this version", Why: "Linux, or a Linux virtual machine, has one"}
}

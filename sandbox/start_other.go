//go:build !linux

package sandbox

import (
	"context"
	"runtime"
)

// run is never made here.
type run struct{}

func prepare(context.Context, *Spec) (*run, error) { return nil, notHere() }

func (*run) start(Spec) (*Process, error) { return nil, notHere() }

func (*run) cancel() {}

func detect(context.Context) Support { return Support{Err: notHere()} }

func notHere() error {
	return &UnavailableError{Need: "there is no sandbox for " + runtime.GOOS + " in this version", Why: "Linux, or a Linux virtual machine, has one"}
}

//go:build !linux || (!amd64 && !arm64)

package broker

import (
	"context"
	"errors"
)

var errOther = errors.New("not this operating system")

func available() error { return &UnavailableError{Need: "Linux", Err: errOther} }

func install() (int, error) { return -1, available() }

func serve(context.Context, Config, chan<- struct{}) error { return available() }

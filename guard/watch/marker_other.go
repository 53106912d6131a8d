//go:build !linux

package watch

import "errors"

// openMarker has nothing to offer: the tree is walked at the end.
func openMarker() (fd int, err error) { return -1, errors.ErrUnsupported }

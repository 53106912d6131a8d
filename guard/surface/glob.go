package surface

import "strconv"

func quote(s string) string { return strconv.Quote(s) }

// ParseGlob checks a glob of a policy.
func ParseGlob(glob string) error { return nil }

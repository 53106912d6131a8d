package hooks

import (
	_ "embed" // the shim is a shell script that reads as one
	"strings"
)

//go:embed shim.sh
var shimText string

// shim returns the script that git runs as the hook name. approved is the
// absolute directory of the copy, tracked the source relative to the work
// tree's top. name must satisfy shimName.
func shim(name, approved, tracked string) []byte {
	return []byte(strings.NewReplacer(
		"@NAME@", name,
		"@APPROVED@", quote(approved),
		"@TRACKED@", quote(tracked),
	).Replace(shimText))
}

// quote makes one word of s for a POSIX shell.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

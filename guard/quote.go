package guard

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quote returns a path as it is when a terminal shows it as it is, else in
// Go's quotes: a name from a run must not move the cursor or look like another.
func quote(s string) string {
	if s != "" && plain(s) && !strings.ContainsAny(s, " \"'\\") {
		return s
	}
	return strconv.Quote(s)
}

// quoteLine is the same for a sentence: what could act on a terminal is
// escaped, the rest stays readable.
func quoteLine(s string) string {
	if plain(s) {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

func plain(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

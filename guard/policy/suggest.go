package policy

import (
	"maps"
	"slices"
	"strings"
)

func keysOf[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// nearest says which of the sorted words was probably meant, or lists them.
func nearest(got string, words []string) string {
	best, bestAt := "", 3
	if got = strings.ToLower(clip(got)); len(got) <= 4 {
		bestAt = 2
	}
	for _, word := range words {
		if d := distance(got, strings.ToLower(word)); d < bestAt || d == bestAt && best == "" {
			best, bestAt = word, d
		}
	}
	if best != "" {
		return `did you mean "` + best + `"?`
	}
	return "known are " + strings.Join(words, ", ")
}

// clip bounds a word that is repeated in a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return s
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	prev2, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur := make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev = prev, cur
	}
	return prev[len(b)]
}

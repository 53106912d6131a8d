package hooks

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// around is how many unchanged lines are shown around a change.
const around = 3

// maxEdits bounds the search for a smallest difference, which takes time and
// memory of its square. Beyond it a file is shown as replaced.
const maxEdits = 1000

// unified returns what changes from old to now as a unified difference that is
// safe to print: nothing in it is obeyed by a terminal.
func unified(old, now tree, dir string) string {
	var b strings.Builder
	for _, d := range compare(old, now) {
		was, had := old.find(d.Path)
		is, has := now.find(d.Path)
		name := visible(dir + "/" + d.Path)
		fmt.Fprintf(&b, "diff %s\n", name)
		switch {
		case !had:
			fmt.Fprintf(&b, "new %s\n", describe(is))
		case !has:
			fmt.Fprintf(&b, "gone %s\n", describe(was))
		case was.mode() != is.mode():
			fmt.Fprintf(&b, "old %s\nnew %s\n", describe(was), describe(is))
		}
		fileDiff(&b, name, was.data, is.data, had, has)
	}
	return b.String()
}

func describe(f file) string {
	switch {
	case f.dir:
		return "directory"
	case f.exec:
		return "mode 100755"
	}
	return "mode 100644"
}

func fileDiff(b *strings.Builder, name string, old, now []byte, had, has bool) {
	if bytes.Equal(old, now) {
		return
	}
	if bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(now, 0) >= 0 {
		fmt.Fprintf(b, "binary, %d bytes, were %d\n", len(now), len(old))
		return
	}
	from, to := "approved/"+name, name
	if !had {
		from = "/dev/null"
	}
	if !has {
		to = "/dev/null"
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n", from, to)
	hunks(b, edits(lines(old), lines(now)))
}

// lines splits text after each newline; a last line without one stays so.
func lines(data []byte) []string {
	all := strings.SplitAfter(string(data), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// edit is one line of a difference: ' ' both, '-' old, '+' new.
type edit struct {
	op   byte
	line string
}

// edits returns the lines of old and now in one list.
func edits(old, now []string) []edit {
	var head, tail []edit
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		head = append(head, edit{' ', old[0]})
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		tail = append(tail, edit{' ', old[len(old)-1]})
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	all := append(head, myers(old, now)...)
	for i := len(tail) - 1; i >= 0; i-- {
		all = append(all, tail[i])
	}
	return all
}

// myers finds a smallest list of edits (Myers, "An O(ND) Difference Algorithm
// and Its Variations", 1986). Each round keeps, per diagonal, how far d edits
// reach; walking the rounds backwards gives the edits.
func myers(a, b []string) []edit {
	limit := min(len(a)+len(b), maxEdits)
	reach := make([]int, 2*limit+3)
	var rounds [][]int
	for d := 0; d <= limit; d++ {
		rounds = append(rounds, append([]int(nil), reach[limit+1-d:limit+2+d]...))
		for k := -d; k <= d; k += 2 {
			at := limit + 1 + k
			x := reach[at-1] + 1
			if k == -d || (k != d && reach[at-1] < reach[at+1]) {
				x = reach[at+1]
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			reach[at] = x
			if x >= len(a) && x-k >= len(b) {
				return trace(a, b, rounds)
			}
		}
	}
	var all []edit
	for _, l := range a {
		all = append(all, edit{'-', l})
	}
	for _, l := range b {
		all = append(all, edit{'+', l})
	}
	return all
}

// trace walks back from the end of a and b. rounds[d] holds the reach before
// round d for the diagonals -d to d.
func trace(a, b []string, rounds [][]int) []edit {
	var back []edit
	x, y := len(a), len(b)
	for d := len(rounds) - 1; d > 0; d-- {
		k := x - y
		before := func(k int) int { return rounds[d][k+d] }
		from := k - 1
		if k == -d || (k != d && before(k-1) < before(k+1)) {
			from = k + 1
		}
		px := before(from)
		py := px - from
		for x > px && y > py {
			x, y = x-1, y-1
			back = append(back, edit{' ', a[x]})
		}
		if x > px {
			x--
			back = append(back, edit{'-', a[x]})
		} else {
			y--
			back = append(back, edit{'+', b[y]})
		}
	}
	for x > 0 {
		x--
		back = append(back, edit{' ', a[x]})
	}
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return back
}

// hunks writes the changed places of list with their surroundings.
func hunks(b *strings.Builder, list []edit) {
	oldLine, newLine := 1, 1
	for i := 0; i < len(list); {
		if list[i].op == ' ' && !changeWithin(list[i:], around) {
			i, oldLine, newLine = i+1, oldLine+1, newLine+1
			continue
		}
		end := hunkEnd(list, i)
		oldCount, newCount := count(list[i:end])
		fmt.Fprintf(b, "@@ -%s +%s @@\n", span(oldLine, oldCount), span(newLine, newCount))
		for _, e := range list[i:end] {
			text, whole := strings.CutSuffix(e.line, "\n")
			fmt.Fprintf(b, "%c%s\n", e.op, visible(text))
			if !whole {
				b.WriteString("\\ No newline at end of file\n")
			}
		}
		i, oldLine, newLine = end, oldLine+oldCount, newLine+newCount
	}
}

// changeWithin tells whether one of the n entries after the first is a change.
func changeWithin(list []edit, n int) bool {
	for i := 1; i <= n && i < len(list); i++ {
		if list[i].op != ' ' {
			return true
		}
	}
	return false
}

// hunkEnd returns where the hunk that begins at i ends: after the surroundings
// of the last change that has another within reach.
func hunkEnd(list []edit, i int) int {
	last := i
	for j := i; j < len(list) && j-last <= 2*around; j++ {
		if list[j].op != ' ' {
			last = j
		}
	}
	return min(last+around+1, len(list))
}

func count(list []edit) (old, now int) {
	for _, e := range list {
		if e.op != '+' {
			old++
		}
		if e.op != '-' {
			now++
		}
	}
	return old, now
}

func span(line, n int) string {
	if n == 0 {
		line--
	}
	if n == 1 {
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, n)
}

// visible replaces what a terminal would obey or hide (escape sequences,
// carriage returns, characters that change the direction of text) by its code.
func visible(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case c == '\t' || unicode.IsPrint(c):
			b.WriteRune(c)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
		i += n
	}
	return b.String()
}

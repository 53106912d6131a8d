package git

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"slices"
)

// maxHistory bounds how many commits one question looks at.
const maxHistory = 1_000_000

// The marks of a walk from two sides.
const (
	fromA = 1 << iota
	fromB
	stale // an ancestor of a common ancestor, or of what is left out
)

// MergeBase returns a best common ancestor of two commits or tags of them, the
// zero Hash when they have none. Of several the newest by date is taken.
func (r *Repo) MergeBase(a, b Hash) (Hash, error) {
	a, errA := r.peel(a, Commit)
	b, errB := r.peel(b, Commit)
	if err := errors.Join(errA, errB); err != nil {
		return Hash{}, err
	}
	w, err := r.newHistory()
	if err != nil {
		return Hash{}, err
	}
	if err := errors.Join(w.push(a, fromA), w.push(b, fromB)); err != nil {
		return Hash{}, err
	}
	var found []commit
	visit := func(c commit, marks int) int {
		if marks == fromA|fromB {
			found = append(found, c)
			marks |= stale
		}
		return marks
	}
	isStale := func(c commit) bool { return w.marks[c.hash]&stale != 0 }
	if err := w.walk(visit, func() bool { return w.fresh > 0 }); err != nil {
		return Hash{}, err
	}
	if found = slices.DeleteFunc(found, isStale); len(found) > 1 {
		// One may be an ancestor of another where dates lie: carry all marks to the end.
		if err := w.walk(visit, func() bool { return true }); err != nil {
			return Hash{}, err
		}
		found = slices.DeleteFunc(found, isStale)
	}
	if len(found) == 0 {
		return Hash{}, nil
	}
	return slices.MaxFunc(found, func(a, b commit) int { return cmp.Compare(a.time, b.time) }).hash, nil
}

// Commits returns the commits reachable from head and not from base (zero:
// nothing is left out), newest first, and fails when there are more than
// limit. Where dates lie a commit too many may be among them, never one too
// few.
func (r *Repo) Commits(base, head Hash, limit int) ([]Hash, error) {
	w, err := r.newHistory()
	if err != nil {
		return nil, err
	}
	if !base.IsZero() {
		if base, err = r.peel(base, Commit); err == nil {
			err = w.push(base, stale)
		}
		if err != nil {
			return nil, err
		}
	}
	if head, err = r.peel(head, Commit); err == nil {
		err = w.push(head, fromA)
	}
	if err != nil {
		return nil, err
	}
	var out []Hash
	visit := func(c commit, marks int) int {
		if marks&stale == 0 {
			out = append(out, c.hash)
		}
		return marks
	}
	if err := w.walk(visit, func() bool { return w.fresh > 0 }); err != nil {
		return nil, err
	}
	out = slices.DeleteFunc(out, func(h Hash) bool { return w.marks[h]&stale != 0 })
	if len(out) > limit {
		return nil, &UnsupportedError{What: fmt.Sprintf("%d commits between two revisions, more than %d", len(out), limit)}
	}
	return out, nil
}

// history is a walk over commits, newest date first. Dates may lie, so marks
// that come late are carried on to what was visited before.
type history struct {
	repo    *Repo
	shallow map[Hash]bool
	marks   map[Hash]int
	queued  map[Hash]bool
	queue   commitHeap
	fresh   int // commits in queue without the stale mark
}

func (r *Repo) newHistory() (*history, error) {
	shallow, err := r.shallow()
	return &history{repo: r, shallow: shallow, marks: map[Hash]int{}, queued: map[Hash]bool{}}, err
}

// push gives h more marks, and queues it when it did not have them all.
func (w *history) push(h Hash, marks int) error {
	old, seen := w.marks[h]
	if seen && old|marks == old {
		return nil
	}
	w.marks[h] = old | marks
	if w.queued[h] {
		if old&stale == 0 && marks&stale != 0 {
			w.fresh--
		}
		return nil
	}
	if len(w.marks) > maxHistory {
		return &UnsupportedError{What: fmt.Sprintf("a history of more than %d commits between two revisions", maxHistory)}
	}
	c, err := w.repo.readCommit(h, w.shallow)
	if err != nil {
		return err
	}
	w.queued[h] = true
	heap.Push(&w.queue, c)
	if w.marks[h]&stale == 0 {
		w.fresh++
	}
	return nil
}

// walk takes commits while on says so and hands their parents the marks that
// visit returns.
func (w *history) walk(visit func(commit, int) int, on func() bool) error {
	for len(w.queue) > 0 && on() {
		c := heap.Pop(&w.queue).(commit)
		delete(w.queued, c.hash)
		marks := w.marks[c.hash]
		if marks&stale == 0 {
			w.fresh--
		}
		marks = visit(c, marks)
		for _, p := range c.parents {
			if err := w.push(p, marks); err != nil {
				return err
			}
		}
	}
	return nil
}

// commitHeap has the newest commit on top.
type commitHeap []commit

func (q commitHeap) Len() int           { return len(q) }
func (q commitHeap) Less(i, j int) bool { return q[i].time > q[j].time }
func (q commitHeap) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *commitHeap) Push(x any)        { *q = append(*q, x.(commit)) }

func (q *commitHeap) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}

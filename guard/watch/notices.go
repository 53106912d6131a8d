package watch

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// maxQueue bounds the notices that wait for the goroutine of Run. One costs
// about a hundred bytes. What comes when it is full is dropped and the tree is
// walked instead, as when the kernel's own queue (16,384 by default) overflows.
const maxQueue = 1 << 17

// notices copies what the kernel tells into memory as fast as it can: the
// kernel's queue is small and what does not fit there is lost.
type notices struct {
	fs     *fsnotify.Watcher
	marker *marker
	ready  chan struct{} // holds one when something waits
	done   chan struct{} // closed when the copying goroutine has ended

	mu    sync.Mutex // guards everything below
	queue []fsnotify.Event
	lost  string // why some are missing; "" when none are
}

// supported reports whether a watch on a directory costs no open file for each
// name in it. kqueue opens every one.
func supported() bool { return runtime.GOOS == "linux" }

// listen starts the copying goroutine; close ends and awaits it.
func listen() (*notices, error) {
	if !supported() {
		return nil, errors.New("no cheap notices on this system")
	}
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	n := &notices{fs: fs, ready: make(chan struct{}, 1), done: make(chan struct{})}
	n.marker = newMarker(fs)
	go n.copy()
	return n, nil
}

func (n *notices) copy() {
	defer close(n.done)
	events, errs := n.fs.Events, n.fs.Errors
	for events != nil || errs != nil {
		select {
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			n.put(e, "")
		case err, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			n.put(fsnotify.Event{}, fmt.Sprintf("the system lost notices: %v", err))
		}
	}
}

func (n *notices) put(e fsnotify.Event, lost string) {
	if e.Name == "" && lost == "" {
		return // fsnotify sends an empty one for a watch that ended
	}
	n.mu.Lock()
	switch last := len(n.queue) - 1; {
	case lost != "":
		n.lost = lost
	case last >= 0 && n.queue[last] == e:
		// The same again before anybody looked: one look answers both.
	case len(n.queue) >= maxQueue:
		n.lost = fmt.Sprintf("more than %d notices were waiting", maxQueue)
	default:
		n.queue = append(n.queue, e)
	}
	n.mu.Unlock()
	select {
	case n.ready <- struct{}{}:
	default:
	}
}

// take empties the queue.
func (n *notices) take() (queue []fsnotify.Event, lost string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	queue, lost = n.queue, n.lost
	n.queue, n.lost = nil, ""
	return queue, lost
}

func (n *notices) close() error {
	err := n.fs.Close()
	<-n.done
	n.marker.close()
	return err
}

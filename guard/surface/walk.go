package surface

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	walkers   = 2  // more do not help: the kernel's directory locks are the limit
	readAhead = 64 // directories read before fn has seen them
)

// listing is one directory as a walker read it. The paths lie side by side
// in one string, because a string for each name costs more than the call that
// reads them all.
type listing struct {
	dir   string
	text  string
	ends  []uint32
	types []Type
	err   error
}

// Walk implements [Tree]. Two goroutines read directories ahead; fn is called
// by the caller's own. Siblings and directories come in no particular order.
func (t *workTree) Walk(fn func(WalkEntry) error) error {
	defer runtime.KeepAlive(t.root)
	root := int(t.root.Fd())
	work := make(chan string, readAhead)
	done := make(chan *listing, readAhead)
	var running sync.WaitGroup
	for range walkers {
		running.Go(func() {
			r := dirReader{root: root}
			for dir := range work {
				done <- r.read(dir)
			}
		})
	}
	defer running.Wait()
	defer close(work)
	queue, reading := []string{""}, 0
	for len(queue) > 0 || reading > 0 {
		for len(queue) > 0 && reading < readAhead {
			last := len(queue) - 1
			work <- queue[last]
			queue, reading = queue[:last], reading+1
		}
		l := <-done
		reading--
		var err error
		if queue, err = l.tell(fn, queue); err != nil {
			return err
		}
	}
	return nil
}

// tell calls fn for each entry and returns queue with the directories to
// read.
func (l *listing) tell(fn func(WalkEntry) error, queue []string) ([]string, error) {
	switch {
	case l.err == unix.ENOENT && l.dir != "":
		return queue, nil
	case l.err != nil:
		return nil, fmt.Errorf("reading directory %q: %w", l.dir, l.err)
	}
	start := uint32(0)
	for i, end := range l.ends {
		e := WalkEntry{Path: l.text[start:end], Type: l.types[i], Size: -1}
		start = end
		switch err := fn(e); {
		case err == SkipDir:
		case err != nil:
			return nil, err
		case e.Type == Dir:
			queue = append(queue, e.Path)
		}
	}
	return queue, nil
}

// dirReader reads directories; its buffers are used again.
type dirReader struct {
	root  int
	buf   []byte
	paths []byte
}

// read lists one directory. A failure is in the listing.
func (r *dirReader) read(dir string) *listing {
	l := &listing{dir: dir}
	path := dir
	if path == "" {
		path = "."
	}
	fd, err := openBeneath(r.root, path, dirFlags)
	if err != nil {
		l.err = err
		return l
	}
	defer unix.Close(fd)
	r.paths = r.paths[:0]
	l.err = r.list(fd, l)
	l.text = string(r.paths)
	return l
}

// add appends one name. Where the file system does not tell the type, the
// name is asked for it.
func (r *dirReader) add(fd int, l *listing, name []byte, typ Type, known bool) error {
	if !known {
		var st unix.Stat_t
		switch err := fstatat(fd, string(name), &st); {
		case err == unix.ENOENT:
			return nil
		case err != nil:
			return err
		}
		typ = entryOf(&st).Type
	}
	if l.dir != "" {
		r.paths = append(append(r.paths, l.dir...), '/')
	}
	r.paths = append(r.paths, name...)
	l.ends = append(l.ends, uint32(len(r.paths)))
	l.types = append(l.types, typ)
	return nil
}

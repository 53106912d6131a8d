package guard

import (
	"bytes"
	"errors"
	"io"
	"os"

	"agentguard/sandbox/probe"
)

// streams are the inside process's input and output.
type streams struct {
	in, out *os.File // the process's ends
	read    *os.File
	said    bytes.Buffer
	done    chan error
}

// openStreams makes the input, which holds text and then ends, and follows the
// output.
func openStreams(text []byte, follow io.Writer) (*streams, error) {
	s := &streams{done: make(chan error, 1)}
	in, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if s.read, s.out, err = os.Pipe(); err != nil {
		return nil, errors.Join(err, in.Close(), feed.Close())
	}
	s.in = in
	go func() {
		_, _ = feed.Write(text) // a process that did not read it all has said so
		_ = feed.Close()        // the same
	}()
	go func() {
		_, err := io.Copy(io.MultiWriter(&s.said, follow), s.read)
		s.done <- err
	}()
	return s, nil
}

// outcomes waits for the end of the output and reads it. The process has ended
// by now, and everything that it started.
func (s *streams) outcomes() ([]probe.Outcome, error) {
	err := errors.Join(s.out.Close(), s.in.Close(), <-s.done, s.read.Close())
	outcomes, readErr := probe.Read(&s.said)
	return outcomes, errors.Join(err, readErr)
}

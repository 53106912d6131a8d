package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
)

// maxHeader bounds "TYPE SIZE" in front of a loose object.
const maxHeader = 32

// inflater holds what is costly to make for each object.
type inflater struct {
	buf  *bufio.Reader
	zlib io.ReadCloser // also a zlib.Resetter; nil before the first use
}

// inflater takes one that is not in use; the caller gives it back.
func (s *store) inflater() *inflater {
	if i, ok := s.inflaters.Get().(*inflater); ok {
		return i
	}
	return newInflater()
}

func newInflater() *inflater { return &inflater{buf: bufio.NewReaderSize(nil, 4096)} }

// start returns a reader of the content that src compresses.
func (i *inflater) start(src io.Reader) (io.Reader, error) {
	i.buf.Reset(src)
	if i.zlib == nil {
		z, err := zlib.NewReader(i.buf)
		i.zlib = z
		return z, err
	}
	return i.zlib, i.zlib.(zlib.Resetter).Reset(i.buf, nil)
}

// inflate returns exactly size bytes of content; less or more is an error.
func (i *inflater) inflate(z io.Reader, size int64) ([]byte, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(z, data); err != nil {
		return nil, fmt.Errorf("it ends early: %w", err)
	}
	var one [1]byte
	if n, err := z.Read(one[:]); n != 0 || err != io.EOF {
		return nil, fmt.Errorf("it goes on after its %d bytes", size)
	}
	return data, nil
}

// readLoose reads the loose object h of d; fs.ErrNotExist when there is none.
func (s *store) readLoose(d *objectDir, h Hash) (ObjectType, []byte, error) {
	name := h.String()
	f, _, err := openIn(d.root, name[:2]+"/"+name[2:])
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	i := s.inflater()
	defer s.inflaters.Put(i)
	t, data, err := i.readLoose(f, name)
	if _, large := errors.AsType[*TooLargeError](err); err != nil && !large {
		err = &CorruptError{What: "object " + name, Why: err.Error()}
	}
	return t, data, err
}

func (i *inflater) readLoose(src io.Reader, name string) (ObjectType, []byte, error) {
	z, err := i.start(src)
	if err != nil {
		return 0, nil, err
	}
	var head [maxHeader]byte
	n, err := io.ReadFull(z, head[:])
	if err != nil && err != io.ErrUnexpectedEOF {
		return 0, nil, err
	}
	end := bytes.IndexByte(head[:n], 0)
	if end < 0 {
		return 0, nil, fmt.Errorf("it has no header")
	}
	t, size, err := parseHeader(string(head[:end]))
	if err != nil {
		return 0, nil, err
	}
	if size > MaxObject {
		return 0, nil, &TooLargeError{Name: name, Size: size}
	}
	data, err := i.inflate(io.MultiReader(bytes.NewReader(head[end+1:n]), z), size)
	if err != nil {
		return 0, nil, err
	}
	return t, data, nil
}

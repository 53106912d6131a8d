package egress

import (
	"bufio"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// buffers are for bodies in flight.
var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

func takeBuffer() *[]byte { return buffers.Get().(*[]byte) }

// writePart writes a part of a body, as one chunk when the body is chunked.
func writePart(w *bufio.Writer, b []byte, chunked bool) error {
	if len(b) == 0 {
		return nil
	}
	if !chunked {
		_, err := w.Write(b)
		return err
	}
	_, _ = w.WriteString(strconv.FormatInt(int64(len(b)), 16) + "\r\n") // an error shows at the last write
	_, _ = w.Write(b)
	_, err := w.WriteString("\r\n")
	return err
}

// writeEnd writes the end of a chunked body; an error shows at the flush.
func writeEnd(w *bufio.Writer, trailer http.Header) {
	_, _ = w.WriteString("0\r\n")
	_ = forwarded(trailer).Write(w)
	_, _ = w.WriteString("\r\n")
}

// trailerLine announces trailers.
func trailerLine(trailer http.Header) string {
	var names []string
	for n := range forwarded(trailer) {
		names = append(names, n)
	}
	if len(names) == 0 {
		return ""
	}
	sort.Strings(names)
	return "Trailer: " + strings.Join(names, ", ") + "\r\n"
}

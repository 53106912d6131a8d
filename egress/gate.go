package egress

import (
	"bytes"
	"net/http"
	"strings"
)

// gate makes the canonical request of one request that net/http has parsed and
// refuses what net/http lets pass although two servers may read it in two ways.
// head is the header block as it stood on the wire: net/http drops the Host
// header of an absolute URL, and Content-Length beside Transfer-Encoding.
func gate(req *http.Request, head []byte) (Request, error) {
	f, err := scanHead(head)
	if err != nil {
		return Request{}, err
	}
	r, err := ParseRequest(req.Method, req.RequestURI)
	if err != nil {
		return Request{}, err
	}
	old := !req.ProtoAtLeast(1, 1)
	switch {
	case req.ProtoMajor != 1 || req.ProtoMinor > 1:
		return r, bad(CodeBadRequest, "the version is not HTTP/1.0 or HTTP/1.1")
	case len(f.hosts) > 1:
		return r, bad(CodeHostMismatch, "there is more than one Host header")
	case len(f.hosts) == 0 && !old && !r.Tunnel:
		return r, bad(CodeHostMismatch, "there is no Host header")
	case f.lengths > 1 || f.encodings > 1 || f.lengths+f.encodings > 1:
		return r, bad(CodeBadRequest, "the length of the body is given more than once")
	case f.encodings > 0 && old:
		return r, bad(CodeBadRequest, "HTTP/1.0 has no Transfer-Encoding")
	case r.Tunnel && f.lengths+f.encodings > 0:
		return r, bad(CodeBadRequest, "CONNECT has no body")
	}
	if len(f.hosts) == 1 {
		if err := r.checkHost(f.hosts[0]); err != nil {
			return r, err
		}
	}
	for _, name := range connectionNames(req.Header) {
		if name == "Host" || name == "Content-Length" {
			return r, bad(CodeBadRequest, "the Connection header names Host or Content-Length")
		}
	}
	r.WebSocket = wantsWebSocket(req)
	return r, nil
}

// fields are the facts of a header block that net/http does not keep.
type fields struct {
	hosts     []string
	lengths   int // Content-Length
	encodings int // Transfer-Encoding
}

// scanHead goes over a whole header block line by line.
func scanHead(head []byte) (fields, error) {
	var f fields
	body, ok := bytes.CutSuffix(head, []byte("\r\n\r\n"))
	if !ok {
		return f, bad(CodeBadRequest, "the headers do not end with an empty line")
	}
	for i := 0; ; i++ {
		line, rest, more := bytes.Cut(body, []byte("\r\n"))
		if err := checkLine(line); err != nil {
			return f, err
		}
		if i == 0 {
			if err := checkRequestLine(line); err != nil {
				return f, err
			}
		} else if err := f.add(line); err != nil {
			return f, err
		}
		if !more {
			return f, nil
		}
		body = rest
	}
}

// checkLine refuses what ends or continues a line for some servers only.
func checkLine(line []byte) error {
	if len(line) == 0 || line[0] == ' ' || line[0] == '\t' {
		return bad(CodeBadRequest, "a header line is empty or folded")
	}
	for _, c := range line {
		if c < ' ' && c != '\t' || c == 0x7f {
			return bad(CodeBadRequest, "a header line holds a control byte")
		}
	}
	return nil
}

func checkRequestLine(line []byte) error {
	if bytes.Count(line, []byte(" ")) != 2 || bytes.ContainsAny(line, "\t") {
		return bad(CodeBadRequest, "the request line is not three words with single spaces")
	}
	return nil
}

func (f *fields) add(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
		return bad(CodeBadRequest, "a header line has no name, or white space before the colon")
	}
	value = bytes.Trim(value, " \t")
	switch folded := foldName(string(name)); folded {
	case "host", "content-length", "transfer-encoding":
		if !strings.EqualFold(folded, string(name)) {
			return bad(CodeBadRequest, "a header name is a disguised "+folded)
		}
		return f.count(folded, value)
	}
	return nil
}

func (f *fields) count(name string, value []byte) error {
	switch name {
	case "host":
		f.hosts = append(f.hosts, string(value))
	case "content-length":
		f.lengths++
		if len(value) == 0 || len(value) > 18 || bytes.ContainsFunc(value, func(r rune) bool { return r < '0' || r > '9' }) {
			return bad(CodeBadRequest, "the Content-Length is not a number")
		}
	case "transfer-encoding":
		f.encodings++
		if !strings.EqualFold(string(value), "chunked") {
			return bad(CodeBadRequest, "the Transfer-Encoding is not chunked")
		}
	}
	return nil
}

package guard

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentguard/guard/surface"
	"agentguard/integrity"
)

// maxShown bounds the content that is looked into for showing, and maxLines
// what is shown of one surface.
const (
	maxShown = 1 << 20
	maxLines = 400
)

// version is one side of a change: what it is, and its content or link text
// where that could be read.
type version struct {
	integrity.File
	data []byte
	read bool
}

// versionIn reads f from the tree it was found in.
func versionIn(t surface.Tree, f integrity.File) (version, error) {
	v := version{File: f}
	switch {
	case t == nil:
		return v, nil
	case f.Kind == integrity.Gitlink:
		e, err := t.Lstat(f.Path)
		if err == nil {
			v.take([]byte(e.Hash))
		}
		return v, err
	case f.Kind != integrity.Regular && f.Kind != integrity.Link:
		return v, nil
	}
	r, _, err := t.Open(f.Path)
	if errors.Is(err, surface.ErrNotExist) || errors.Is(err, surface.ErrNotRegular) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	defer r.Close() // read only: nothing is lost
	data, err := io.ReadAll(io.LimitReader(r, maxShown+1))
	if err != nil {
		return v, fmt.Errorf("reading %q: %w", f.Path, err)
	}
	v.take(data)
	return v, nil
}

// take accepts content only when it is what was hashed: what is shown is what
// is decided about.
func (v *version) take(data []byte) {
	if len(data) <= maxShown && sha256.Sum256(data) == v.Whole {
		v.data, v.read = data, true
	}
}

// kept reads f from the copies of the surfaces.
func (w *Workspace) kept(f integrity.File) version {
	v := version{File: f}
	if f.Kind == integrity.Regular || f.Kind == integrity.Link {
		if data, err := os.ReadFile(filepath.Join(w.backup().Dir, f.Whole.String())); err == nil {
			v.take(data)
		}
	}
	return v
}

// effect says in lines what executes from now on ("+") and does so no longer
// ("-"): key by key where the file is structured, else by its lines.
func effect(old, now version) []string {
	var out []string
	if old.Kind != now.Kind && old.Kind != integrity.Absent && now.Kind != integrity.Absent {
		out = append(out, fmt.Sprintf("  a %s becomes a %s", old.Kind, now.Kind))
	}
	if old.Kind == now.Kind && old.Mode != now.Mode {
		out = append(out, fmt.Sprintf("  mode %06o becomes %06o", old.Mode, now.Mode))
	}
	switch {
	case !old.readable() || !now.readable():
		return append(out, "  its content is not shown: it is too large, or no file")
	case old.Whole == now.Whole && old.Kind == now.Kind:
		if old.Part != now.Part {
			out = append(out, "  what the link names is another file")
		}
		return out
	}
	a, okA := old.parts()
	b, okB := now.parts()
	if okA && okB {
		out = append(out, setDiff(a, b)...)
	} else {
		out = append(out, lineDiff(old.lines(), now.lines())...)
	}
	if len(out) > maxLines {
		out = append(out[:maxLines:maxLines], fmt.Sprintf("  and %d more lines", len(out)-maxLines))
	}
	return out
}

// readable says whether the content is known; that of nothing is.
func (v version) readable() bool { return v.read || v.Kind == integrity.Absent }

// parts returns the executable part of a structured file, one setting a line.
func (v version) parts() ([]string, bool) {
	if v.Kind == integrity.Absent {
		return nil, true
	}
	e, known := surface.Lookup(v.Entry)
	if !known || e.Part == surface.Whole || v.Kind != integrity.Regular {
		return nil, false
	}
	part, whole := surface.ExecutablePart(e, v.Path, v.data)
	if whole {
		return nil, false
	}
	if e.Part != surface.PackageJSON {
		return textLines(part), true
	}
	var top any
	d := json.NewDecoder(bytes.NewReader(part))
	d.UseNumber()
	if d.Decode(&top) != nil {
		return nil, false
	}
	return flatten(nil, "", top), true
}

// flatten makes one line of every value: "scripts.test: go test".
func flatten(out []string, name string, v any) []string {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			out = flatten(out, strings.TrimPrefix(name+"."+k, "."), v[k])
		}
		return out
	case []any:
		for i, x := range v {
			out = flatten(out, fmt.Sprintf("%s[%d]", name, i), x)
		}
		return out
	}
	return append(out, fmt.Sprintf("%s: %v", name, v))
}

func (v version) lines() []string {
	switch v.Kind {
	case integrity.Gitlink:
		return []string{"commit " + string(v.data) + " of another repository"}
	case integrity.Link:
		return []string{"link to " + string(v.data)}
	}
	if bytes.IndexByte(v.data, 0) >= 0 {
		return []string{fmt.Sprintf("binary, %d bytes, sha256 %s", len(v.data), v.Whole)}
	}
	return textLines(v.data)
}

func textLines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// setDiff is the difference of two lists whose order is their own.
func setDiff(old, now []string) []string {
	var out []string
	for _, l := range old {
		if !slices.Contains(now, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range now {
		if !slices.Contains(old, l) {
			out = append(out, "+ "+l)
		}
	}
	return out
}

// lineDiff shows what differs between the first and the last line that
// differ, with two lines around it.
func lineDiff(old, now []string) []string {
	const around = 2
	start := 0
	for start < len(old) && start < len(now) && old[start] == now[start] {
		start++
	}
	end := 0
	for end < len(old)-start && end < len(now)-start && old[len(old)-1-end] == now[len(now)-1-end] {
		end++
	}
	out := []string{}
	if len(old) > 0 && len(now) > 0 {
		out = append(out, fmt.Sprintf("  @@ line %d @@", max(1, start-around+1)))
	}
	for _, l := range old[max(0, start-around):start] {
		out = append(out, "  "+l)
	}
	for _, l := range old[start : len(old)-end] {
		out = append(out, "- "+l)
	}
	for _, l := range now[start : len(now)-end] {
		out = append(out, "+ "+l)
	}
	for _, l := range now[len(now)-end : min(len(now), len(now)-end+around)] {
		out = append(out, "  "+l)
	}
	return out
}

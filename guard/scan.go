package guard

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"agentguard/guard/surface"
)

// Scanned is one surface of a workspace.
type Scanned struct {
	Path       string `json:"path"` // as a person would type it in the workspace
	Type       string `json:"type"`
	Entry      string `json:"entry"`
	Protection string `json:"protection"`
	Trigger    string `json:"trigger,omitempty"`
	Rule       string `json:"rule"` // the pattern that decided
}

// Scan lists every surface of the work tree and its git directories under the
// effective policy, sorted by path. It reads names only.
func (g *Guard) Scan() ([]Scanned, error) {
	w, err := g.Open()
	if err != nil {
		return nil, err
	}
	if err := g.settle(w); err != nil {
		return nil, err
	}
	p, m, err := g.judgeBy(w)
	if err != nil {
		return nil, err
	}
	areas, err := w.areas(p, m)
	if err != nil {
		return nil, err
	}
	out := []Scanned{}
	for _, a := range areas {
		if err := a.resolve(); err != nil {
			return nil, err
		}
		for _, mem := range a.set.Members {
			out = append(out, scanned(w.shown(a.path(mem.Path)), mem))
		}
	}
	slices.SortFunc(out, func(a, b Scanned) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// ScanDir makes the guard look at another directory than the caller's.
func (g *Guard) ScanDir(dir string) error {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(g.Dir, dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return &PathError{dir, "there is no such directory"}
	}
	if !isDirectory(real) {
		return &PathError{dir, "it is no directory"}
	}
	g.Dir, g.PWD = real, real
	return nil
}

func scanned(path string, m surface.Member) Scanned {
	s := Scanned{Path: path, Type: typeName(m.Type), Protection: m.Hit.Protection.String(), Rule: m.Hit.Rule}
	if m.Hit.Entry != nil {
		s.Entry, s.Trigger = m.Hit.Entry.ID, m.Hit.Entry.Trigger
	}
	return s
}

func typeName(t surface.Type) string {
	switch t {
	case surface.Regular:
		return "file"
	case surface.Dir:
		return "dir"
	case surface.Symlink:
		return "link"
	case surface.Gitlink:
		return "gitlink"
	}
	return "other"
}

// ScanText writes a scan as a table for a person, with a summary at its end.
func ScanText(w io.Writer, list []Scanned) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	number := map[string]int{}
	for _, s := range list {
		path := quote(s.Path)
		switch s.Type {
		case "dir":
			path += "/"
		case "link":
			path += "@"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", path, s.Entry, s.Protection, quoteLine(s.Trigger))
		number[s.Protection]++
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s: %d freeze, %d review, %d note\n", count(len(list), "surface"),
		number[surface.Freeze.String()], number[surface.Review.String()], number[surface.Note.String()])
	return err
}

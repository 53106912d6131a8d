package integrity

import "agentguard/guard/surface"

// What names how a surface differs, as a word for people and programs.
type What string

// The differences, gravest first where several hold at once.
const (
	Added       What = "added"
	Removed     What = "removed"
	TypeChanged What = "type"    // a file became a link, a directory, …
	Changed     What = "changed" // the content, all of which is executable
	PartChanged What = "executable part changed"
	ModeChanged What = "mode"
	DataChanged What = "data" // only outside the executable part
)

// Change is one surface that differs between two manifests.
type Change struct {
	Path       string
	Entry      string
	What       What
	Protection surface.Protection // the stricter of the two sides
	Trigger    string
	Old, New   File // Kind is Absent on the side that has none
}

// Harmless reports whether the change needs nobody's decision: it is outside
// the executable part of a surface that may be written.
func (c Change) Harmless() bool {
	return c.What == DataChanged && c.Protection != surface.Freeze
}

// Diff returns what differs, sorted by path. A change outside the executable
// part is in it too, as DataChanged; [Change.Harmless] tells the difference.
func Diff(old, new *Manifest) []Change {
	var out []Change
	a, b := old.Files(), new.Files()
	for len(a) > 0 || len(b) > 0 {
		var f, g File
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Path < b[0].Path:
			f, g, a = a[0], File{Path: a[0].Path}, a[1:]
		case len(a) == 0 || b[0].Path < a[0].Path:
			f, g, b = File{Path: b[0].Path}, b[0], b[1:]
		default:
			f, g, a, b = a[0], b[0], a[1:], b[1:]
		}
		if !f.same(g) {
			out = append(out, change(f, g, old.isText(), new.isText()))
		}
	}
	return out
}

func (m *Manifest) isText() bool { return m != nil && m.text }

func change(f, g File, oldText, newText bool) Change {
	c := Change{Path: f.Path, What: whatChanged(f, g), Old: f, New: g}
	main := g
	if g.Kind == Absent {
		main = f
	}
	c.Entry, c.Trigger, c.Protection = main.Entry, main.Trigger, main.Protection
	if f.Kind != Absent && g.Kind != Absent {
		c.Protection = stricter(f, g, oldText, newText)
		if c.Trigger == "" {
			c.Trigger = f.Trigger
		}
	}
	return c
}

// stricter returns the protection that judges a surface both sides have. A
// manifest read from text does not know it, so the other side's counts; when
// neither knows, Freeze.
func stricter(f, g File, oldText, newText bool) surface.Protection {
	switch {
	case oldText:
		return g.Protection
	case newText:
		return f.Protection
	}
	return min(f.Protection, g.Protection)
}

func whatChanged(f, g File) What {
	switch {
	case f.Kind == Absent:
		return Added
	case g.Kind == Absent:
		return Removed
	case f.Kind != g.Kind:
		return TypeChanged
	case f.Part != g.Part && f.Part == f.Whole && g.Part == g.Whole:
		return Changed
	case f.Part != g.Part:
		return PartChanged
	case f.Mode != g.Mode:
		return ModeChanged
	}
	return DataChanged
}

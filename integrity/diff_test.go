package integrity

import (
	"strings"
	"testing"

	"agentguard/guard/surface"
)

func with(f File, edit func(*File)) File {
	edit(&f)
	return f
}

func one(f File) *Manifest { return NewManifest([]File{f}) }

func TestDiff(t *testing.T) {
	whole := file("Makefile", "a")
	data := with(file("package.json", "a"), func(f *File) { f.Part = sum("scripts"); f.Protection = surface.Review })
	rows := []struct {
		name     string
		old, new *Manifest
		what     What
		harmless bool
	}{
		{"nothing", one(whole), one(whole), "", false},
		{"added", nil, one(whole), Added, false},
		{"removed", one(whole), nil, Removed, false},
		{"content", one(whole), one(file("Makefile", "b")), Changed, false},
		{"mode", one(whole), one(with(whole, func(f *File) { f.Mode = 0o100755 })), ModeChanged, false},
		{"became a link", one(whole), one(with(whole, func(f *File) { f.Kind = Link; f.Mode = 0o120000 })), TypeChanged, false},
		{"became a FIFO", one(whole), one(File{Path: "Makefile", Kind: Other}), TypeChanged, false},
		{"executable part", one(data), one(with(data, func(f *File) { f.Whole = sum("b"); f.Part = sum("evil") })), PartChanged, false},
		{"part turned malformed", one(data), one(with(data, func(f *File) { f.Whole = sum("b"); f.Part = f.Whole })), PartChanged, false},
		{"data under review", one(data), one(with(data, func(f *File) { f.Whole = sum("b") })), DataChanged, true},
		{"data and mode", one(data), one(with(data, func(f *File) { f.Whole = sum("b"); f.Mode = 0o100755 })), ModeChanged, false},
		{"data of a frozen one", one(with(data, func(f *File) { f.Protection = surface.Freeze })),
			one(with(data, func(f *File) { f.Whole = sum("b"); f.Protection = surface.Freeze })), DataChanged, false},
		{"data, lowered meanwhile", one(with(data, func(f *File) { f.Protection = surface.Freeze })),
			one(with(data, func(f *File) { f.Whole = sum("b") })), DataChanged, false},
		{"entry renamed", one(whole), one(with(whole, func(f *File) { f.Entry = "other" })), "", false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			d := Diff(row.old, row.new)
			if row.what == "" {
				if len(d) != 0 {
					t.Errorf("Diff = %+v, want nothing", d)
				}
				return
			}
			if len(d) != 1 || d[0].What != row.what || d[0].Harmless() != row.harmless || d[0].Path == "" {
				t.Errorf("Diff = %+v, want one %q, harmless %v", d, row.what, row.harmless)
			}
		})
	}
}

func TestZeroChangeIsNotHarmless(t *testing.T) {
	if (Change{}).Harmless() || (Change{What: DataChanged}).Harmless() {
		t.Error("a change without a protection is harmless")
	}
	if (File{}).Kind != Absent || (File{}).Protection != surface.Freeze {
		t.Error("the zero File is not the strictest")
	}
}

// A manifest in text has no protections; the other side's decide.
func TestDiffAgainstText(t *testing.T) {
	f := with(file("package.json", "a"), func(f *File) { f.Part = sum("scripts"); f.Protection = surface.Review })
	read, err := Read(strings.NewReader(text(t, one(f))))
	if err != nil {
		t.Fatal(err)
	}
	now := one(with(f, func(f *File) { f.Whole = sum("b") }))
	if d := Diff(read, now); len(d) != 1 || !d[0].Harmless() {
		t.Errorf("Diff(text, tree) = %+v, want one harmless", d)
	}
	if d := Diff(now, read); len(d) != 1 || !d[0].Harmless() {
		t.Errorf("Diff(tree, text) = %+v, want one harmless", d)
	}
	other, err := Read(strings.NewReader(text(t, now)))
	if err != nil {
		t.Fatal(err)
	}
	if d := Diff(read, other); len(d) != 1 || d[0].Harmless() {
		t.Errorf("Diff(text, text) = %+v, want one that is not harmless", d)
	}
	if d := Diff(read.Select(Tracked), now); len(d) != 1 || !d[0].Harmless() {
		t.Errorf("Select lost where the manifest is from: %+v", d)
	}
}

func TestDiffWalksBothLists(t *testing.T) {
	a := NewManifest([]File{file("a", "1"), file("c", "1"), file("d", "1")})
	b := NewManifest([]File{file("b", "1"), file("c", "2"), file("e", "1")})
	var got []string
	for _, c := range Diff(a, b) {
		got = append(got, c.Path+" "+string(c.What))
	}
	want := "a removed,b added,c changed,d removed,e added"
	if s := strings.Join(got, ","); s != want {
		t.Errorf("Diff = %s, want %s", s, want)
	}
}

func TestTracked(t *testing.T) {
	m := NewManifest([]File{file(".git/config", "x"), file("sub/.GIT/hooks/x", "x"), file(".gitattributes", "x"),
		{Path: ".githooks", Kind: Dir}, file(".githooks/pre-commit", "x"), {Path: "pipe", Kind: Other}})
	var got []string
	for _, f := range m.Select(Tracked).Files() {
		got = append(got, f.Path)
	}
	if s := strings.Join(got, " "); s != ".gitattributes .githooks/pre-commit" {
		t.Errorf("tracked: %s", s)
	}
}

func TestNewManifest(t *testing.T) {
	m := NewManifest([]File{file("b", "1"), file("a", "1"), file("b", "2"), {Path: "gone"}})
	if len(m.Files()) != 2 || m.Files()[0].Path != "a" || m.Get("b").Whole != sum("2") {
		t.Errorf("NewManifest = %+v", m.Files())
	}
	if got := m.Get("gone"); got.Kind != Absent || got.Path != "gone" {
		t.Errorf("Get of an absent one = %+v", got)
	}
}

package integrity

import (
	"testing"

	"agentguard/guard/surface"
)

// What a link names in the tree is its executable part, wherever it is not a
// surface that is told by itself.
func TestLinkTargets(t *testing.T) {
	link := func(text string) surface.MapFile { return surface.MapFile{Data: text, Type: surface.Symlink} }
	rows := []struct {
		name    string
		tree    surface.MapTree
		edit    string // a file that is changed
		changed bool   // whether .githooks/a shows it
	}{
		{"file", surface.MapTree{".githooks/a": link("../x/run"), "x/run": {Data: "1"}}, "x/run", true},
		{"chain", surface.MapTree{".githooks/a": link("../b"), "b": link("x/c"), "x/c": link("../d"), "d": {Data: "1"}}, "d", true},
		{"comes into being", surface.MapTree{".githooks/a": link("../none")}, "none", true},
		{"another file", surface.MapTree{".githooks/a": link("../x/run"), "x/run": {Data: "1"}}, "x/other", false},
		{"a surface itself", surface.MapTree{".githooks/a": link("../Makefile"), "Makefile": {Data: "1"}}, "Makefile", false},
		{"loop", surface.MapTree{".githooks/a": link("../b"), "b": link("c"), "c": link("b")}, "d", false},
		{"itself", surface.MapTree{".githooks/a": link("a")}, "b", false},
		{"outside", surface.MapTree{".githooks/a": link("../../b")}, "b", false},
		{"absolute", surface.MapTree{".githooks/a": link("/b")}, "b", false},
		{"the root", surface.MapTree{".githooks/a": link("..")}, "b", false},
		{"a directory", surface.MapTree{".githooks/a": link("../x"), "x/y": {Data: "1"}}, "x/y", false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			before := snapshot(t, row.tree)
			row.tree[row.edit] = surface.MapFile{Data: "changed"}
			after := snapshot(t, row.tree)
			if got := !before.Get(".githooks/a").same(after.Get(".githooks/a")); got != row.changed || before.Get(".githooks/a").Kind != Link {
				t.Errorf("changed: %v, want %v\n%s%s", got, row.changed, text(t, before), text(t, after))
			}
		})
	}
	t.Run("mode", func(t *testing.T) {
		tree := surface.MapTree{".githooks/a": link("../run"), "run": {Data: "1"}}
		before := snapshot(t, tree)
		tree["run"] = surface.MapFile{Data: "1", Perm: 0o755}
		if d := Diff(before, snapshot(t, tree)); len(d) != 1 || d[0].What != PartChanged {
			t.Errorf("Diff = %+v", d)
		}
	})
}

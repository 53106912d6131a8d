package surface

// Member is one surface that exists in a tree.
type Member struct {
	WalkEntry
	Hit      Hit
	WholeDir bool // a directory below which everything is frozen; without it a directory is frozen as a name only
}

// Set is the surfaces of one tree.
type Set struct {
	Members []Member // sorted by Path
}

// Resolve walks t once and returns what m matches, each member with all the
// fields of its Lstat. A member that vanished during the walk is left out.
func Resolve(t Tree, m *Matcher) (*Set, error) { return &Set{}, nil }

// Lookup returns the member of that path.
func (s *Set) Lookup(path string) (Member, bool) { return Member{}, false }

package git

// TreeChange is one difference between two trees. A side that has no such
// path has mode 0 and the zero Hash.
type TreeChange struct {
	Path             string
	OldMode, NewMode uint32
	OldHash, NewHash Hash
}

// DiffTrees calls fn for every path that is not a directory and differs
// between a and b (commits, tags or trees; zero is the empty tree), in git's
// order. Identical subtrees are not opened; a rename is an addition and a
// removal. Every tree that is opened is verified.
func (r *Repo) DiffTrees(a, b Hash, fn func(TreeChange) error) error {
	from, err := r.treeHash(a)
	if err != nil {
		return err
	}
	to, err := r.treeHash(b)
	if err != nil {
		return err
	}
	d := &treeDiff{repo: r, fn: fn, left: maxTreeEntries}
	return d.diff(from, to, "", 0)
}

type treeDiff struct {
	repo *Repo
	fn   func(TreeChange) error
	left int
	made func(Hash) ([]treeEntry, bool) // trees that are not in the object store; nil for none
}

func (d *treeDiff) read(h Hash) ([]treeEntry, error) {
	if d.made != nil {
		if list, ok := d.made(h); ok {
			return list, nil
		}
	}
	return d.repo.readTree(h)
}

// diff merges two trees, both in git's order.
func (d *treeDiff) diff(a, b Hash, prefix string, depth int) error {
	if a == b {
		return nil
	}
	from, err := d.read(a)
	if err != nil {
		return err
	}
	to, err := d.read(b)
	if err != nil {
		return err
	}
	if d.left -= len(from) + len(to); depth > maxTreeDepth || d.left < 0 {
		return &CorruptError{What: "tree " + b.String(), Why: "it is too deep or has too many entries"}
	}
	for len(from) > 0 || len(to) > 0 {
		var x, y treeEntry
		c := 0
		switch {
		case len(from) == 0:
			c = 1
		case len(to) == 0:
			c = -1
		default:
			c = compareEntries(from[0], to[0])
		}
		if c <= 0 {
			x, from = from[0], from[1:]
		}
		if c >= 0 {
			y, to = to[0], to[1:]
		}
		if err := d.pair(x, y, prefix, depth); err != nil {
			return err
		}
	}
	return nil
}

// pair tells the difference between two entries of one place in the order, of
// which one may be absent.
func (d *treeDiff) pair(x, y treeEntry, prefix string, depth int) error {
	if x.mode == y.mode && x.hash == y.hash {
		return nil
	}
	name := x.name
	if x.mode == 0 {
		name = y.name
	}
	if x.mode == modeDir || y.mode == modeDir { // both, or one and nothing: files sort elsewhere
		return d.diff(x.hash, y.hash, prefix+name+"/", depth+1)
	}
	return d.fn(TreeChange{Path: prefix + name, OldMode: x.mode, NewMode: y.mode, OldHash: x.hash, NewHash: y.hash})
}

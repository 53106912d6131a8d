package git

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// commit is what history needs of a commit object.
type commit struct {
	hash    Hash
	parents []Hash
	time    int64 // of the committer; whoever made the commit chose it
}

// readCommit reads a verified commit. Where the repository is shallow the
// parents that its shallow file cuts off are left out, but only those that are
// really absent: the file cannot hide a commit that is there.
func (r *Repo) readCommit(h Hash, shallow map[Hash]bool) (commit, error) {
	data, err := r.readAs(h, Commit)
	if err != nil {
		return commit{}, err
	}
	c, err := parseCommit(h, data, r.ObjectFormat)
	if err != nil {
		return commit{}, &CorruptError{What: "commit " + h.String(), Why: err.Error()}
	}
	if !shallow[h] {
		return c, nil
	}
	present := c.parents[:0]
	for _, p := range c.parents {
		_, _, err := r.Read(p)
		if _, missing := errors.AsType[*MissingError](err); !missing {
			present = append(present, p)
		}
	}
	c.parents = present
	return c, nil
}

func parseCommit(h Hash, data []byte, format ObjectFormat) (commit, error) {
	c := commit{hash: h}
	tree := false
	for line := range bytes.Lines(data) {
		key, value, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		switch key {
		case "tree":
			tree = true
		case "parent":
			p, err := ParseHash(value)
			if err != nil || int(p.n) != format.Size() {
				return c, errors.New("a parent is no hash")
			}
			c.parents = append(c.parents, p)
		case "committer":
			c.time = committerTime(value)
			return c, nil
		case "author":
		default:
			return c, errors.New("its header is not a commit's")
		}
		if !tree {
			return c, errors.New("its header does not begin with a tree")
		}
	}
	return c, errors.New("it has no committer")
}

// committerTime reads "NAME <MAIL> SECONDS ZONE"; 0 for what is no number. It
// only orders the walk.
func committerTime(s string) int64 {
	fields := strings.Fields(s[strings.LastIndexByte(s, '>')+1:])
	if len(fields) == 0 {
		return 0
	}
	t, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return t
}

// shallow reads the commits at which a shallow clone ends.
func (r *Repo) shallow() (map[Hash]bool, error) {
	data, err := readIn(r.common, "shallow", maxRefs)
	if isNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[Hash]bool{}
	for line := range strings.FieldsSeq(string(data)) {
		h, err := ParseHash(line)
		if err != nil {
			return nil, &CorruptError{What: join(r.common, "shallow"), Why: err.Error()}
		}
		out[h] = true
	}
	return out, nil
}

package integrity

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strings"

	"agentguard/guard/surface"
)

// maxHops bounds a chain of links, as the kernel's own limit does.
const maxHops = 40

// followLink makes the executable part of a link what it names: file by file
// along a chain, as long as they are in the tree and no members of the set,
// which have lines of their own. They are hashed as a whole, because a name
// that a link gives says nothing of the format.
func followLink(t surface.Tree, set *surface.Set, hit surface.Hit, f *File) error {
	if f.Kind != Link || hit.Protection == surface.Note {
		return nil
	}
	chain, last := sha256.New(), *f
	for range maxHops {
		name, ok := last.names()
		if _, member := set.Lookup(name); !ok || member {
			break
		}
		var err error
		if last, err = hashMember(t, surface.Member{WalkEntry: surface.WalkEntry{Path: name}}); err != nil {
			return err
		}
		if last.Kind == Absent || last.Kind == Dir {
			break
		}
		fmt.Fprintf(chain, "%s %s %06o %s\n", quote(name), last.Kind, last.Mode, last.Whole)
		chain.Sum(f.Part[:0])
	}
	return nil
}

// names returns the path in the tree that a link gives another name to; false
// when f is no link, or names something outside.
func (f File) names() (string, bool) {
	if f.Kind != Link || f.link == "" || strings.HasPrefix(f.link, "/") {
		return "", false
	}
	name := path.Join(path.Dir(f.Path), f.link)
	return name, name != "." && name != ".." && !strings.HasPrefix(name, "../")
}

package surface

// Prune tells whether no surface can be below dir, so that a walk may leave
// it out: git's object stores and the refs a fetch writes. Nothing git reads
// from there executes or redirects; what it can do to history is judged on
// objects and refs, not on files. (.git/logs stays: git writes through a
// link planted there.)
//
// Globs of Rules.Protect do not reach in, unless they name .git.
func (m *Matcher) Prune(dir string) bool {
	if !m.ready || m.keepGit {
		return false
	}
	var bytes [nameBytes]byte
	var ends [nameParts]uint16
	p, ok := splitName(dir, bytes[:0], ends[:0])
	if !ok {
		return false
	}
	for i := 0; i+2 < p.len(); i++ {
		if string(p.part(i)) != ".git" {
			continue
		}
		third := string(p.part(i + 2))
		switch string(p.part(i + 1)) {
		case "objects":
			return third != "info"
		case "refs":
			return third == "heads" || third == "remotes" || third == "tags"
		case "lfs":
			return third == "objects"
		}
	}
	return false
}

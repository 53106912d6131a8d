package surface

import "strings"

// maxPart is how large a file may be for its structure to be looked at.
const maxPart = 4 << 20 // 4 MiB

// ExecutablePart returns what of content a tool may execute or be redirected
// by, in a canonical form: two contents with the same part, and the same
// answer whole, execute the same. whole says that part is content itself,
// because the entry has no structure, or because the content is malformed,
// ambiguous or too large to be looked into.
func ExecutablePart(e Entry, path string, content []byte) (part []byte, whole bool) {
	if len(content) > maxPart {
		return content, true
	}
	ok := false
	switch e.Part {
	case PackageJSON:
		part, ok = packagePart(e.Keys, content)
	case GitInternal:
		part, ok = gitPart(path, content)
	}
	if !ok {
		return content, true
	}
	return part, false
}

// gitPart looks into git's configuration files and knows that git does not
// run the samples it puts into every new hooks directory.
func gitPart(path string, content []byte) (part []byte, ok bool) {
	dir, base := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, base = path[:i], path[i+1:]
	}
	switch {
	case strings.HasSuffix(dir, "/hooks") && strings.HasSuffix(base, ".sample"):
		return nil, true
	case base == "config" || base == "config.worktree" || strings.HasSuffix(base, "gitconfig"):
		return configPart(content)
	}
	return nil, false
}

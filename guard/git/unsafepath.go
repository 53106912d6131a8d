package git

import (
	"fmt"
	"strings"
)

// UnsafePath tells why git must not write an entry of this name into a work
// tree, empty when nothing is wrong. A crafted index makes "git restore" write
// such a path. The spellings that only Windows or macOS take for ".git" count
// everywhere: the repository is for all who clone it.
func UnsafePath(path string) (why string) {
	if path == "" {
		return "it is empty"
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		switch {
		case part == "":
			return "it is absolute or has an empty component"
		case part == "." || part == "..":
			return fmt.Sprintf("it holds the component %q", part)
		case strings.ContainsRune(part, 0):
			return "it holds a NUL byte"
		}
		for piece := range strings.SplitSeq(part, `\`) { // a separator on Windows
			if isDotGit(piece) {
				return fmt.Sprintf("the component %q means .git", part)
			}
		}
	}
	return ""
}

// isDotGit tells whether some file system takes name for ".git".
func isDotGit(name string) bool {
	hfs := strings.ToLower(strings.Map(dropIgnorable, name))
	ntfs, _, _ := strings.Cut(hfs, ":") // an alternate stream
	ntfs = strings.TrimRight(ntfs, " .")
	return hfs == ".git" || ntfs == ".git" || ntfs == "git~1"
}

// dropIgnorable drops the code points that HFS+ ignores in names.
func dropIgnorable(c rune) rune {
	switch {
	case 0x200c <= c && c <= 0x200f, 0x202a <= c && c <= 0x202e, 0x206a <= c && c <= 0x206f, c == 0xfeff:
		return -1
	}
	return c
}

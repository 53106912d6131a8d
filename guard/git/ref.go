package git

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Ref is one name for an object.
type Ref struct {
	Name     string // refs/heads/main, HEAD, worktrees/NAME/HEAD, main-worktree/HEAD, refs/stash@{1}
	Hash     Hash   // zero when unborn or when Problem is set
	Symbolic string // the ref it names, for a symbolic one
	Problem  string // why it has no hash, one sentence; empty for an unborn branch
}

// maxSymbolic is git's limit on refs that name refs.
const maxSymbolic = 5

// errUnborn says that a ref does not exist.
var errUnborn = errors.New("the ref does not exist")

// parseRef reads the content of a loose ref: a hash or "ref: NAME".
func parseRef(data []byte) (h Hash, target string, err error) {
	s := string(data)
	if rest, ok := strings.CutPrefix(s, "ref:"); ok {
		target = strings.TrimRight(strings.TrimLeft(rest, " \t\n\r"), " \t\n\r")
		if !validRefName(target) {
			return Hash{}, "", fmt.Errorf("it names %q, which is no ref", target)
		}
		return Hash{}, target, nil
	}
	n := 40
	if len(s) >= 64 && isHex(s[:64]) {
		n = 64
	}
	if len(s) < n || len(s) > n && !strings.ContainsRune(" \t\n\r", rune(s[n])) {
		return Hash{}, "", errors.New("it holds neither a hash nor the name of a ref")
	}
	h, err = ParseHash(s[:n])
	return h, "", err
}

// validRefName holds a name to what is safe to look up below a git directory.
// It is looser than git's check-ref-format except where paths are concerned.
func validRefName(name string) bool {
	if !strings.HasPrefix(name, "refs/") && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.ContainsAny(name, "\x00 \t\n\r\\~^:?*[\x7f") && !strings.Contains(name, "..")
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// lookup follows name to a hash. Refs of the work tree (HEAD and the like,
// refs/bisect, refs/worktree, refs/rewritten) are in the work tree's own
// directory root, the others in the common one.
func (r *Repo) lookup(root *os.Root, name string) (h Hash, symbolic string, err error) {
	for range maxSymbolic {
		h, target, err := r.readRef(root, name)
		if err != nil || target == "" {
			return h, symbolic, err
		}
		symbolic, name = target, target
	}
	return Hash{}, symbolic, errors.New("it names a ref that names a ref, without end")
}

func (r *Repo) readRef(root *os.Root, name string) (Hash, string, error) {
	if !validRefName(name) {
		return Hash{}, "", fmt.Errorf("%q is no ref", name)
	}
	where := r.common
	if perWorktree(name) {
		where = root
	}
	data, err := readIn(where, name, maxPointer)
	switch {
	case err == nil:
		h, target, err := parseRef(data)
		if err == nil && target == "" && h.n != uint8(r.ObjectFormat.Size()) {
			err = errors.New("its hash is not of the repository's object format")
		}
		return h, target, err
	case isNotExist(err) || isDirError(where, name):
		packed, err := r.packedRefs()
		if err != nil {
			return Hash{}, "", err
		}
		if h, ok := packed[name]; ok {
			return h, "", nil
		}
		return Hash{}, "", errUnborn
	}
	return Hash{}, "", err
}

// isDirError tells whether name is an (emptied) directory: refs/heads/a stays
// after refs/heads/a/b was packed.
func isDirError(root *os.Root, name string) bool {
	fi, err := root.Lstat(name)
	return err == nil && fi.IsDir()
}

func perWorktree(name string) bool {
	if !strings.HasPrefix(name, "refs/") {
		return true
	}
	for _, p := range []string{"refs/bisect/", "refs/worktree/", "refs/rewritten/"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// packedRefs reads packed-refs. It is read anew each time: a ref may move
// while the repository is open.
func (r *Repo) packedRefs() (map[string]Hash, error) {
	data, err := readIn(r.common, "packed-refs", maxRefs)
	if isNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	refs := map[string]Hash{}
	n := 2 * r.ObjectFormat.Size()
	for line := range bytes.Lines(data) {
		s := strings.TrimRight(string(line), "\r\n")
		if s == "" || s[0] == '#' || s[0] == '^' {
			continue
		}
		if len(s) < n+2 || s[n] != ' ' {
			return nil, &CorruptError{What: join(r.common, "packed-refs"), Why: "a line is no ref"}
		}
		h, err := ParseHash(s[:n])
		if err != nil {
			return nil, &CorruptError{What: join(r.common, "packed-refs"), Why: err.Error()}
		}
		refs[s[n+1:]] = h
	}
	return refs, nil
}

// toRef looks name up and makes of it what [Repo.Refs] tells.
func (r *Repo) toRef(root *os.Root, shown, name string) Ref {
	h, symbolic, err := r.lookup(root, name)
	ref := Ref{Name: shown, Hash: h, Symbolic: symbolic}
	if err != nil {
		ref.Hash = Hash{}
	}
	if err != nil && !errors.Is(err, errUnborn) {
		ref.Problem = err.Error()
	}
	return ref
}

func sortRefs(refs []Ref) []Ref {
	slices.SortFunc(refs, func(a, b Ref) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(refs, func(a, b Ref) bool { return a.Name == b.Name })
}

package git

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxReflog bounds the reflog of refs/stash.
const maxReflog = 16 << 20

// Refs returns, sorted by name, HEAD and the refs of every worktree, all loose
// and packed refs and the reflog entries of refs/stash, which is where older
// stashes are. A ref that cannot be read is in the list with its Problem.
func (r *Repo) Refs() ([]Ref, error) {
	refs, err := r.sharedRefs()
	if err != nil {
		return nil, err
	}
	own, err := r.worktreeRefs(r.git, "")
	if err != nil {
		return nil, err
	}
	refs = append(refs, own...)
	if r.Linked {
		if own, err = r.worktreeRefs(r.common, "main-worktree/"); err != nil {
			return nil, err
		}
		refs = append(refs, own...)
	}
	names, err := subdirs(r.common, "worktrees")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		dir := filepath.Join("worktrees", name)
		if r.Linked && filepath.Join(r.CommonDir, dir) == r.GitDir {
			continue
		}
		root, err := r.common.OpenRoot(dir)
		if err != nil {
			return nil, fmt.Errorf("opening worktree %q: %w", name, underlying(err))
		}
		own, err = r.worktreeRefs(root, dir+"/")
		_ = root.Close() // only read
		if err != nil {
			return nil, err
		}
		refs = append(refs, own...)
	}
	return sortRefs(refs), nil
}

// sharedRefs returns the refs in the common directory and of the stash.
func (r *Repo) sharedRefs() ([]Ref, error) {
	packed, err := r.packedRefs()
	if err != nil {
		return nil, err
	}
	names, problems, err := looseNames(r.common, "refs")
	if err != nil {
		return nil, err
	}
	refs := problems
	loose := map[string]bool{}
	for _, p := range problems {
		loose[p.Name] = true
	}
	for _, name := range names {
		if perWorktree(name) {
			continue
		}
		loose[name] = true
		refs = append(refs, r.toRef(r.common, name, name))
	}
	for name, h := range packed {
		if !loose[name] {
			refs = append(refs, Ref{Name: name, Hash: h})
		}
	}
	stash, err := r.stashes()
	return append(refs, stash...), err
}

// worktreeHeads are the names outside refs/ that keep an object a user's next
// command may take up.
var worktreeHeads = []string{
	"HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "BISECT_HEAD",
	"AUTO_MERGE", "MERGE_AUTOSTASH",
}

// worktreeRefs returns what one work tree has for itself. Of FETCH_HEAD and
// MERGE_HEAD, which may hold several lines, it is the first.
func (r *Repo) worktreeRefs(root *os.Root, prefix string) ([]Ref, error) {
	var refs []Ref
	for _, name := range worktreeHeads {
		fi, err := root.Lstat(name)
		if isNotExist(err) || err == nil && name == "FETCH_HEAD" && fi.Size() == 0 { // a fetch of nothing leaves it empty
			continue
		}
		refs = append(refs, r.toRef(root, prefix+name, name))
	}
	for _, dir := range []string{"refs/bisect", "refs/worktree", "refs/rewritten"} {
		names, problems, err := looseNames(root, dir)
		if err != nil {
			return nil, err
		}
		for _, p := range problems {
			p.Name = prefix + p.Name
			refs = append(refs, p)
		}
		for _, name := range names {
			refs = append(refs, r.toRef(root, prefix+name, name))
		}
	}
	return refs, nil
}

// looseNames returns the files below dir, and as refs with a Problem what is
// neither file nor directory.
func looseNames(root *os.Root, dir string) (names []string, problems []Ref, err error) {
	entries, err := readDirIn(root, dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		name := dir + "/" + e.Name()
		switch {
		case e.IsDir():
			more, bad, err := looseNames(root, name)
			if err != nil {
				return nil, nil, err
			}
			names, problems = append(names, more...), append(problems, bad...)
		case strings.HasSuffix(name, ".lock"): // being written
		case e.Type()&fs.ModeSymlink != 0:
			problems = append(problems, Ref{Name: name, Problem: "it is a symbolic link, which is not followed"})
		case !e.Type().IsRegular():
			problems = append(problems, Ref{Name: name, Problem: "it is no regular file"})
		default:
			names = append(names, name)
		}
	}
	return names, problems, nil
}

// stashes returns the reflog entries of refs/stash: @{0} is the newest, at the
// end of the file.
func (r *Repo) stashes() ([]Ref, error) {
	data, err := readIn(r.common, "logs/refs/stash", maxReflog)
	if isNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	var refs []Ref
	for i, line := range lines {
		ref := Ref{Name: fmt.Sprintf("refs/stash@{%d}", len(lines)-1-i)}
		n := 2 * r.ObjectFormat.Size()
		if len(line) < 2*n+1 {
			ref.Problem = "the line of the reflog is too short"
		} else if ref.Hash, err = ParseHash(string(line[n+1 : 2*n+1])); err != nil {
			ref.Problem = err.Error()
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

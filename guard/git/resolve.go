package git

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"strconv"
	"strings"
)

// Resolve returns the object that rev names: HEAD or another ref in full or
// short, a hash in full or an unambiguous beginning of four digits or more,
// followed by any of ~N, ^N, ^{commit}, ^{tree}, ^{blob}, ^{tag}, ^{}. A name
// that is a ref and a beginning of a hash is the ref. Failure:
// [*RevisionError].
func (r *Repo) Resolve(rev string) (Hash, error) {
	name, ops := rev, ""
	if i := strings.IndexAny(rev, "~^"); i >= 0 {
		name, ops = rev[:i], rev[i:]
	}
	h, err := r.resolveName(name)
	for err == nil && ops != "" {
		h, ops, err = r.applyOp(h, ops)
	}
	if err != nil {
		return Hash{}, &RevisionError{Rev: rev, Why: err.Error()}
	}
	return h, nil
}

func (r *Repo) resolveName(name string) (Hash, error) {
	if name == "@" {
		name = "HEAD"
	}
	if n := 2 * r.ObjectFormat.Size(); len(name) == n && isHex(name) {
		h, err := ParseHash(name)
		if err != nil {
			return Hash{}, err
		}
		_, _, err = r.Read(h)
		return h, err
	}
	for _, form := range []string{"", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"} {
		full := form + name
		if !validRefName(full) {
			continue
		}
		h, _, err := r.lookup(r.git, full)
		if err == nil || !errors.Is(err, errUnborn) {
			return h, err
		}
	}
	if full := "refs/remotes/" + name + "/HEAD"; validRefName(full) {
		if h, _, err := r.lookup(r.git, full); err == nil || !errors.Is(err, errUnborn) {
			return h, err
		}
	}
	if len(name) >= 4 && len(name) <= 64 && isHex(name) {
		return r.resolvePrefix(strings.ToLower(name))
	}
	return Hash{}, errors.New("it names no ref and no object")
}

// applyOp applies the first operator of ops.
func (r *Repo) applyOp(h Hash, ops string) (Hash, string, error) {
	op, rest := ops[0], ops[1:]
	if op == '^' && strings.HasPrefix(rest, "{") {
		word, after, ok := strings.Cut(rest[1:], "}")
		t := parseType(word)
		if !ok || t == 0 && word != "" {
			return Hash{}, "", errors.New("what follows ^ is not understood")
		}
		h, err := r.peel(h, t)
		return h, after, err
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	n := 1
	if digits > 0 {
		var err error
		if n, err = strconv.Atoi(rest[:digits]); err != nil || n > maxHistory {
			return Hash{}, "", errors.New("a number is too large")
		}
	}
	step, times := 1, n
	if op == '^' {
		step, times = n, min(n, 1)
	}
	h, err := r.peel(h, Commit)
	for range times {
		if err != nil {
			return Hash{}, "", err
		}
		h, err = r.parent(h, step)
	}
	return h, rest[digits:], err
}

func (r *Repo) parent(h Hash, n int) (Hash, error) {
	c, err := r.readCommit(h, nil)
	if err != nil {
		return Hash{}, err
	}
	if n > len(c.parents) {
		return Hash{}, errors.New("a commit has fewer parents")
	}
	return c.parents[n-1], nil
}

// resolvePrefix finds the one object whose hash begins with the hex digits.
func (r *Repo) resolvePrefix(prefix string) (Hash, error) {
	s, err := r.objects()
	if err != nil {
		return Hash{}, err
	}
	found := map[Hash]bool{}
	for _, d := range s.dirs {
		if err := d.prefixed(s.format, prefix, func(h Hash) { found[h] = true }); err != nil {
			return Hash{}, err
		}
	}
	if len(found) > 1 {
		return Hash{}, errors.New("it is the beginning of more than one object's name")
	}
	for h := range found {
		return h, nil
	}
	return Hash{}, errors.New("it names no ref and no object")
}

// prefixed calls fn for every object of d whose hash begins with prefix.
func (d *objectDir) prefixed(format ObjectFormat, prefix string, fn func(Hash)) error {
	packs, err := d.list(format, true)
	if err != nil {
		return err
	}
	key := make([]byte, format.Size())
	if _, err := hex.Decode(key, []byte(prefix[:len(prefix)&^1])); err != nil {
		return err
	}
	if len(prefix)%2 == 1 {
		last := bytes.IndexByte([]byte("0123456789abcdef"), prefix[len(prefix)-1])
		key[len(prefix)/2] = byte(last << 4)
	}
	for _, p := range packs {
		if err := p.idx.prefixed(key, prefix, fn); err != nil {
			return err
		}
	}
	entries, err := readDirIn(d.root, prefix[:2])
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if name := prefix[:2] + e.Name(); strings.HasPrefix(name, prefix) && len(name) == 2*format.Size() {
			h, err := ParseHash(name)
			if err != nil {
				return err
			}
			fn(h)
		}
	}
	return nil
}

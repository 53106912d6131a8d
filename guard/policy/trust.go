package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// RepoID is the identity of one clone: the path of its common git directory
// and that directory's file identity, so that neither another clone of the same
// repository nor another directory moved to the same path shares a yes.
type RepoID struct {
	Path string `json:"path"`
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
}

// Identify returns the identity of the directory dir, which is a repository's
// common git directory or, outside a repository, the workspace itself.
func Identify(dir string) (RepoID, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return RepoID{}, fmt.Errorf("identifying %q: %w", dir, err)
	}
	if !filepath.IsAbs(real) {
		return RepoID{}, fmt.Errorf("identifying %q: not an absolute path", dir)
	}
	info, err := os.Lstat(real)
	if err != nil {
		return RepoID{}, fmt.Errorf("identifying %q: %w", dir, err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return RepoID{}, fmt.Errorf("identifying %q: not a directory", dir)
	}
	return RepoID{Path: real, Dev: uint64(st.Dev), Ino: st.Ino}, nil
}

// TrustRecord is one yes: these bytes in this clone.
type TrustRecord struct {
	Repo   RepoID `json:"repo"`
	SHA256 string `json:"sha256"` // of the trusted file's bytes, hex
}

// TrustStore keeps what the user said yes to, one file a yes, in Dir, which
// must be a directory of the user's that no run can write. One file a yes means
// that two runs at once cannot lose each other's.
type TrustStore struct {
	Dir string
}

const trustSuffix = ".trust.json"

// Record keeps a yes. Recording the same yes again changes nothing on disk.
func (s TrustStore) Record(repo RepoID, src *Source) error {
	rec := TrustRecord{repo, src.SHA256()}
	if repo.Path == "" {
		return errors.New("recording trust: the repository has no identity")
	}
	if ok, err := s.holds(rec); err == nil && ok {
		return nil
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("recording trust: %w", err)
	}
	if err := writeAtomic(s.path(rec), rec.encode()); err != nil {
		return fmt.Errorf("recording trust: %w", err)
	}
	return nil
}

// Trusted says whether the user said yes to src in repo. An error means no.
func (s TrustStore) Trusted(repo RepoID, src *Source) (bool, error) {
	if src == nil || repo.Path == "" {
		return false, nil
	}
	ok, err := s.holds(TrustRecord{repo, src.SHA256()})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading trust: %w", err)
	}
	return ok, nil
}

// Revoke takes back every yes for repo and says how many there were.
func (s TrustStore) Revoke(repo RepoID) (int, error) {
	recs, err := s.List()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, rec := range recs {
		if rec.Repo != repo {
			continue
		}
		if err := os.Remove(s.path(rec)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, fmt.Errorf("revoking trust: %w", err)
		}
		n++
	}
	if n == 0 {
		return 0, nil
	}
	return n, syncDir(s.Dir)
}

// List returns every yes, sorted by repository and digest. A file that is no
// record, or not under the name of its own content, is left out: it counts for
// nothing in [TrustStore.Trusted] either.
func (s TrustStore) List() ([]TrustRecord, error) {
	names, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing trust: %w", err)
	}
	var out []TrustRecord
	for _, e := range names {
		if !strings.HasSuffix(e.Name(), trustSuffix) {
			continue
		}
		path := filepath.Join(s.Dir, e.Name())
		data, err := readOwn(path)
		if err != nil {
			continue // counts for nothing
		}
		if rec, ok := decodeRecord(data); ok && s.path(rec) == path && bytes.Equal(data, rec.encode()) {
			out = append(out, rec)
		}
	}
	slices.SortFunc(out, func(a, b TrustRecord) int {
		return strings.Compare(a.Repo.Path+"\x00"+a.SHA256, b.Repo.Path+"\x00"+b.SHA256)
	})
	return out, nil
}

// holds says whether the store has exactly rec.
func (s TrustStore) holds(rec TrustRecord) (bool, error) {
	data, err := readOwn(s.path(rec))
	if err != nil {
		return false, err
	}
	return bytes.Equal(data, rec.encode()), nil
}

func (s TrustStore) path(rec TrustRecord) string {
	h := sha256.New()
	for _, part := range []string{
		rec.Repo.Path, strconv.FormatUint(rec.Repo.Dev, 10), strconv.FormatUint(rec.Repo.Ino, 10), rec.SHA256,
	} {
		h.Write([]byte(strconv.Quote(part)))
	}
	return filepath.Join(s.Dir, hex.EncodeToString(h.Sum(nil))+trustSuffix)
}

// encode writes a record. A path that is not UTF-8 is written quoted, because
// JSON would write different ones alike.
func (r TrustRecord) encode() []byte {
	r.Repo.Path = pathText(r.Repo.Path)
	data, err := json.Marshal(r)
	if err != nil {
		return nil // strings and numbers always encode
	}
	return append(data, '\n')
}

func decodeRecord(data []byte) (TrustRecord, bool) {
	var rec TrustRecord
	if err := json.Unmarshal(data, &rec); err != nil {
		return TrustRecord{}, false
	}
	if strings.HasPrefix(rec.Repo.Path, `"`) {
		path, err := strconv.Unquote(rec.Repo.Path)
		if err != nil {
			return TrustRecord{}, false
		}
		rec.Repo.Path = path
	}
	return rec, true
}

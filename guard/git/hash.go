package git

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"

	"github.com/pjbgf/sha1cd"
)

// ObjectFormat is the hash function that names a repository's objects. The
// zero value is none and reads nothing.
type ObjectFormat uint8

// The object formats.
const (
	SHA1   ObjectFormat = iota + 1 // 20 bytes, computed with collision detection
	SHA256                         // 32 bytes
)

// String returns the name that extensions.objectFormat uses.
func (f ObjectFormat) String() string {
	switch f {
	case SHA1:
		return "sha1"
	case SHA256:
		return "sha256"
	}
	return "none"
}

// Size returns the length of a raw hash in bytes.
func (f ObjectFormat) Size() int {
	switch f {
	case SHA1:
		return 20
	case SHA256:
		return 32
	}
	return 0
}

// Hash names one object. It is comparable; the zero value names nothing and,
// where a tree is asked for, stands for the empty one.
type Hash struct {
	raw [32]byte
	n   uint8
}

// IsZero tells whether h names nothing: no hash at all, or git's all-zero one.
func (h Hash) IsZero() bool { return h.raw == [32]byte{} }

// String returns h in lower-case hex, empty for the zero value.
func (h Hash) String() string {
	var buf [64]byte
	return string(buf[:hex.Encode(buf[:], h.raw[:h.n])])
}

func rawHash(b []byte) Hash {
	var h Hash
	h.n = uint8(copy(h.raw[:], b))
	return h
}

// ParseHash reads a full hash in hex, of either format.
func ParseHash(s string) (Hash, error) {
	if len(s) != 40 && len(s) != 64 {
		return Hash{}, fmt.Errorf("%q is not an object name: want 40 or 64 hex digits", s)
	}
	var h Hash
	n, err := hex.Decode(h.raw[:], []byte(s))
	if err != nil {
		return Hash{}, fmt.Errorf("%q is not an object name: %w", s, err)
	}
	h.n = uint8(n)
	return h, nil
}

// HashObject returns the name that f gives to a blob of this content.
func (f ObjectFormat) HashObject(content []byte) Hash { return f.sum(Blob, content) }

// HashObject returns the hex name of a blob of this content in r's format.
func (r *Repo) HashObject(content []byte) string {
	return r.ObjectFormat.HashObject(content).String()
}

// HashFile returns the hex name of the blob with the raw bytes of file, which
// must be a regular file and no symbolic link: no filter, no line-ending
// conversion, nothing of the repository's configuration is applied.
func (r *Repo) HashFile(file string) (string, error) {
	f, err := openRegular(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h, err := r.ObjectFormat.hashFile(f)
	if err != nil {
		return "", fmt.Errorf("hashing %q: %w", file, err)
	}
	return h.String(), nil
}

// hashFile streams f, which must not change its size meanwhile: the size goes
// into the hash first.
func (f ObjectFormat) hashFile(file *os.File) (Hash, error) {
	fi, err := file.Stat()
	if err != nil {
		return Hash{}, err
	}
	w := f.newHash()
	if w == nil {
		return Hash{}, &UnsupportedError{What: "an object format that is not known"}
	}
	writeHeader(w, Blob, fi.Size())
	n, err := io.Copy(w, io.LimitReader(file, fi.Size()+1))
	if err != nil {
		return Hash{}, err
	}
	if n != fi.Size() {
		return Hash{}, fmt.Errorf("its size changed from %d while it was read", fi.Size())
	}
	return f.finish(w)
}

// newHash returns the hash function, nil for none. SHA-1 is the variant that
// detects the known collision attacks, as git's own is.
func (f ObjectFormat) newHash() hash.Hash {
	switch f {
	case SHA1:
		return sha1cd.New()
	case SHA256:
		return sha256.New()
	}
	return nil
}

func (f ObjectFormat) finish(w hash.Hash) (Hash, error) {
	if c, ok := w.(sha1cd.CollisionResistantHash); ok {
		sum, collision := c.CollisionResistantSum(nil)
		if collision {
			return Hash{}, fmt.Errorf("its content is a SHA-1 collision attack")
		}
		return rawHash(sum), nil
	}
	return rawHash(w.Sum(nil)), nil
}

// sum names an object of content that is in memory; the zero Hash, which
// equals no name, for no format and for a collision attack.
func (f ObjectFormat) sum(t ObjectType, content []byte) Hash {
	w := f.newHash()
	if w == nil {
		return Hash{}
	}
	writeHeader(w, t, int64(len(content)))
	w.Write(content) // a hash never fails
	h, err := f.finish(w)
	if err != nil {
		return Hash{}
	}
	return h
}

func writeHeader(w io.Writer, t ObjectType, size int64) {
	var buf [32]byte
	b := append(buf[:0], t.String()...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, size, 10)
	w.Write(append(b, 0)) // a hash never fails
}

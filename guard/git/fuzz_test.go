package git

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"strings"
	"testing"
)

func compress(content string) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(content)) // to memory
	_ = w.Close()
	return b.Bytes()
}

func FuzzReadLoose(f *testing.F) {
	f.Add(compress("blob 3\x00abc"))
	f.Add(compress("tree 0\x00"))
	f.Add(compress("blob 4\x00abc"))
	f.Add(compress("blob 2\x00abc"))
	f.Add(compress("blob 99999999999\x00abc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		typ, content, err := newInflater().readLoose(bytes.NewReader(data), "x")
		if (err == nil) != (typ != 0) || err != nil && content != nil {
			t.Fatalf("%v, %d bytes, %v", typ, len(content), err)
		}
	})
}

func FuzzPackEntry(f *testing.F) {
	f.Add([]byte{0x33}, int64(12))
	f.Add([]byte{0xe3, 0x01, 0x05}, int64(40))
	f.Add(append([]byte{0x73}, make([]byte, 20)...), int64(12))
	f.Fuzz(func(t *testing.T, data []byte, off int64) {
		if off < 12 {
			return
		}
		e, size, err := readEntryHeader(bytes.NewReader(data), off, SHA1)
		if err == nil && (size < 0 || e.kind == packOfsDelta && (e.baseOff < 0 || e.baseOff >= off)) {
			t.Fatalf("%+v of size %d at %d", e, size, off)
		}
	})
}

func FuzzPackIndex(f *testing.F) {
	head := make([]byte, 8+4*256)
	copy(head, "\xfftOc\x00\x00\x00\x02")
	for i := 1; i < 256; i++ {
		binary.BigEndian.PutUint32(head[8+4*i:], 1)
	}
	key := append([]byte{1}, make([]byte, 19)...)
	f.Add(append(append(head, key...), make([]byte, 8+40)...), key)
	f.Fuzz(func(t *testing.T, data, key []byte) {
		x := &packIndex{name: "x", r: bytes.NewReader(data), width: 20}
		if len(key) != 20 || x.readHead(int64(len(data))) != nil {
			return
		}
		h := rawHash(key)
		_, found, err := x.find(h)
		n := 0
		perr := x.prefixed(key, h.String()[:40], func(Hash) { n++ })
		if err == nil && perr == nil && found && n == 0 {
			t.Fatalf("find gives %v, prefixed %d", found, n)
		}
	})
}

func FuzzParseRef(f *testing.F) {
	for _, s := range []string{"ref: refs/heads/main\n", strings.Repeat("1", 40) + "\n", strings.Repeat("a", 64), "ref: ../x", "ref:HEAD"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, target, err := parseRef(data)
		if err != nil {
			return
		}
		if h.IsZero() == (target == "") && strings.Trim(string(data[:min(len(data), 40)]), "0") != "" {
			t.Fatalf("%q is both or neither: %v, %q", data, h, target)
		}
		if strings.Contains(target, "..") || strings.HasPrefix(target, "/") || strings.ContainsRune(target, 0) {
			t.Fatalf("target %q", target)
		}
	})
}

func FuzzWildmatch(f *testing.F) {
	f.Add("**/a*[!b-d]/?", "x/aye/z", false)
	f.Add("[[:alpha:]]\\*", "a*", true)
	f.Fuzz(func(t *testing.T, pattern, text string, fold bool) {
		if _, err := wildmatch(pattern, text, fold); err != nil && len(pattern)+len(text) < 10 {
			t.Fatal(err)
		}
		if ok, err := wildmatch("**", text, fold); err == nil && !ok {
			t.Fatalf("** does not match %q", text)
		}
	})
}

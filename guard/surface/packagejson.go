package surface

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// locators, at the end of a key, narrows a map of dependencies to the values
// that say themselves where the code comes from. An ordinary version range is
// resolved through the registry and the lock file, which is an entry of its
// own.
const locators = ".<locator>"

// maxDepth is how deeply a package.json may nest; nobody's does.
const maxDepth = 64

var errJSON = errors.New("malformed or ambiguous")

// packagePart returns the values of keys in content as canonical JSON. It
// answers false for what a reader might take differently: malformed,
// duplicate names, a byte order mark, broken Unicode.
func packagePart(keys []string, content []byte) (part []byte, ok bool) {
	top, err := parseObject(content)
	if err != nil {
		return nil, false
	}
	var out object
	for _, key := range keys {
		name, narrowed := strings.CutSuffix(key, locators)
		v, present := top.get(name)
		if !present {
			continue
		}
		if o, isObject := v.(object); isObject && (narrowed || unordered(name)) {
			if narrowed {
				o = slices.DeleteFunc(slices.Clone(o), func(m field) bool { return versionRange(m.value) })
			}
			if narrowed && len(o) == 0 {
				continue
			}
			slices.SortFunc(o, func(a, b field) int { return strings.Compare(a.name, b.name) })
			v = o
		}
		out = append(out, field{name, v})
	}
	slices.SortFunc(out, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return appendJSON(nil, out), true
}

// unordered are the objects in which the order of the names means nothing.
// In others it does: exports takes the first condition that holds.
func unordered(key string) bool {
	switch key {
	case "scripts", "bin", "config", "directories":
		return true
	}
	return false
}

// versionRange tells a version range or tag from whatever else npm accepts
// as a dependency: a path, an archive, an address, an alias.
func versionRange(v any) bool {
	s, ok := v.(string)
	if !ok || strings.HasPrefix(s, ".") {
		return false
	}
	low := strings.ToLower(s)
	for _, end := range []string{".tgz", ".tar", ".tar.gz"} {
		if strings.HasSuffix(low, end) {
			return false
		}
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || strings.ContainsRune(".-+~^<>=|*, ", r))
	}) < 0
}

// object keeps the order of the file, which a map would lose.
type object []field

type field struct {
	name  string
	value any
}

func (o object) get(name string) (any, bool) {
	for _, f := range o {
		if f.name == name {
			return f.value, true
		}
	}
	return nil, false
}

func parseObject(content []byte) (object, error) {
	if !utf8.Valid(content) {
		return nil, errJSON
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	v, err := parseValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errJSON
	}
	o, ok := v.(object)
	if !ok {
		return nil, errJSON
	}
	return o, nil
}

func parseValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errJSON
	}
	t, err := d.Token()
	if err != nil {
		return nil, errJSON
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return parseFields(d, depth)
		}
		list := []any{}
		for d.More() {
			v, err := parseValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, endOf(d)
	case string:
		if strings.ContainsRune(t, utf8.RuneError) {
			return nil, errJSON // the decoder's stand-in for half a surrogate pair
		}
	}
	return t, nil
}

func parseFields(d *json.Decoder, depth int) (any, error) {
	o := object{}
	seen := map[string]bool{}
	for d.More() {
		v, err := parseValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		name, ok := v.(string)
		if !ok || seen[name] || name == "__proto__" {
			return nil, errJSON
		}
		seen[name] = true
		if v, err = parseValue(d, depth+1); err != nil {
			return nil, err
		}
		o = append(o, field{name, v})
	}
	return o, endOf(d)
}

// endOf reads the bracket that closes a list or an object.
func endOf(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return errJSON
	}
	return nil
}

func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case object:
		b = append(b, '{')
		for i, f := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSON(b, f.name), ':')
			b = appendJSON(b, f.value)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, e)
		}
		return append(b, ']')
	default:
		text, err := json.Marshal(v) // a string, number, bool or nil: cannot fail
		if err != nil {
			return append(b, "null"...)
		}
		return append(b, text...)
	}
}

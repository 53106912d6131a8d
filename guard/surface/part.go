package surface

// ExecutablePart returns what of content a tool may execute, in a canonical
// form that is equal exactly when nothing that executes changed. whole says
// that part is content itself, because the entry has no structure or because
// the content is malformed.
func ExecutablePart(e Entry, path string, content []byte) (part []byte, whole bool) {
	return content, true
}

package integrity

import "golang.org/x/sys/unix"

// renameNoReplace renames within one directory and fails with EEXIST when
// there is something under the new name.
func renameNoReplace(dir int, from, to string) error {
	return unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
}

// renameExchange swaps two names of one directory at once.
func renameExchange(dir int, a, b string) error {
	return unix.Renameat2(dir, a, dir, b, unix.RENAME_EXCHANGE)
}

package git

import "fmt"

// NotRepoError says that a directory lies in no git work tree.
type NotRepoError struct{ Dir string }

func (e *NotRepoError) Error() string {
	return fmt.Sprintf("%q is not inside a git work tree", e.Dir)
}

// BareError says that a directory lies in a git directory or a bare
// repository, where there is no work tree to guard.
type BareError struct{ Dir string }

func (e *BareError) Error() string {
	return fmt.Sprintf("%q is a bare repository or a git directory and has no work tree", e.Dir)
}

// PointerError says that a file by which one git directory, or its work tree,
// names another is not believed.
type PointerError struct {
	File   string // the pointer: a gitfile, commondir, gitdir, symbolic link or core.worktree's file
	Target string // what it names, empty where it names nothing
	Why    string // the rest of a sentence that begins with File and Target
}

func (e *PointerError) Error() string {
	if e.Target == "" {
		return fmt.Sprintf("%q is not followed: %s", e.File, e.Why)
	}
	return fmt.Sprintf("%q names %q and is not followed: %s", e.File, e.Target, e.Why)
}

// UnsupportedError says that a repository uses something that is not read
// here, so that nothing can be said about it.
type UnsupportedError struct{ What string }

func (e *UnsupportedError) Error() string { return "the repository uses " + e.What }

// MissingError says that an object is not in the repository.
type MissingError struct{ Name string }

func (e *MissingError) Error() string { return fmt.Sprintf("no object %s in the repository", e.Name) }

// CorruptError says that something read does not have the form, or the name,
// that it must have.
type CorruptError struct {
	What string // object name, file
	Why  string
}

func (e *CorruptError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.What, e.Why) }

// TooLargeError says that an object is above the limit for content that is
// held in memory.
type TooLargeError struct {
	Name string
	Size int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("object %s has %d bytes, more than the limit of %d", e.Name, e.Size, int64(MaxObject))
}

// RevisionError says that a revision names no object, or more than one.
type RevisionError struct {
	Rev string
	Why string
}

func (e *RevisionError) Error() string { return fmt.Sprintf("revision %q: %s", e.Rev, e.Why) }

// ConfigError says where a configuration file does not parse.
type ConfigError struct {
	File string
	Line int
	Why  string
}

func (e *ConfigError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Why) }

// ExecError says that the git binary could not be run or refused.
type ExecError struct {
	Args   []string
	Exit   int // -1 when it did not start
	Stderr string
}

func (e *ExecError) Error() string {
	return fmt.Sprintf("git %q ended with %d: %s", e.Args, e.Exit, e.Stderr)
}

package seccomp

// Load puts every thread of the calling process under the program, for good,
// after setting no_new_privs. The caller runs it last before execve: from here
// on refused calls fail in this process too.
func Load(p []Instruction) error { return load(p) }

package seccomp

// Reviewed gives the decision about every call by number that is too new for
// libseccomp 2.5.4 to name. It is built at each call.
func Reviewed() []Call {
	return []Call{
		{Name: "uretprobe", Number: 335, Arch: "amd64", Allow: true, Why: "the kernel's own trampoline when root traces a program; from elsewhere it only kills the caller, and refused it would kill the traced one"},
		{Name: "uprobe", Number: 336, Arch: "amd64", Allow: true, Why: "the kernel's own trampoline when root traces a program, as uretprobe"},
		{Name: "cachestat", Number: 451, Allow: true, Why: "tells how much of an open file is cached, to those who may write it"},
		{Name: "fchmodat2", Number: 452, Allow: true, Why: "chmod by path, with the flag that libraries wanted; mounts and the broker judge it as chmod"},
		{Name: "map_shadow_stack", Number: 453, Allow: true, Why: "a hardware-guarded stack for threads, which hardens the caller"},
		{Name: "futex_wake", Number: 454, Allow: true, Why: "futex in three calls"},
		{Name: "futex_wait", Number: 455, Allow: true, Why: "futex in three calls"},
		{Name: "futex_requeue", Number: 456, Allow: true, Why: "futex in three calls"},
		{Name: "statmount", Number: 457, Errno: ENOSYS, Why: "reads mounts by number, also of other namespaces; libmount falls back to mountinfo"},
		{Name: "listmount", Number: 458, Errno: ENOSYS, Why: "lists mounts by number, also of other namespaces; libmount falls back to mountinfo"},
		{Name: "lsm_get_self_attr", Number: 459, Allow: true, Why: "reads the caller's own security label"},
		{Name: "lsm_set_self_attr", Number: 460, Errno: ENOSYS, Why: "changes the security label that the host gave the run"},
		{Name: "lsm_list_modules", Number: 461, Allow: true, Why: "names the security modules, which are public"},
		{Name: "mseal", Number: 462, Allow: true, Why: "makes memory of the caller immutable, which hardens it"},
		{Name: "setxattrat", Number: 463, Allow: true, Why: "setxattr with a directory descriptor: read-only mounts refuse both alike"},
		{Name: "getxattrat", Number: 464, Allow: true, Why: "getxattr with a directory descriptor"},
		{Name: "listxattrat", Number: 465, Allow: true, Why: "listxattr with a directory descriptor"},
		{Name: "removexattrat", Number: 466, Allow: true, Why: "removexattr with a directory descriptor: read-only mounts refuse both alike"},
		{Name: "open_tree_attr", Number: 467, Why: "open_tree and mount_setattr in one: copies a mount tree without its read-only flag"},
		{Name: "file_getattr", Number: 468, Allow: true, Why: "reads inode flags, as an ioctl does"},
		{Name: "file_setattr", Number: 469, Errno: ENOSYS, Why: "changes inode flags by path, a name-changing call that the broker does not judge; the ioctl on an open file remains"},
		{Name: "listns", Number: 470, Errno: ENOSYS, Why: "lists namespaces of the machine"},
		{Name: "rseq_slice_yield", Number: 471, Allow: true, Why: "gives back a time slice"},
	}
}

// Span is a run of call numbers, both ends in it.
type Span struct{ First, Last uint32 }

// Spans gives the numbers of an architecture that somebody has read: those
// libseccomp 2.5.4 names and those of [Reviewed]. Every other number gets
// ENOSYS, so that a kernel of tomorrow opens nothing.
func Spans(arch string) []Span {
	switch arch {
	case "amd64":
		// 335 and 336 are uprobes; up to 423 nothing else is assigned.
		return []Span{{0, 336}, {424, highestReviewed}}
	case "arm64":
		// 244 to 259 are left to architectures, and arm64 uses none; the gap
		// from 295 holds the calls with 64-bit times of 32-bit machines.
		return []Span{{0, 243}, {260, 294}, {424, highestReviewed}}
	}
	return nil
}

// highestReviewed is the last number of [Reviewed].
const highestReviewed = 471

package broker

// kind is what a brokered system call does.
type kind uint8

const (
	kindOpen kind = iota + 1
	kindMkdir
	kindMknod
	kindSymlink
	kindLink
	kindRename
	kindUnlink
	kindTruncate
	kindChmod
	kindFchmod
	kindUmask
	kindAbsent // answered ENOSYS by the program itself
)

// call is one row of the table of brokered system calls: its number on each
// architecture (-1: has none) and where its arguments are (-1: nowhere). One
// table drives both the program and the decoder, so they cannot disagree.
type call struct {
	name         string
	amd64, arm64 int32
	kind         kind
	dir0, path0  int8 // first name: descriptor and string
	dir1, path1  int8 // second name
	text         int8 // text of a symbolic link
	flags, mode  int8
	dev          int8   // device number, or length for truncate
	fixed        uint32 // flags the call implies
}

const (
	flagCreat     = 0o100
	flagTrunc     = 0o1000
	flagAccess    = 0o3
	flagPath      = 0o10000000
	flagTmpfile   = 0o20000000 // the bit alone, without O_DIRECTORY
	flagRemoveDir = 0x200
	flagFollow    = 0x400 // AT_SYMLINK_FOLLOW
	flagNoFollow  = 0x100 // AT_SYMLINK_NOFOLLOW
	flagEmpty     = 0x1000
)

// calls lists every system call that can bring a name into being, take one
// away, or open one for writing.
var calls = [...]call{
	{"open", 2, -1, kindOpen, -1, 0, -1, -1, -1, 1, 2, -1, 0},
	{"openat", 257, 56, kindOpen, 0, 1, -1, -1, -1, 2, 3, -1, 0},
	{"openat2", 437, 437, kindAbsent, -1, -1, -1, -1, -1, -1, -1, -1, 0}, // its flags are memory, a program cannot see them
	{"creat", 85, -1, kindOpen, -1, 0, -1, -1, -1, -1, 1, -1, flagCreat | flagTrunc | 1},
	{"mkdir", 83, -1, kindMkdir, -1, 0, -1, -1, -1, -1, 1, -1, 0},
	{"mkdirat", 258, 34, kindMkdir, 0, 1, -1, -1, -1, -1, 2, -1, 0},
	{"mknod", 133, -1, kindMknod, -1, 0, -1, -1, -1, -1, 1, 2, 0},
	{"mknodat", 259, 33, kindMknod, 0, 1, -1, -1, -1, -1, 2, 3, 0},
	{"link", 86, -1, kindLink, -1, 0, -1, 1, -1, -1, -1, -1, 0},
	{"linkat", 265, 37, kindLink, 0, 1, 2, 3, -1, 4, -1, -1, 0},
	{"symlink", 88, -1, kindSymlink, -1, 1, -1, -1, 0, -1, -1, -1, 0},
	{"symlinkat", 266, 36, kindSymlink, 1, 2, -1, -1, 0, -1, -1, -1, 0},
	{"rename", 82, -1, kindRename, -1, 0, -1, 1, -1, -1, -1, -1, 0},
	{"renameat", 264, 38, kindRename, 0, 1, 2, 3, -1, -1, -1, -1, 0},
	{"renameat2", 316, 276, kindRename, 0, 1, 2, 3, -1, 4, -1, -1, 0},
	{"unlink", 87, -1, kindUnlink, -1, 0, -1, -1, -1, -1, -1, -1, 0},
	{"unlinkat", 263, 35, kindUnlink, 0, 1, -1, -1, -1, 2, -1, -1, 0},
	{"rmdir", 84, -1, kindUnlink, -1, 0, -1, -1, -1, -1, -1, -1, flagRemoveDir},
	{"truncate", 76, 45, kindTruncate, -1, 0, -1, -1, -1, -1, -1, 1, 0},
	{"chmod", 90, -1, kindChmod, -1, 0, -1, -1, -1, -1, 1, -1, 0},
	{"fchmodat", 268, 53, kindChmod, 0, 1, -1, -1, -1, -1, 2, -1, 0},
	{"fchmodat2", 452, 452, kindChmod, 0, 1, -1, -1, -1, 3, 2, -1, 0},
	{"fchmod", 91, 52, kindFchmod, 0, -1, -1, -1, -1, -1, 1, -1, 0},
	{"umask", 95, 166, kindUmask, -1, -1, -1, -1, -1, -1, 0, -1, 0}, // only told: files are made with the caller's
}

// number returns the call's number on arch, or -1.
func (c *call) number(arch string) int32 {
	switch arch {
	case "amd64":
		return c.amd64
	case "arm64":
		return c.arm64
	}
	return -1
}

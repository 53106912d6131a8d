package broker

const (
	modeSticky     = 0o1000
	modeOtherWrite = 0o0002
	modeGroupWrite = 0o0020
	typeMask       = 0o170000
	typeFIFO       = 0o010000
	typeChar       = 0o020000
	typeDir        = 0o040000
	typeBlock      = 0o060000
	typeRegular    = 0o100000
	typeLink       = 0o120000
	typeSocket     = 0o140000
)

// sticky holds the kernel's fs.protected_* settings. The kernel applies them
// while it walks a path; the broker opens the last component by descriptor, so
// it has to apply them itself.
type sticky struct {
	symlinks, fifos, regular int
}

// owner is the part of a stat that these rules look at.
type owner struct {
	mode, uid uint32
}

// follow says whether uid may follow a symbolic link in a directory.
func (s sticky) follow(uid uint32, dir, link owner) bool {
	if s.symlinks == 0 || link.uid == uid {
		return true
	}
	const both = modeSticky | modeOtherWrite
	return dir.mode&both != both || dir.uid == link.uid
}

// open says whether uid may open an existing file of a directory with O_CREAT.
func (s sticky) open(uid uint32, dir, file owner) bool {
	level := 0
	switch file.mode & typeMask {
	case typeFIFO:
		level = s.fifos
	case typeRegular:
		level = s.regular
	default:
		level = 1
	}
	if dir.mode&modeSticky == 0 || level == 0 || file.uid == dir.uid || file.uid == uid {
		return true
	}
	if dir.mode&modeOtherWrite != 0 {
		return false
	}
	return dir.mode&modeGroupWrite == 0 || level < 2
}

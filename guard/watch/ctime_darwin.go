package watch

import (
	"io/fs"
	"syscall"
)

// changeTime returns the time of the last change of content or status, or 0.
func changeTime(info fs.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return st.Ctimespec.Nano()
}

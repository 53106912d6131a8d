package surface

import (
	"bytes"
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// bareWalk reads every directory in one thread and does nothing with the
// names but find the directories: what a walk cannot do without.
func bareWalk(b *testing.B, root string) {
	buf := make([]byte, 64<<10)
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		b.Fatal(err)
	}
	bareDir(b, fd, buf)
}

func bareDir(b *testing.B, fd int, buf []byte) {
	defer unix.Close(fd)
	var dirs []string
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil {
			b.Fatal(err)
		}
		if n == 0 {
			break
		}
		for rest := buf[:n]; len(rest) > 0; {
			size := int(binary.NativeEndian.Uint16(rest[16:]))
			name := rest[19:size]
			name = name[:bytes.IndexByte(name, 0)]
			if rest[18] == unix.DT_DIR && string(name) != "." && string(name) != ".." {
				dirs = append(dirs, string(name))
			}
			rest = rest[size:]
		}
	}
	for _, d := range dirs {
		sub, err := unix.Openat(fd, d, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			b.Fatal(err)
		}
		bareDir(b, sub, buf)
	}
}

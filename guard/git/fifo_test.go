package git

import "syscall"

func mkfifo(f *fixture, name string) {
	f.Helper()
	if err := syscall.Mkfifo(f.path(name), 0o600); err != nil {
		f.Fatal(err)
	}
}

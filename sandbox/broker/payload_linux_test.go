//go:build amd64 || arm64

package broker

import "fmt"

// payloadMain is the command of a run.
func payloadMain(role string) int {
	f, ok := map[string]func() error{}[role]
	if !ok {
		fmt.Println("no payload", role)
		return 98
	}
	if err := f(); err != nil {
		fmt.Println("payload:", err)
		return 1
	}
	return 0
}

package stage

import (
	"encoding/binary"
	"errors"
)

// Op is what one [Message] on the control socket says. The socket keeps
// message borders (SOCK_SEQPACKET); a closed one ends the run.
type Op uint8

// Messages from the stage, then those to it.
const (
	_          Op = iota
	OpFailed      // the stage could not enforce; Text says what, and nothing was run
	OpListener    // carries the listening socket; Value is its port
	OpTerminal    // carries the controlling side of the pseudo-terminal
	OpLandlock    // Value is the Landlock ABI in force, 0 for none
	OpStarted     // the command runs
	OpNotFound    // the command could not be started; Value is 126 or 127, Text says why
	OpStopped     // the command was stopped; Value is the signal
	OpBroker      // Value is 1 when the name guard is in force, else Text says why not
	OpRefused     // a name was refused; Text is the call, the path, the rule and the program, NUL between them
	OpExited      // the command ended; Value is its exit status as a shell gives it

	OpGo     // to the stage: the configuration is written
	OpSignal // to the stage: deliver signal Value to the command; Text "group" means its process group
)

// Message is one line of the talk between the supervisor and the stage.
type Message struct {
	Op    Op
	Value uint32
	Text  string
}

// maxMessage bounds a message; a longer text is cut.
const maxMessage = 4096

// Encode returns m as one packet.
func (m Message) Encode() []byte {
	b := make([]byte, 5, 5+len(m.Text))
	b[0] = byte(m.Op)
	binary.LittleEndian.PutUint32(b[1:], m.Value)
	b = append(b, m.Text...)
	if len(b) > maxMessage {
		b = b[:maxMessage]
	}
	return b
}

// DecodeMessage reads one packet.
func DecodeMessage(b []byte) (Message, error) {
	if len(b) < 5 || b[0] == 0 || Op(b[0]) > OpSignal {
		return Message{}, errors.New("malformed message on the control socket")
	}
	return Message{Op: Op(b[0]), Value: binary.LittleEndian.Uint32(b[1:]), Text: string(b[5:])}, nil
}

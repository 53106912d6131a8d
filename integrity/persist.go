package integrity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"agentguard/guard/surface"
)

// stateVersion is raised when a State is written otherwise than before.
const stateVersion = 1

// savedState and savedFile are the form in which the start of a run is kept,
// so that a later process can do the check that a crash prevented. Other than
// a manifest's text it has the protections. Paths and names of refs are quoted
// because JSON cannot hold any bytes.
type savedState struct {
	Version  int                    `json:"version"`
	WorkTree []savedFile            `json:"worktree"` // null when not taken
	Index    []savedFile            `json:"index"`
	Trees    map[string][]savedFile `json:"trees"`
}

type savedFile struct {
	Path       string             `json:"path"`
	Entry      string             `json:"entry"`
	Mode       uint32             `json:"mode"`
	Kind       string             `json:"kind"`
	Whole      string             `json:"whole"`
	Part       string             `json:"part"`
	Protection surface.Protection `json:"protection"`
	Trigger    string             `json:"trigger,omitempty"`
	Size       int64              `json:"size"`
	Perm       uint32             `json:"perm,omitempty"`
	Nlink      uint64             `json:"nlink,omitempty"`
}

// Save writes the state to a file, 0600, which is there whole or not at all.
// It belongs in the user's state directory.
func (s State) Save(name string) error {
	out := savedState{Version: stateVersion, WorkTree: saveFiles(s.WorkTree), Index: saveFiles(s.Index)}
	out.Trees = map[string][]savedFile{}
	for ref, m := range s.Trees {
		out.Trees[quote(ref)] = saveFiles(m)
	}
	data, err := json.Marshal(out)
	if err == nil {
		err = writeAtomic(name, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("saving the state: %w", err)
	}
	return nil
}

// LoadState reads what [State.Save] wrote.
func LoadState(name string) (State, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return State{}, fmt.Errorf("loading the state: %w", err)
	}
	s, err := decodeState(data)
	if err != nil {
		return State{}, fmt.Errorf("loading the state from %q: %w", name, err)
	}
	return s, nil
}

func decodeState(data []byte) (State, error) {
	var in savedState
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return State{}, err
	}
	if in.Version != stateVersion {
		return State{}, fmt.Errorf("version %d is not known, want %d", in.Version, stateVersion)
	}
	s := State{Trees: map[string]*Manifest{}}
	var err error
	if s.WorkTree, err = loadFiles(in.WorkTree); err != nil {
		return State{}, err
	}
	if s.Index, err = loadFiles(in.Index); err != nil {
		return State{}, err
	}
	for quoted, files := range in.Trees {
		ref, err := unquote(quoted)
		if err != nil {
			return State{}, err
		}
		if s.Trees[ref], err = loadFiles(files); err != nil {
			return State{}, err
		}
	}
	return s, nil
}

func saveFiles(m *Manifest) []savedFile {
	if m == nil {
		return nil
	}
	out := make([]savedFile, 0, len(m.files))
	for _, f := range m.files {
		out = append(out, savedFile{quote(f.Path), f.Entry, f.Mode, f.Kind.String(), f.Whole.String(), f.Part.String(),
			f.Protection, f.Trigger, f.Size, f.Perm, f.Nlink})
	}
	return out
}

func loadFiles(in []savedFile) (*Manifest, error) {
	if in == nil {
		return nil, nil
	}
	files := make([]File, 0, len(in))
	for _, s := range in {
		f := File{Entry: s.Entry, Mode: s.Mode, Protection: s.Protection, Trigger: s.Trigger,
			Size: s.Size, Perm: s.Perm, Nlink: s.Nlink}
		var err error
		if f.Path, err = unquote(s.Path); err != nil {
			return nil, err
		}
		if f.Kind, err = parseKind(s.Kind); err != nil {
			return nil, err
		}
		if f.Whole, err = parseSum(s.Whole); err != nil {
			return nil, err
		}
		if f.Part, err = parseSum(s.Part); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return NewManifest(files), nil
}

package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"agentguard/guard/surface"
	"agentguard/integrity"
)

// openDecision is a surface of the work tree that a run left and that nobody
// has decided about: it stays open, and every later run says so, until the
// state is approved, restored or changed again.
type openDecision struct {
	Path string `json:"path"` // on the host
	Kind uint8  `json:"kind"`
	Mode uint32 `json:"mode"`
	Part string `json:"part"`
}

func (w *Workspace) openFile() string { return filepath.Join(w.stateDir(), "undecided.json") }

func (w *Workspace) loadOpen() ([]openDecision, error) {
	data, err := os.ReadFile(w.openFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what earlier runs left: %w", err)
	}
	var list []openDecision
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, nil // written half: the manifest and check still judge it
	}
	return list, nil
}

// saveOpen keeps list, or nothing where it is empty.
func (w *Workspace) saveOpen(list []openDecision) error {
	if len(list) == 0 {
		if err := os.Remove(w.openFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return writeAtomic(w.openFile(), data, 0o600)
}

func decision(path string, f integrity.File) openDecision {
	return openDecision{Path: path, Kind: uint8(f.Kind), Mode: f.Mode, Part: f.Part.String()}
}

// stillOpen returns those of list that are as they were left and not approved.
// areas hold what is there now.
func (w *Workspace) stillOpen(list []openDecision, areas []*area) ([]openDecision, error) {
	var out []openDecision
	for _, d := range list {
		for _, a := range areas {
			if a.files == nil || !within(d.Path, a.dir) {
				continue
			}
			now := a.files.Get(a.judged(d.Path))
			if decision(d.Path, now) != d {
				break
			}
			now.Path, now.Protection = w.shown(d.Path), surface.Review
			ok, err := w.approvals().Approved(repoName(w.ID), now)
			if err != nil {
				return nil, fmt.Errorf("reading the approvals: %w", err)
			}
			if !ok {
				out = append(out, d)
			}
			break
		}
	}
	return out, nil
}

// judged is the other way round of path.
func (a *area) judged(path string) string {
	rel, err := filepath.Rel(a.dir, path)
	if err != nil {
		return path
	}
	if a.prefix != "" {
		return a.prefix + "/" + rel
	}
	return rel
}

// carryOn brings what earlier runs left into r, and keeps what is open now for
// the next one.
func (w *Workspace) carryOn(r *Report, after *afterwards) error {
	list, err := w.loadOpen()
	if err != nil {
		return err
	}
	if len(list) == 0 && len(r.Changes) == 0 {
		return nil
	}
	if list, err = w.stillOpen(list, after.now); err != nil {
		return err
	}
	told := func(path string) bool {
		return slices.ContainsFunc(r.Changes, func(c ChangeReport) bool { return c.Path == path })
	}
	list = slices.DeleteFunc(list, func(d openDecision) bool { return told(w.shown(d.Path)) })
	for _, d := range list {
		r.Earlier = append(r.Earlier, w.shown(d.Path))
	}
	for _, f := range after.findings {
		if f.Protection != surface.Note && slices.Contains(f.Places, integrity.PlaceWorkTree) && told(f.Shown) {
			list = append(list, decision(f.area.path(f.Path), f.New))
		}
	}
	return w.saveOpen(list)
}

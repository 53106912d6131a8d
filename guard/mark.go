package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"agentguard/guard/git"
	"agentguard/guard/surface"
	"agentguard/integrity"
)

// mark says that a run's end-of-run check is still owed. It is there from
// before the command starts until the check is done, held by a lock that ends
// with the process: a mark that nobody holds is a run that was killed.
type mark struct {
	name string
	lock *os.File
}

// record is a start in a form that outlives the process.
type record struct {
	Command string            `json:"command"`
	Began   string            `json:"began"`
	Areas   []recordedArea    `json:"areas"`
	Refs    map[string]string `json:"refs"`
	Index   bool              `json:"index"` // there was one
}

type recordedArea struct {
	Dir    string `json:"dir"`
	Prefix string `json:"prefix,omitempty"`
	Sum    string `json:"sum"` // a manifest's text
}

func (w *Workspace) marksDir() string { return filepath.Join(w.stateDir(), "running") }

// setMark writes what a later check needs and takes the lock.
func (w *Workspace) setMark(s *start, id string, r record) (*mark, error) {
	if err := privateDir(w.marksDir()); err != nil {
		return nil, err
	}
	data, err := s.encode(r)
	if err != nil {
		return nil, err
	}
	m := &mark{name: filepath.Join(w.marksDir(), id)}
	if s.index != nil {
		if err := os.WriteFile(m.name+".index", s.index, 0o600); err != nil {
			return nil, fmt.Errorf("writing the mark of this run: %w", err)
		}
	}
	f, err := os.OpenFile(m.name+".new", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("writing the mark of this run: %w", err)
	}
	m.lock = f
	_, err = f.Write(data)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		err = os.Rename(m.name+".new", m.name+".run")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing the mark of this run: %w", err), f.Close(), os.Remove(m.name+".new"))
	}
	return m, nil
}

// clear says that the check is done.
func (m *mark) clear() error {
	err := os.Remove(m.name + ".run")
	if e := os.Remove(m.name + ".index"); e != nil && !errors.Is(e, os.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return errors.Join(err, m.lock.Close())
}

func (s *start) encode(r record) ([]byte, error) {
	for _, a := range s.areas {
		var b strings.Builder
		if _, err := a.files.WriteTo(&b); err != nil {
			return nil, err
		}
		r.Areas = append(r.Areas, recordedArea{a.dir, a.prefix, b.String()})
	}
	r.Refs, r.Index = map[string]string{}, s.index != nil
	for name, h := range s.refs {
		r.Refs[name] = h.String()
	}
	return json.Marshal(r)
}

func decodeStart(data, index []byte, m *surface.Matcher) (*start, *record, error) {
	r := &record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, nil, err
	}
	s := &start{refs: map[string]git.Hash{}}
	if r.Index {
		s.index = index
	}
	for name, text := range r.Refs {
		h, err := parseHash(text)
		if err != nil {
			return nil, nil, err
		}
		s.refs[name] = h
	}
	for _, ra := range r.Areas {
		files, err := integrity.Read(strings.NewReader(ra.Sum))
		if err != nil {
			return nil, nil, err
		}
		s.areas = append(s.areas, &area{dir: ra.Dir, prefix: ra.Prefix, matcher: m, files: files})
	}
	return s, r, nil
}

func parseHash(text string) (git.Hash, error) {
	if text == "" {
		return git.Hash{}, nil // an unborn branch
	}
	return git.ParseHash(text)
}

// unfinished returns the marks that no living run holds, locked by this call.
func (w *Workspace) unfinished() ([]*mark, error) {
	entries, err := os.ReadDir(w.marksDir())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for unfinished runs: %w", err)
	}
	var out []*mark
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".run")
		if !ok {
			continue
		}
		m := &mark{name: filepath.Join(w.marksDir(), id)}
		f, err := os.OpenFile(m.name+".run", os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue // it ended just now
		}
		if err != nil {
			return nil, fmt.Errorf("looking for unfinished runs: %w", err)
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			_ = f.Close() // a run in progress
			continue
		}
		m.lock = f
		out = append(out, m)
	}
	return out, nil
}

// read returns what a mark recorded.
func (m *mark) read() (data, index []byte, err error) {
	if data, err = os.ReadFile(m.name + ".run"); err != nil {
		return nil, nil, err
	}
	index, err = os.ReadFile(m.name + ".index")
	if errors.Is(err, os.ErrNotExist) {
		return data, nil, nil
	}
	return data, index, err
}

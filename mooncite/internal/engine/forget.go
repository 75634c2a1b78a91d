package engine

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"localmcp/internal/fault"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
	"localmcp/mooncite/internal/source"
)

// Names and bounds of the tombstones' file.
const (
	forgottenName  = "forgotten.json"
	forgottenBytes = 16 << 20
)

// TombstonesPath is the file that changes whenever something is forgotten.
func TombstonesPath(places source.Places) string {
	return filepath.Join(places.StateDir, forgottenName)
}

// tombstones say what was taken out for good. They lie beside the index, so that a
// rebuild does not bring it back.
type tombstones struct {
	dir *safefile.Root

	mu       sync.RWMutex // guards what follows
	at       safefile.Identity
	sessions map[string]bool // qualified session ids
	spans    map[string]bool // evidence ids
}

type tombstoneFile struct {
	Version  int      `json:"version"`
	Sessions []string `json:"sessions"`
	Evidence []string `json:"evidence"`
}

// load reads the file if it changed since.
func (t *tombstones) load() error {
	info, err := t.dir.Stat(forgottenName)
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) {
		t.at, t.sessions, t.spans = safefile.Identity{}, nil, nil
		return nil
	}
	if err != nil {
		return t.unreadable(err)
	}
	if info.Identity == t.at {
		return nil
	}
	f, id, err := t.dir.Open(forgottenName)
	if err != nil {
		return t.unreadable(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, forgottenBytes+1))
	if err != nil {
		return t.unreadable(err)
	}
	var file tombstoneFile
	if err := json.Unmarshal(data, &file); err != nil || len(data) > forgottenBytes || file.Version != 1 {
		return fault.New(evidence.CodeState, "the list of forgotten text (%s in the state directory) is damaged", forgottenName).
			WithHint("restore it from a backup, or remove it and forget the text again")
	}
	t.at, t.sessions, t.spans = id, map[string]bool{}, map[string]bool{}
	for _, s := range file.Sessions {
		t.sessions[s] = true
	}
	for _, s := range file.Evidence {
		t.spans[s] = true
	}
	return nil
}

func (t *tombstones) unreadable(err error) error {
	return fault.Wrap(evidence.CodeState, err, "the list of forgotten text (%s in the state directory) cannot be read", forgottenName).
		WithHint("look at its owner and permissions")
}

// add stores one more tombstone. The writer's lock is held.
func (t *tombstones) add(session, span string) error {
	if err := t.load(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	file := tombstoneFile{Version: 1, Sessions: []string{}, Evidence: []string{}}
	for s := range t.sessions {
		file.Sessions = append(file.Sessions, s)
	}
	for s := range t.spans {
		file.Evidence = append(file.Evidence, s)
	}
	if session != "" && !t.sessions[session] {
		file.Sessions = append(file.Sessions, session)
	}
	if span != "" && !t.spans[span] {
		file.Evidence = append(file.Evidence, span)
	}
	slices.Sort(file.Sessions)
	slices.Sort(file.Evidence)
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	if len(data) > forgottenBytes {
		return fault.New(evidence.CodeState, "the list of forgotten text is full").WithHint("remove the histories' files themselves and run `mooncite rebuild`")
	}
	t.at = safefile.Identity{} // read anew next time
	if err := t.dir.WriteFileAtomic(forgottenName, append(data, '\n'), 0o600); err != nil {
		return fault.Wrap(evidence.CodeState, err, "the list of forgotten text (%s in the state directory) cannot be written", forgottenName).
			WithHint("look at the space and the permissions of the disk it is on; nothing was forgotten")
	}
	return nil
}

// Empty, Session and Evidence implement index.Forgotten.

// Empty reports whether nothing was ever forgotten.
func (t *tombstones) Empty() bool { return t.Len() == 0 }

// Len counts tombstones.
func (t *tombstones) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.sessions) + len(t.spans)
}

// within counts tombstones of the origin that a filter names, of all when it names none.
// What exactly was forgotten is not for an answer to tell.
func (t *tombstones) within(f *index.Filter) int {
	if f.Origin == "" {
		return t.Len()
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := 0
	for s := range t.sessions {
		if o, _, _, ok := evidence.ParseQualifiedSession(s); ok && o == f.Origin {
			n++
		}
	}
	for id := range t.spans {
		if l, ok := evidence.ParseLocator(id); ok && l.Origin == f.Origin {
			n++
		}
	}
	return n
}

// Session reports whether a whole session was forgotten.
func (t *tombstones) Session(o evidence.Origin, root, session string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.sessions) > 0 && t.sessions[evidence.QualifiedSession(o, root, session)]
}

// Evidence reports whether a span was forgotten.
func (t *tombstones) Evidence(id string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.spans[id]
}

// Locator reports whether the span of a citation was forgotten by its own id.
func (t *tombstones) Locator(l evidence.Locator) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for id := range t.spans {
		if k, ok := evidence.ParseLocator(id); ok && k == l {
			return true
		}
	}
	return false
}

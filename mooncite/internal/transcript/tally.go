package transcript

import "encoding/json"

// maxUnknown bounds the names kept of unknown record types.
const maxUnknown = 64

// A tally counts what a parser meets; it gives parsers their Damaged.
type tally struct{ n Counts }

func (t *tally) malformed() {
	t.n.Skipped++
	t.n.Malformed++
	t.n.Errors++
}

func (t *tally) duplicate() {
	t.n.Skipped++
	t.n.Errors++
}

func (t *tally) damaged(oversized bool) {
	if oversized {
		t.n.Skipped++
		t.n.Oversized++
		return
	}
	t.malformed()
}

func (t *tally) unknown(name string) {
	if len(name) > 64 {
		name = name[:64]
	}
	if _, ok := t.n.Unknown[name]; !ok && len(t.n.Unknown) >= maxUnknown {
		return
	}
	if t.n.Unknown == nil {
		t.n.Unknown = map[string]int64{}
	}
	t.n.Unknown[name]++
}

// stateVersion changes when a saved state of an earlier program would be read
// wrongly; such a state means reading the file anew.
const stateVersion = 2

// saveState and loadState keep a parser's state. They are not on the hot path.
func saveState(s any) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return b
}

func loadState(b []byte, to any, version *int) error {
	if json.Unmarshal(b, to) != nil || *version != stateVersion {
		return ErrRestart
	}
	return nil
}

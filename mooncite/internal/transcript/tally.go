package transcript

import (
	"encoding/json"
	"strings"
)

// Bounds of the names that are kept of unknown record types.
const (
	maxUnknown     = 64
	maxUnknownName = 64 // bytes
)

// A tally counts what a parser meets.
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

// unknown counts a record of a type nobody knows.
func (t *tally) unknown(name string) {
	if name == "" {
		name = "(none)"
	}
	name = clip(name, maxUnknownName)
	if _, ok := t.n.Unknown[name]; !ok && len(t.n.Unknown) >= maxUnknown {
		return
	}
	if t.n.Unknown == nil {
		t.n.Unknown = map[string]int64{}
	}
	t.n.Unknown[name]++
}

// clip cuts s to at most n bytes without breaking a character. What it cuts off is not
// kept in memory.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return strings.Clone(s[:n])
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

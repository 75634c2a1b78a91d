package state_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"localmcp/dodo/internal/ground/state"
)

// A power cut leaves the log as far as it was written, here cut at every length. What is
// lost is lost from the end, and the chain holds (ADR 0010).
func TestAuditAfterAPowerCut(t *testing.T) {
	const rows = 40
	dir := place(t)
	s := open(t, dir, nil)
	for i := range rows {
		must(t, s.Audit(t.Context(), state.Event{Request: fmt.Sprint(i), Tool: "t", Result: state.ResultOK}))
	}
	file := filepath.Join(dir, state.FileName)
	main, err := os.ReadFile(file)
	must(t, err)
	log, err := os.ReadFile(file + "-wal")
	must(t, err)
	const step = 3001 // bytes; no divisor of a page
	last, whole := 0, false
	for cut := 0; ; cut += step {
		cut = min(cut, len(log))
		after := place(t)
		must(t, os.WriteFile(filepath.Join(after, state.FileName), main, 0o600))
		must(t, os.WriteFile(filepath.Join(after, state.FileName+"-wal"), log[:cut], 0o600))
		r, err := state.Open(t.Context(), after, state.Options{})
		must(t, err)
		v := holds(t, r)
		if v.Rows < last || v.Rows > rows {
			t.Errorf("%d of %d bytes: %d rows, %d with fewer bytes", cut, len(log), v.Rows, last)
		}
		must(t, r.Audit(t.Context(), state.Event{Tool: "next", Result: state.ResultOK}))
		if next := holds(t, r); next.Rows != v.Rows+1 {
			t.Errorf("%d bytes: %d rows after one more", cut, next.Rows)
		}
		must(t, r.Close())
		if last = v.Rows; cut == len(log) {
			whole = v.Rows == rows
			break
		}
	}
	if !whole {
		t.Error("rows are missing though the log is whole")
	}
}

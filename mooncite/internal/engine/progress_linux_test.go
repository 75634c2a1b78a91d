package engine_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"localmcp/internal/op"
	"localmcp/mooncite/internal/engine"
)

// A caller that listens hears how far the first index is.
func TestProgress(t *testing.T) {
	places, _, _ := history(t, 4_000_000)
	e, err := engine.Open(context.Background(), places, engine.Options{Background: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var heard atomic.Int64
	total := 0.0
	set := op.NewSet(e.Ops()...)
	for range 1000 {
		if _, err := set.Run(t.Context(), op.Call{Op: engine.ToolRecall, Args: json.RawMessage(`{"query":"zeppelin"}`), Progress: func(done, all float64, _ string) {
			heard.Add(1)
			total = all
			if done > all {
				t.Errorf("%v of %v", done, all)
			}
		}}); err != nil {
			t.Fatal(err)
		}
		if heard.Load() > 0 {
			break
		}
	}
	if heard.Load() == 0 || total <= 0 {
		t.Errorf("heard %d times, of %v bytes", heard.Load(), total)
	}
}

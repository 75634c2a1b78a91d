package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/surface"
	"localmcp/internal/op"
)

// TestDiscoverSaysWhatACallDoes: the notes on the real operations are true of each.
func TestDiscoverSaysWhatACallDoes(t *testing.T) {
	discover := surface.Discover(services{}.catalogue())
	for name, want := range map[string]string{
		"run_command":      "Runs something",
		"schedule_propose": "Runs nothing and changes nothing: what it proposes waits",
		"fetch_url":        "Runs nothing, but reaches beyond this machine",
		"write_file":       "Changes files",
		"job_cancel":       "",
	} {
		b, err := discover.Bind(json.RawMessage(fmt.Sprintf(`{"operation":%q}`, name)))
		if err != nil {
			t.Fatal(err)
		}
		p, err := b.Prepare(t.Context(), contract.Call{})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := op.Encode(p.Done.Data)
		if err != nil {
			t.Fatal(err)
		}
		var d struct{ Notes []string }
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(d.Notes, "\n")
		if !strings.Contains(notes, want) || strings.Contains(notes, "Runs something") != (name == "run_command") {
			t.Errorf("%s: %s", name, notes)
		}
	}
}

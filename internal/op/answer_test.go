package op_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"localmcp/internal/op"
)

// What Encode writes must fit the schema New derived, zero values included.
func TestEncodeFitsSchema(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(sample(nil).OutputSchema(), &s); err != nil {
		t.Fatal(err)
	}
	full, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	title := "a\xffb <&>"
	for _, out := range []any{
		sampleOut{Outcome: "none"},
		sampleOut{Outcome: "found", Title: &title, Items: []inner{{"p", 1}}, Maybe: &inner{Path: "q"},
			Counts: map[string]int{"b": 1, "a": 2}, Raw: json.RawMessage(`{"x":1}`), Share: map[string]float64{"a": .5}},
		map[string]any{"code": "busy", "message": "m", "hint": "h"},
	} {
		data, err := op.Encode(out)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		if err := full.Validate(v); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
	data, _ := op.Encode(sampleOut{Outcome: "none", Title: &title})
	want := `{"outcome":"none","title":"a` + "\uFFFD" + `b <&>","items":[],"counts":{},"when":"0001-01-01T00:00:00Z"}`
	if d := cmp.Diff(want, string(data)); d != "" {
		t.Error(d)
	}
}

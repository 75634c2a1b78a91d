package mcptest_test

import (
	"context"
	"strings"
	"testing"

	"localmcp/internal/mcptest"
	"localmcp/internal/op"
)

type describedIn struct {
	Bytes  int      `json:"bytes" min:"1024" max:"8388608" doc:"How many."`
	Offset int      `json:"offset" min:"0"`
	Words  []string `json:"words" minItems:"1" maxItems:"20" minLength:"2" maxLength:"9"`
	Most   []string `json:"most,omitempty" maxItems:"7"`
	Text   string   `json:"text" minLength:"1"`
}

// Every bound of a schema is on the page, and numbers are written as people read them.
func TestDescribe(t *testing.T) {
	o := op.New(op.Spec{Name: "x", Title: "X", Doc: "D."}, func(context.Context, op.Call, describedIn) (struct{}, error) { return struct{}{}, nil })
	var b strings.Builder
	mcptest.Describe(t, &b, []op.Op{o})
	for _, row := range []string{
		"| `bytes` | integer | How many. 1024 to 8388608. |",
		"| `offset` | integer | At least 0. |",
		"| `words[]` | array of string | 1 to 20 items. Each 2 to 9 characters. |",
		"| `most[]` | array of string | At most 7 items. |",
		"| `text` | string | At least 1 characters. |",
	} {
		if !strings.Contains(b.String(), row+"\n") {
			t.Errorf("no row %s in\n%s", row, &b)
		}
	}
}

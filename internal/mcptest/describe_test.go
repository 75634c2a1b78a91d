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
	Note   string   `json:"note" default:""`
	Files  []struct {
		Path string `json:"path"`
		Mode string `json:"mode,omitempty"`
	} `json:"files,omitempty"`
}

type describedOut struct {
	Found int `json:"found"`
}

// Every bound of a schema is on the page, and what a caller must give; numbers are written as
// people read them.
func TestDescribe(t *testing.T) {
	o := op.New(op.Spec{Name: "x", Title: "X", Doc: "D."}, func(context.Context, op.Call, describedIn) (describedOut, error) { return describedOut{}, nil })
	var b strings.Builder
	mcptest.Describe(t, &b, []op.Op{o})
	for _, row := range []string{
		"| `bytes` | integer | Required. How many. 1024 to 8388608. |",
		"| `offset` | integer | Required. At least 0. |",
		"| `words[]` | array of string | Required. 1 to 20 items. Each 2 to 9 characters. |",
		"| `most[]` | array of string | At most 7 items. |",
		"| `text` | string | Required. At least 1 characters. |",
		"| `note` | string | Default `\"\"`. |",
		"| `files[]` | array of object |  |",
		"| `files[].path` | string | Required. |",
		"| `files[].mode` | string |  |",
		"| `found` | integer |  |",
	} {
		if !strings.Contains(b.String(), row+"\n") {
			t.Errorf("no row %s in\n%s", row, &b)
		}
	}
}

package mcpserve_test

import (
	"encoding/json"
	"strings"
	"testing"

	"localmcp/internal/mcptest"
)

// An independent client, strict about schemas, in both eras.
func TestInspector(t *testing.T) {
	for _, era := range []string{"legacy", "modern", "auto"} {
		t.Run(era, func(t *testing.T) {
			out := mcptest.Inspect(t, tinyCommand(t), "--protocol-era", era, "--method", "tools/list", "--strict", "--format", "json")
			var list struct {
				Result struct{ Tools []struct{ Name string } }
			}
			if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Result.Tools) != 3 {
				t.Errorf("%v: %s", err, out)
			}
			out = mcptest.Inspect(t, tinyCommand(t), "--protocol-era", era, "--method", "tools/call",
				"--tool-name", "long", "--tool-arg", "count=3000", "--format", "json")
			if !strings.Contains(out, "progressive_result") || !strings.Contains(out, "resource_link") {
				t.Errorf("%.500s", out)
			}
		})
	}
}

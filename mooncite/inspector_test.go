package main

import (
	"regexp"
	"slices"
	"testing"

	"localmcp/internal/mcptest"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/memory"
)

// An independent client connects in every era, finds nothing to say about our
// schemas, and gets an answer.
func TestInspector(t *testing.T) {
	mcptest.Inspector(t) // skips early when it is not installed
	w := sampleWorld(t)
	w.must(0, "rebuild")
	server := append([]string{"env", "-i"}, append(w.Environ(), w.path, "serve")...)
	w.must(0, "memory", "enable")
	for _, era := range []string{"legacy", "modern", "auto"} {
		t.Run(era, func(t *testing.T) {
			out := mcptest.Inspect(t, server, "--protocol-era", era, "--method", "tools/list", "--strict", "--format", "json")
			var names []string
			for _, tool := range decode[struct {
				Result struct{ Tools []struct{ Name string } }
			}](t, out).Result.Tools {
				names = append(names, tool.Name)
			}
			slices.Sort(names)
			want := []string{engine.ToolInspect, engine.ToolRecall, engine.ToolStatus, memory.ToolDelete, memory.ToolInspect, memory.ToolRecall, memory.ToolWrite}
			slices.Sort(want)
			if !slices.Equal(names, want) {
				t.Errorf("%v: %s", names, out)
			}
			// The one thing it has to say is a decision: a nullable member of an output.
			for _, rule := range regexp.MustCompile(`"rule":"[^"]*","severity":"[^"]*","schema":"[^"]*"`).FindAllString(out, -1) {
				if rule != `"rule":"type-union","severity":"warning","schema":"outputSchema"` {
					t.Errorf("the lint says %s", rule)
				}
			}
			out = mcptest.Inspect(t, server, "--protocol-era", era, "--method", "tools/call",
				"--tool-name", engine.ToolRecall, "--tool-arg", "query=ECONNRESET", "--format", "json")
			got := decode[struct {
				Result struct {
					IsError           bool
					StructuredContent engine.RecallOut
				}
			}](t, out)
			if got.Result.IsError || got.Result.StructuredContent.Outcome != engine.Matches {
				t.Errorf("%.2000s", out)
			}
		})
	}
}

package main

import (
	"regexp"
	"strings"
	"testing"

	"localmcp/internal/mcptest"
)

// A model that calls mooncite_recall, then mooncite_inspect with the first evidence id it
// was given, then says that it is done.
type model struct{ *mcptest.Model }

const (
	modelQuery  = "ECONNRESET"
	modelAnswer = "That was all I wanted to know."
)

func newModel(t *testing.T) model {
	return model{mcptest.NewModel(t, modelAnswer, func(tools, results []string) mcptest.Move {
		switch len(results) {
		case 0:
			return mcptest.Move{Name: mcptest.Named(tools, "mooncite_recall"), Args: map[string]any{"query": modelQuery}}
		case 1:
			return mcptest.Move{Name: mcptest.Named(tools, "mooncite_inspect"), Args: map[string]any{"evidence_id": evidencePattern.FindString(results[0])}}
		}
		return mcptest.Move{}
	})}
}

var evidencePattern = regexp.MustCompile(`mooncite:[a-z-]+:[0-9a-f]{24}:[0-9a-f]{24}:[0-9a-f]{24}:\d+`)

// asked wants the model to have got a recall with evidence and its verified text, and the
// client to have shown what it said at last.
func (m model) asked(t *testing.T, client ran) {
	t.Helper()
	tools, results, strange := m.Seen()
	if len(results) < 2 || !strings.Contains(results[0], modelQuery) || !strings.Contains(results[1], "verified") {
		t.Errorf("the tools %v answered the model %.3000q; requests it did not know: %v", tools, results, strange)
	}
	if client.status != 0 || !strings.Contains(client.stdout, modelAnswer) {
		t.Errorf("the client ends with %d and says %.3000s\n%.3000s", client.status, client.stdout, client.stderr)
	}
}

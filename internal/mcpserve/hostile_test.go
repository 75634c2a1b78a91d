package mcpserve_test

import (
	"strings"
	"testing"
	"time"

	"localmcp/internal/mcpserve"
)

// TestHTTPHiddenInitialize: however an initialize is written, no more sessions come of it than
// an owner may have.
func TestHTTPHiddenInitialize(t *testing.T) {
	for name, body := range map[string]string{
		"batch":     "[" + openSession + "]",
		"batch too": `[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}},` + openSession + "]",
		"twice":     strings.Replace(openSession, `"method"`, `"method":"ping","method"`, 1),
		"last":      strings.Replace(openSession, `}}}`, `}},"method":"ping"}`, 1),
		"escaped":   strings.Replace(openSession, `"method"`, `"m\u0065thod"`, 1),
		"capital":   strings.Replace(openSession, `"method"`, `"Method"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWeb(t, mcpserve.HTTPOptions{MaxOwned: 2})
			var ids []string
			for range 5 {
				res := w.send(t.Context(), "POST", body, "User", "ann", "MCP-Protocol-Version", "2025-03-26")
				if id := res.Header.Get("Mcp-Session-Id"); id != "" {
					ids = append(ids, id)
				}
			}
			live := 0
			for end := time.Now().Add(3 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				live = 0
				for _, id := range ids {
					if w.send(t.Context(), "POST", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "User", "ann", "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-03-26").StatusCode == 200 {
						live++
					}
				}
				if live <= 2 || time.Now().After(end) {
					break
				}
			}
			if live > 2 {
				t.Errorf("%d sessions", live)
			}
		})
	}
}

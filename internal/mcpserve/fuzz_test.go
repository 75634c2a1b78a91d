package mcpserve_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"localmcp/internal/mcpserve"
)

// safeBuffer is written by the server and read after it ended.
type safeBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// Whatever comes first, the session lives and answers what comes after.
func FuzzLines(f *testing.F) {
	for _, line := range []string{
		"", "{", "7", "[]", "[[]]", `[7,{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `{"jsonrpc":"2.0","method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":[]}`,
		`{"jsonrpc":"2.0","id":2,"method":"initialize"}`, `{"jsonrpc":"2.0","id":2,"method":"initialize","params":null}`,
		`{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{"_meta":7}}`,
		`{"jsonrpc":"2.0","id":3,"method":"server/discover","params":` + discover + `}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}`,
		`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"\u0000\ud800"}}`,
		`{"jsonrpc":"2.0","id":4,"result":{}}`, `{"jsonrpc":"2.0","id":4,"error":7}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		if strings.Contains(lines, `"last"`) || strings.Contains(lines, "slow") || strings.Contains(lines, "long") {
			t.Skip("the small server acts on these words; the seeds have none of them")
		}
		o := tiny()
		o.MaxFrame = 4096
		var out safeBuffer
		in := strings.NewReader(lines + "\n" + `{"jsonrpc":"2.0","id":"last","method":"ping"}`)
		if err := mcpserve.New(o).Serve(t.Context(), in, &out); err != nil {
			t.Fatal(err)
		}
		out.mu.Lock()
		defer out.mu.Unlock()
		if !strings.Contains(out.String(), `{"jsonrpc":"2.0","id":"last","result":{}}`) {
			t.Errorf("after %q: %s", lines, out.String())
		}
	})
}

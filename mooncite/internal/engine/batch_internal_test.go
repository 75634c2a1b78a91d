package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/index"
	"localmcp/mooncite/internal/source"
)

// Decision 2.1: a refresh publishes batches of sources, each source whole. A batch is full
// with the source that fills it.
func TestPublicationBatches(t *testing.T) {
	if batchText != 64<<20 {
		t.Errorf("a publication takes %d bytes of text", batchText)
	}
	const sources, turns, text = 6, 10, 400 // 4000 bytes of text a source
	for name, c := range map[string]struct {
		batch        int64
		publications int64
	}{
		"as it is":          {batchText, 1},
		"two fill a batch":  {2 * turns * text, 3},
		"one is more":       {1, sources},
		"two and a bit":     {2*turns*text + 1, 2},
		"all and no more":   {sources * turns * text, 1},
		"all but a byte":    {sources*turns*text - 1, 1},
		"five and one left": {5 * turns * text, 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := testenv.NewHome(t)
			for i := range sources {
				var b strings.Builder
				for k := range turns {
					fmt.Fprintf(&b, `{"type":"user","uuid":"%d-%d","sessionId":"s%d","cwd":"/w","timestamp":"2031-05-01T10:00:00.000Z","message":{"role":"user","content":%q}}`+"\n",
						i, k, i, strings.Repeat("amber ", 80)[:text-12]+fmt.Sprintf("%6d%6d", i, k))
				}
				h.Write(t, fmt.Sprintf(".claude/projects/-w/s%d.jsonl", i), b.String())
			}
			places, err := source.PlacesOf(h.Env())
			if err != nil {
				t.Fatal(err)
			}
			e, err := Open(t.Context(), places, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			e.batch = c.batch
			// One look only: files so young are looked at once more by the next.
			if f, err := e.fresh(t.Context(), time.Minute, false); err != nil || f.busy() {
				t.Fatalf("%v, or it takes too long", err)
			}
			if err := e.store.Read(t.Context(), func(s *index.Snapshot) error {
				if s.Number() != c.publications || len(s.Sources()) != sources || s.SpanCount() != sources*turns {
					t.Errorf("%d publications, want %d; %d sources, %d spans", s.Number(), c.publications, len(s.Sources()), s.SpanCount())
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

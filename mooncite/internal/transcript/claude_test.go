package transcript

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func typed(op, text string) string {
	return fmt.Sprintf(`{"type":"queue-operation","operation":"%s","content":"%s"}`, op, text)
}

// Turns that are typed and taken back while the model never speaks are all cited, once,
// and few of them are held.
func TestQueueIsBounded(t *testing.T) {
	for name, size := range map[string]int{"many": 10, "long": 50 << 10, "longer than is held": 300 << 10} {
		p, err := openClaude(claudeFile, nil)
		if err != nil {
			t.Fatal(err)
		}
		cited := map[string]int{}
		emit := func(_ *Record, e *Entry) error { cited[e.Spans[0].Text]++; return nil }
		at := int64(1)
		tell := func(line string) {
			if err := p.Record(&Record{Line: at, Start: at, End: at + 1, Bytes: []byte(line)}, emit); err != nil {
				t.Fatal(err)
			}
			at++
		}
		turns := 700
		if size > 1000 {
			turns = 40
		}
		for i := range turns {
			text := fmt.Sprintf("turn %d %s", i, strings.Repeat("x", size))
			tell(typed("enqueue", text))
			if i%2 == 0 {
				tell(typed("remove", text))
			}
			c := p.(*claudeParser)
			held := 0
			for _, h := range append(c.s.Queue[:len(c.s.Queue):len(c.s.Queue)], c.s.Removed...) {
				for _, s := range h.Entry.Spans {
					held += len(s.Text)
				}
			}
			if held > maxHeld || len(c.s.Queue)+len(c.s.Removed) > 2*maxQueue+maxHeld/400 {
				t.Fatalf("%s: %d bytes held in %d and %d turns", name, held, len(c.s.Queue), len(c.s.Removed))
			}
		}
		tell(typed("popAll", ""))
		tell(answered("a", "", "m"))
		delete(cited, "answer")
		if len(cited) != turns {
			t.Errorf("%s: %d of %d turns cited", name, len(cited), turns)
		}
		for text, n := range cited {
			if n != 1 {
				t.Errorf("%s: %.10s cited %d times", name, text, n)
			}
		}
	}
}

// A held turn keeps no more in memory than it says.
func TestHeldTurnsAreSmall(t *testing.T) {
	p, err := openClaude(claudeFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(typed("enqueue", "few words"+strings.Repeat(" ", 2<<20)+"<system-reminder>be brief</system-reminder>"))
	for i := range int64(40) {
		if err := p.Record(&Record{Line: i + 1, Bytes: line}, nil); err != nil {
			t.Fatal(err)
		}
	}
	line = nil
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 40<<20 {
		t.Errorf("%d MB are held", m.HeapAlloc>>20)
	}
	runtime.KeepAlive(p)
}

// The text of an operation is read once, however many turns wait.
func TestQueueReadsTextOnce(t *testing.T) {
	p, err := openClaude(claudeFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(100) {
		if err := p.Record(&Record{Line: i + 1, Bytes: []byte(typed("enqueue", fmt.Sprint("turn ", i)))}, nil); err != nil {
			t.Fatal(err)
		}
	}
	line := []byte(typed("popAll", strings.Repeat("x", 4<<20)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := p.Record(&Record{Line: 101, Bytes: line}, nil); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
		t.Errorf("%d MB allocated", n>>20)
	}
}

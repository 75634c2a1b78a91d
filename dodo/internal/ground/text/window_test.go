package text_test

import (
	"strings"
	"testing"

	"localmcp/dodo/internal/ground/text"
)

func read(t *testing.T, file string, q text.Query) text.Window {
	t.Helper()
	w, err := text.Read(t.Context(), strings.NewReader(file), int64(len(file)), q)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestLines(t *testing.T) {
	w := read(t, "a\r\nb\nc", text.Query{StartLine: 2, EndLine: 9, CountBytes: 100, Numbered: true})
	if w.Content != "     2\tb\n     3\tc" || w.StartLine != 2 || w.EndLine != 3 || w.TotalLines != 3 || !w.Partial || w.NextOffset != -1 {
		t.Errorf("%+v", w)
	}
	w = read(t, "a\nb\nc\n", text.Query{TailLines: 2})
	if w.Content != "b\nc\n" || w.StartByte != 2 || w.TotalLines != -1 {
		t.Errorf("%+v", w)
	}
}

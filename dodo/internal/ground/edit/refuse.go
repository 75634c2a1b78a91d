package edit

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// What a refusal shows at most.
const (
	maxMatches = 50  // matches with their lines
	maxPreview = 160 // bytes of one line
)

// A Match is a place where the text to find is.
type Match struct {
	Line    int    `json:"line"`    // the first it covers, from 1
	Preview string `json:"preview"` // that line of the file, cut to 160 bytes
}

// refuse says why the places are not those that the edit expects; nil when they are. text
// is the file before the first edit.
func (a *attempt) refuse(index int, text []byte) error {
	want := max(a.edit.ExpectedCount, 1)
	if a.count == 0 {
		f := fault.New(contract.AmbiguousEdit, "the text to find is not in the file").
			With("editIndex", index).With("expected", want).With("found", 0)
		return a.explainAbsence(f, index, text)
	}
	if a.edit.ReplaceAll {
		return nil
	}
	if a.count != want {
		f := fault.New(contract.AmbiguousEdit, "the text to find is there %d times, expected was %d", a.count, want).
			WithHint("add lines around it until only the meant place fits, or set replaceAll to change every place")
		return a.show(f, index, want, a.count, a.firsts)
	}
	for i := a.finder.next(a.seen.text, 0); i >= 0; i = a.finder.next(a.seen.text, i+len(a.finder.find)) {
		if over := a.finder.overlap(a.seen.text, i); over >= 0 {
			f := fault.New(contract.AmbiguousEdit, "the text to find is there at places that overlap").
				WithHint("add what stands before or behind it until only the meant place fits")
			return a.show(f, index, want, want+1, []int{i, over})
		}
	}
	return nil
}

// show adds the matches to a refusal.
func (a *attempt) show(f *fault.Error, index, want, found int, places []int) error {
	list := make([]Match, len(places))
	line, at := 1, 0
	for k, i := range places {
		line += bytes.Count(a.seen.text[at:i], []byte{'\n'})
		at = i
		list[k] = Match{Line: line, Preview: preview(lineAt(a.seen.text, i))}
	}
	return f.With("editIndex", index).With("expected", want).With("found", found).With("matches", list)
}

// lineAt is the line that a place is in, without its end.
func lineAt(text []byte, i int) []byte {
	start := bytes.LastIndexByte(text[:i], '\n') + 1
	// A place in an endless line shows what stands at it.
	if i-start > maxPreview/2 {
		start = i - maxPreview/4
		for start < i && !utf8.RuneStart(text[start]) {
			start++
		}
	}
	end := bytes.IndexByte(text[i:], '\n')
	if end < 0 {
		return text[start:]
	}
	return text[start : i+end]
}

// preview cuts a line to what is shown, between characters.
func preview(line []byte) string {
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if len(line) <= maxPreview {
		return strings.ToValidUTF8(string(line), "\ufffd")
	}
	n := maxPreview
	for n > 0 && !utf8.RuneStart(line[n]) {
		n--
	}
	return strings.ToValidUTF8(string(line[:n]), "\ufffd")
}

package engine

import (
	"bytes"
	"strings"

	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
	"localmcp/mooncite/internal/transcript"
)

// Bounds of what is looked at behind the last complete lines of source files.
const (
	tailBytes = 256 << 10
	tailFiles = 64
)

// jsonBreaks are line breaks and tabs as JSON strings hold them; left alone they would
// stick to the word behind them.
var jsonBreaks = strings.NewReplacer(`\n`, " ", `\r`, " ", `\t`, " ")

// unfinished reports whether text behind the last complete line of a source could be
// an answer. Such text is no record yet, so it is not indexed; but a word that stands
// there is not absent.
func (p *recallPlan) unfinished(v *view, j *judge) bool {
	looked := 0
	for _, src := range v.sources {
		f := transcript.File{Origin: src.Origin, Rel: src.Rel}
		n := src.Identity.Size - src.At.Offset
		if n <= 0 || !src.Present || src.Fault != "" || p.filter.Origin != "" && p.filter.Origin != src.Origin || transcript.ShapeOf(f) != transcript.Lines {
			continue
		}
		if looked++; looked > tailFiles || n > tailBytes {
			return true // nobody looked
		}
		if tail, ok := v.tail(src, n); !ok || j.holdsAny(tail) {
			return true
		}
	}
	return false
}

// tail reads what stands behind a source's admitted bytes.
func (v *view) tail(src *index.Source, n int64) (string, bool) {
	file, err := v.e.openSource(v.fresh, src)
	if err != nil {
		return "", false
	}
	defer file.Close()
	b, err := file.Range(src.At.Offset, src.At.Offset+n)
	return jsonBreaks.Replace(string(b)), err == nil
}

// holdsAny reports whether a text holds any of the query's terms.
func (j *judge) holdsAny(text string) bool {
	j.buf, _ = j.tokens.Document(append(j.buf[:0], ' '), text)
	j.buf = append(j.buf, ' ')
	for _, needles := range j.needles {
		for _, needle := range needles {
			if needle != nil && bytes.Contains(j.buf, needle) {
				return true
			}
		}
	}
	return false
}

// narrowed reports whether the query has any filter.
func (p *recallPlan) narrowed() bool {
	f := &p.filter
	return f.Role != "" || f.Origin != "" || f.Project != 0 || f.Units != nil || f.After != evidence.NoTime || f.Before != evidence.NoTime
}

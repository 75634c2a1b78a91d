package memory

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"localmcp/internal/fault"
	"localmcp/internal/op"
	"localmcp/mooncite/internal/evidence"
)

// Bounds of texts, in UTF-8 bytes. A schema can say the same numbers in characters only,
// so that the descriptions say bytes. A query is kept nowhere: it has 2000 characters, as
// its schema says, of up to four bytes.
const (
	maxInterpretation = 8192
	maxQuery          = 4 * 2000
	maxNote           = 2048
	maxReason         = 1024
	maxName           = 80
	maxDescription    = 2048
	maxInstructions   = 16384
)

// A field is one text of a request.
type field struct {
	name  string
	max   int
	lines bool // line feeds and tabs may stand in it (decision 2.10)
}

// clean trims a text and refuses what is empty or shows nothing, is too long, or holds a
// character that moves or hides what stands around it, or says something that nobody sees
// (the tags of Unicode). Line breaks of other systems become LF.
func (f field) clean(s string) (string, error) {
	if f.lines {
		s = strings.ReplaceAll(s, "\r\n", "\n")
	}
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return "", refuse("%s is empty", f.name)
	case !utf8.ValidString(s):
		return "", refuse("%s is not valid UTF-8", f.name)
	case len(s) > f.max:
		return "", refuse("%s has %d bytes, and at most %d are taken", f.name, len(s), f.max)
	}
	if strings.TrimFunc(s, invisible) == "" {
		return "", refuse("%s shows nothing", f.name)
	}
	for _, r := range s {
		if r >= 0xe0000 && r <= 0xe007f {
			return "", refuse("%s holds the invisible character U+%04X", f.name, r)
		}
		if !evidence.IsControl(r) || f.lines && (r == '\n' || r == '\t') {
			continue
		}
		if r == '\n' || r == '\t' {
			return "", refuse("%s must be one line without tabs", f.name)
		}
		return "", refuse("%s holds the control character U+%04X", f.name, r)
	}
	return s, nil
}

// invisible reports whether a character leaves no mark: spaces, formats, and the fillers that
// count as letters.
func invisible(r rune) bool {
	return unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == 0x2800
}

// refuse is a fault of a request that no retry mends.
func refuse(format string, args ...any) *fault.Error {
	return fault.New(op.InvalidArgument, format, args...)
}

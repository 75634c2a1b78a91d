package edit

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Bounds of a diff that is shown.
const (
	MaxDiff      = 16 << 10 // bytes shown when the caller names no bound
	maxDiffInput = 2 << 20  // bytes of both sides together
	maxDiffLines = 100_000  // of both sides together
)

// Diff shows what changed, as a unified diff with three lines of context, at most max
// bytes of it (0: MaxDiff), cut behind a line. before is nil for a file that is created and
// after for one that is deleted. truncated says that the text is not all: it was cut, or
// the files are above 2 MiB or 100,000 lines together and there is none. Of what is not text, one
// line says that it differs. The diff need not be the smallest one.
func Diff(path string, before, after []byte, max int) (text string, truncated bool) {
	if max <= 0 {
		max = MaxDiff
	}
	if len(before)+len(after) > maxDiffInput {
		return "", true
	}
	from, to := quoted("a/"+path), quoted("b/"+path)
	if before == nil {
		from = devNull
	}
	if after == nil {
		to = devNull
	}
	b, _, err1 := decode(before, "")
	a, _, err2 := decode(after, "")
	if err1 != nil || err2 != nil {
		return "Binary files " + from + " and " + to + " differ\n", false
	}
	if bytes.Count(b, crlf[1:])+bytes.Count(a, crlf[1:]) > maxDiffLines {
		return "", true
	}
	old := string(b)
	text, err := udiff.ToUnified(from, to, old, udiff.Lines(old, string(a)), udiff.DefaultContextLines)
	if err != nil {
		return "", true
	}
	if len(text) <= max {
		return text, false
	}
	return text[:strings.LastIndexByte(text[:max], '\n')+1], true
}

// quoted writes a name as git does: in quotes when it holds what would end or change it.
func quoted(name string) string {
	plain := true
	for _, c := range []byte(name) {
		if c < 0x20 || c == 0x7f || c == '"' || c == '\\' {
			plain = false
		}
	}
	if plain {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(name) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c == 0x7f:
			b.WriteByte('\\')
			o := strconv.FormatUint(uint64(c), 8)
			b.WriteString("000"[len(o):] + o)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

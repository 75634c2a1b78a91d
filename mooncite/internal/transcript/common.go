package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"localmcp/mooncite/internal/evidence"
)

// ProjectID is the identity of a project: the digest of its normalised path or
// title, with a readable label taken from labelSource. Nobody can turn it back
// into a path.
func ProjectID(value, labelSource string) string {
	v := normalPath(value)
	sum := sha256.Sum256([]byte("project-identity-v2\x00" + v))
	return "project:" + projectLabel(labelSource) + "-" + hex.EncodeToString(sum[:])[:16]
}

func normalPath(s string) string {
	s = strings.ReplaceAll(s, `\`, "/")
	for strings.Contains(s, "//") {
		s = strings.ReplaceAll(s, "//", "/")
	}
	s = strings.TrimSuffix(s, "/")
	if s == "" {
		return "root"
	}
	return s
}

// projectLabel is the last part of a path made fit for an identifier: at most 64
// UTF-16 units, then percent-encoded.
func projectLabel(src string) string {
	s := normalPath(src)
	s = s[strings.LastIndexByte(s, '/')+1:]
	var b strings.Builder
	dash := false
	for _, r := range norm.NFKC.String(s) {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || r == '.' || r == '_' || r == '-' {
			b.WriteRune(r)
			dash = false
		} else if !dash {
			b.WriteByte('-')
			dash = true
		}
	}
	s = strings.Trim(b.String(), "-")
	units := 0
	for i, r := range s {
		n := 1
		if r > 0xffff {
			n = 2
		}
		if units+n > 64 {
			s = s[:i]
			break
		}
		units += n
	}
	if s == "" {
		s = "root"
	}
	return evidence.EscapeComponent(s)
}

// ParseTime reads the timestamp of a JSONL record: YYYY-MM-DDThh:mm:ss[.fraction]
// with Z or a numeric offset. Anything else gives evidence.NoTime.
func ParseTime(s string) int64 {
	if len(s) < 20 || len(s) > 64 || s[10] != 'T' {
		return evidence.NoTime
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return evidence.NoTime
	}
	return t.UnixMilli()
}

// lineID is the entry id of a record that has none of its own: its line and the
// beginning of its digest.
func lineID(line int64, sum [8]byte) string {
	b := append(make([]byte, 0, 48), "line-"...)
	b = append(strconv.AppendInt(b, line, 10), '-')
	return string(hex.AppendEncode(b, sum[:]))
}

// A spanner collects the spans of one entry, out of texts that are valid UTF-8, as
// [value.str] makes them. Text the earlier program indexed too
// is added with dialogue and comes first, so that its ordinals stay; kinds of span
// that are new are added with extra and count on after it (decision 2.7).
type spanner struct{ old, new, hidden []Span }

// dialogue adds a text value, cut as the earlier program cut it.
func (s *spanner) dialogue(text string, role evidence.Role, class evidence.Class) {
	s.old = chunk(s.old, text, Span{Role: role, Class: class})
}

// toolOld adds tool output that the earlier program indexed (Pi and OMP).
func (s *spanner) toolOld(text string, role evidence.Role) {
	s.old = s.headTail(s.old, text, Span{Role: role, Class: evidence.ToolTraffic})
}

// toolInput adds one argument of a tool call.
func (s *spanner) toolInput(text string) {
	s.new = s.headTail(s.new, text, Span{Role: evidence.Assistant, Kind: evidence.KindToolInput, Class: evidence.ToolTraffic})
}

// toolOutput adds one tool result.
func (s *spanner) toolOutput(text string, role evidence.Role) {
	s.new = s.headTail(s.new, text, Span{Role: role, Kind: evidence.KindToolOutput, Class: evidence.ToolTraffic})
}

// extra adds any other new kind of span.
func (s *spanner) extra(text string, role evidence.Role, kind string, class evidence.Class) {
	s.new = chunk(s.new, text, Span{Role: role, Kind: kind, Class: class})
}

// cut says that the entry has text that was not taken.
func (s *spanner) cut(role evidence.Role) {
	s.hidden = append(s.hidden, Span{Role: role, Class: evidence.ToolTraffic, Hidden: true})
}

// spans returns all spans in ordinal order, hidden ones last.
func (s *spanner) spans() []Span {
	if len(s.new) == 0 && len(s.hidden) == 0 {
		return s.old
	}
	return append(append(s.old, s.new...), s.hidden...)
}

// headTail adds the whole of a short text, else its head and its tail as two
// spans, each contiguous in the record, and the middle as hidden ones.
func (s *spanner) headTail(to []Span, text string, like Span) []Span {
	if len(text) <= evidence.MaxToolBytes {
		return chunk(to, text, like)
	}
	const half = evidence.MaxToolBytes / 2
	h, t := half, len(text)-half
	for h > 0 && !utf8.RuneStart(text[h]) {
		h--
	}
	for t < len(text) && !utf8.RuneStart(text[t]) {
		t++
	}
	middle, rest := text[h:t], false
	if len(middle) > evidence.MaxHiddenBytes {
		middle, rest = middle[:evidence.MaxHiddenBytes], true
	}
	like.Hidden = true
	// Cloned, so that a small span does not keep a large record in memory.
	s.hidden = chunk(s.hidden, strings.Clone(strings.ToValidUTF8(middle, "")), like)
	if rest {
		s.hidden = append(s.hidden, Span{Role: like.Role, Kind: like.Kind, Class: like.Class, Hidden: true})
	}
	like.Hidden = false
	return chunk(chunk(to, strings.Clone(text[:h]), like), strings.Clone(text[t:]), like)
}

// chunk adds text as spans of at most evidence.MaxSpanBytes escaped bytes. A value
// that is only white space gives none; line breaks alone do give one, because the
// earlier program saw them as visible escapes and its ordinals must hold.
func chunk(to []Span, text string, like Span) []Span {
	if len(text) <= evidence.MaxSpanBytes/6 { // cannot exceed the bound however it is escaped
		if !blank(text) {
			like.Text = text
			to = append(to, like)
		}
		return to
	}
	if blank(text) {
		return to
	}
	start, size := 0, 0
	for i, r := range text {
		n := evidence.EscapedLen(r)
		if size+n > evidence.MaxSpanBytes {
			if part := text[start:i]; !blank(part) {
				like.Text = part
				to = append(to, like)
			}
			start, size = i, 0
		}
		size += n
	}
	if part := text[start:]; !blank(part) {
		like.Text = part
		to = append(to, like)
	}
	return to
}

// blank reports whether s is empty once ECMAScript white space is trimmed from its
// escaped form: control characters count as visible.
func blank(s string) bool {
	for _, r := range s {
		switch {
		case r == ' ', r == 0xa0, r == 0xfeff, r == 0x1680, r >= 0x2000 && r <= 0x200a, r == 0x202f, r == 0x205f, r == 0x3000:
		default:
			return false
		}
	}
	return true
}

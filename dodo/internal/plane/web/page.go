package web

import (
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"localmcp/dodo/internal/ground/text"
	"localmcp/internal/op"
)

const (
	longestType = 200 // bytes of a content type that are shown
	aroundText  = 512 // bytes of an answer that stand beside its text and its addresses
)

// kind takes a content type apart.
func (p page) kind() (media string, params map[string]string) {
	media, params, err := mime.ParseMediaType(p.contentType)
	if err != nil {
		media, _, _ = strings.Cut(strings.ToLower(p.contentType), ";")
	}
	return strings.TrimSpace(media), params
}

// isText reports whether a page has text: by what its bytes are, and where they do not tell,
// by what it is said to be.
func (p page) isText() bool {
	if p.packed {
		return false
	}
	media, params := p.kind()
	for _, other := range []string{"image/", "audio/", "video/", "font/"} {
		if strings.HasPrefix(media, other) && media != "image/svg+xml" {
			return false
		}
	}
	k := text.Detect(p.body[:min(len(p.body), text.HeadBytes)], !p.cut && len(p.body) <= text.HeadBytes)
	switch {
	case k.Binary: // UTF-16 without its mark looks so, too
		return strings.HasPrefix(strings.ToLower(params["charset"]), "utf-16")
	case k.Encoding == "":
		return textual(media)
	}
	return true
}

// textual reports whether a kind is that of text, whatever its encoding.
func textual(media string) bool {
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+xml") || strings.HasSuffix(media, "+json") ||
		media == "application/json" || media == "application/xml" || media == "application/javascript"
}

// text is what a page says, with nothing in it that is not seen.
func (p page) text() string {
	said := p.decode()
	media, _ := p.kind()
	if media == "text/html" || media == "application/xhtml+xml" || media == "" && looksHTML(said) {
		return text.Visible(readable(said, p.url))
	}
	return text.Visible(strings.ReplaceAll(said, "\r\n", "\n"))
}

// looksHTML reports whether a page that does not say what it is begins like HTML.
func looksHTML(s string) bool {
	s = strings.ToLower(strings.TrimSpace(s[:min(len(s), 512)]))
	return strings.HasPrefix(s, "<!doctype html") || strings.HasPrefix(s, "<html")
}

// decode makes UTF-8 of a page. What is valid UTF-8 is taken for that unless the host says
// otherwise. Bytes that mean nothing become U+FFFD.
func (p page) decode() string {
	b := p.body
	e, name, certain := charset.DetermineEncoding(b, p.contentType)
	if p.cut && (name == "utf-8" || !certain) {
		b = whole(b)
	}
	if !certain && utf8.Valid(b) && name != "iso-2022-jp" { // whose bytes are all ASCII
		name = "utf-8"
	}
	if name == "utf-8" {
		return strings.TrimPrefix(strings.ToValidUTF8(string(b), "\ufffd"), "\ufeff")
	}
	decoded, err := e.NewDecoder().Bytes(b)
	if err != nil {
		return strings.ToValidUTF8(string(b), "\ufffd")
	}
	return strings.TrimPrefix(string(decoded), "\ufeff")
}

// whole is b without a character at its end that is cut.
func whole(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// shown is a short text from outside, cut.
func shown(s string, most int) string {
	s = text.Visible(s)
	if len(s) > most {
		s = string(whole([]byte(s[:most])))
	}
	return s
}

// fit cuts a text to what has room as JSON, at the end of a line when one is near.
func fit(s string, room int) (string, bool) {
	if op.EncodedLen(s) <= room {
		return s, false
	}
	least, most := 0, min(len(s), max(room, 0))
	for least < most { // the largest beginning that has room
		mid := (least + most + 1) / 2
		if op.EncodedLen(s[:mid]) <= room {
			least = mid
		} else {
			most = mid - 1
		}
	}
	s = string(whole([]byte(s[:least])))
	if i := strings.LastIndexByte(s, '\n'); i > len(s)-len(s)/10 {
		s = s[:i+1]
	}
	return s, true
}

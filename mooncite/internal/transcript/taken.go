package transcript

import (
	"bytes"
	"unicode/utf8"

	"localmcp/mooncite/internal/evidence"
)

// toolText gives the text of a tool's argument or result to add; of a very large one
// the parts that headTail takes, without making a string of all of it. Base64 gives
// nothing.
func toolText(v value, add func(string)) {
	if !v.isString() || isBase64(v[1:len(v)-1]) {
		return
	}
	if len(v)-2 <= evidence.MaxToolBytes {
		add(v.str())
		return
	}
	b := unescape(make([]byte, 0, len(v)-2), v[1:len(v)-1])
	const ends = evidence.MaxToolBytes / 2
	const middle = evidence.MaxHiddenBytes + 2*utf8.UTFMax // a little too much: headTail sees that more was there
	if len(b) > 2*ends+middle {
		h, t := ends+middle, len(b)-ends
		for h > 0 && !utf8.RuneStart(b[h]) {
			h--
		}
		for t < len(b) && !utf8.RuneStart(b[t]) {
			t++
		}
		b = append(b[:h], b[t:]...)
	}
	add(string(b))
}

// isBase64 reports whether the inside of a JSON string is encoded bytes rather
// than text: long, and without anything but base64 digits where it begins.
func isBase64(s []byte) bool {
	if bytes.HasPrefix(s, []byte("data:")) {
		k := bytes.IndexByte(s[:min(len(s), 128)], ',')
		return k > 0 && bytes.Contains(s[:k], []byte(";base64"))
	}
	const enough = 512
	if len(s) < enough {
		return false
	}
	for i := 0; i < enough; i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/', c == '=', c == '-', c == '_':
		case c == '\\' && i+1 < enough && (s[i+1] == 'n' || s[i+1] == 'r' || s[i+1] == '/') && i >= 60:
			i++ // wrapped lines of an encoder
		default:
			return false
		}
	}
	return true
}

// isPacked reports whether a text is no text but packed bytes: a data URL or a
// long run of base64. It is isBase64 for texts of Codex and ChatGPT, a little narrower:
// what can be cited of them stays what it was.
func isPacked(s string) bool {
	if len(s) > 5 && s[:5] == "data:" {
		head := s[:min(len(s), 128)]
		return bytes.Contains([]byte(head), []byte(";base64,"))
	}
	const run = 512
	if len(s) < run {
		return false
	}
	same := true
	for i := range run {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '+' && c != '/' && c != '-' && c != '_' {
			return false
		}
		same = same && c == s[0]
	}
	return !same
}

// sealed reports whether a member holds what is never taken: hidden thinking,
// signatures, encrypted or encoded bytes.
func sealed(name []byte) bool {
	switch string(name) {
	case "thinking", "thinkingSignature", "signature", "encrypted_content", "redacted_thinking", "data", "blob", "base64":
		return true
	}
	return false
}

// structural reports whether a member only says what its neighbours are.
func structural(name []byte) bool {
	switch string(name) {
	case "type", "id", "role", "name", "toolName", "toolCallId", "mimeType", "customType":
		return true
	}
	return sealed(name)
}

// texts gives the strings inside v in their order, at most *left of them, not from
// members that skip names, and not from deeper than people nest things. *left is
// negative in the end when there were more.
func texts(v value, left *int, skip func([]byte) bool, add func(value)) {
	textsAt(v, left, 16, skip, add)
}

func textsAt(v value, left *int, depth int, skip func([]byte) bool, add func(value)) {
	switch {
	case *left < 0 || len(v) <= 2: // an empty string, list or object among them
	case v[0] == '"':
		*left--
		if *left >= 0 {
			add(v)
		}
	case depth == 0:
		if v[0] == '{' || v[0] == '[' {
			*left = -1
		}
	case v[0] == '{':
		for name, m := range v.members() {
			if *left < 0 {
				return
			}
			if !skip(name) {
				textsAt(m, left, depth-1, skip, add)
			}
		}
	case v[0] == '[':
		for e := range v.elements() {
			if *left < 0 {
				return
			}
			textsAt(e, left, depth-1, skip, add)
		}
	}
}

package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Digest is a SHA-256 sum.
type Digest = [sha256.Size]byte

// RootDigest names an authorized root: the digest that stored paths, session ids
// and citations carry instead of the path. automatic says whether the path is one
// of the known automatic roots (decision 2.7); Pi and OMP roots never are.
func RootDigest(absoluteRoot string, automatic bool) string {
	kind := "configured"
	if automatic {
		kind = "automatic"
	}
	return hexSum("source-authorization-v1\x00" + absoluteRoot + "\x00" + kind)
}

// StoredPath is how a source is named outside its root: origin, root digest and
// the path below the root with "/" between parts. It never holds the root's path.
func StoredPath(o Origin, rootDigest, rel string) string {
	return string(o) + "/" + rootDigest + "/" + rel
}

// Namespace is the part of a citation that stands for one source file.
func Namespace(rootDigest, storedPath string) string {
	return hexSum("citation-source-v1\x00" + rootDigest + "\x00" + storedPath)[:24]
}

// ShortName is how status and error texts name a source: its stored path's
// first eight hex digits, so that no path is shown.
func ShortName(storedPath string) string { return hexSum(storedPath)[:8] }

// IDPart is the form in which a session or entry id stands in an evidence id.
func IDPart(raw string) string { return hexSum(raw)[:24] }

// EvidenceID is the short form of a citation.
func EvidenceID(o Origin, namespace, session, entry string, ordinal int) string {
	return "mooncite:" + string(o) + ":" + namespace + ":" + IDPart(session) + ":" + IDPart(entry) + ":" + strconv.Itoa(ordinal)
}

// EvidenceURI is the long form of a citation.
func EvidenceURI(o Origin, namespace, session, entry string, ordinal int) string {
	return "mooncite://" + string(o) + "/" + namespace + "/" + EscapeComponent(session) + "/" + EscapeComponent(entry) + "/" + strconv.Itoa(ordinal)
}

// Locator is a citation taken apart. Session and Entry are [IDPart] forms, so
// that both forms of one citation give the same Locator.
type Locator struct {
	Origin    Origin
	Namespace string
	Session   string
	Entry     string
	Ordinal   int
}

// MaxLocator bounds a citation, in bytes.
const MaxLocator = 2048

// ParseLocator reads an evidence id or URI. It is strict: only what [EvidenceID]
// and [EvidenceURI] write is accepted.
func ParseLocator(s string) (Locator, bool) {
	if len(s) > MaxLocator {
		return Locator{}, false
	}
	uri := false
	rest, ok := strings.CutPrefix(s, "mooncite://")
	sep := "/"
	if ok {
		uri = true
	} else if rest, ok = strings.CutPrefix(s, "mooncite:"); ok {
		sep = ":"
	} else {
		return Locator{}, false
	}
	p := strings.Split(rest, sep)
	if len(p) != 5 {
		return Locator{}, false
	}
	o, ok := ParseOrigin(p[0])
	if !ok || !isHex(p[1], 24) {
		return Locator{}, false
	}
	n, err := strconv.Atoi(p[4])
	if err != nil || n < 0 || strconv.Itoa(n) != p[4] {
		return Locator{}, false
	}
	l := Locator{Origin: o, Namespace: p[1], Session: p[2], Entry: p[3], Ordinal: n}
	if uri {
		for _, f := range []*string{&l.Session, &l.Entry} {
			raw, ok := unEscapeComponent(*f)
			if !ok || raw == "" || EscapeComponent(raw) != *f {
				return Locator{}, false
			}
			*f = IDPart(raw)
		}
		return l, true
	}
	return l, isHex(l.Session, 24) && isHex(l.Entry, 24)
}

// QualifiedSession is how a session is named to callers.
func QualifiedSession(o Origin, rootDigest, raw string) string {
	return string(o) + ":" + rootDigest + ":" + raw
}

// ParseQualifiedSession takes a qualified session id apart.
func ParseQualifiedSession(s string) (o Origin, rootDigest, raw string, ok bool) {
	p := strings.SplitN(s, ":", 3)
	if len(p) != 3 || p[2] == "" || !isHex(p[1], 64) {
		return "", "", "", false
	}
	o, ok = ParseOrigin(p[0])
	return o, p[1], p[2], ok
}

func hexSum(s string) string {
	d := sha256.Sum256([]byte(s))
	return hex.EncodeToString(d[:])
}

func isHex(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// EscapeComponent percent-encodes as ECMAScript's encodeURIComponent does
// (ECMA-262, 19.2.6.4): everything but letters, digits and -_.!~*'().
func EscapeComponent(s string) string {
	const plain = "-_.!~*'()"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte("0123456789ABCDEF"[c>>4])
		b.WriteByte("0123456789ABCDEF"[c&15])
	}
	return b.String()
}

func unEscapeComponent(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		v, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(v))
		i += 2
	}
	return b.String(), true
}

package workspace

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// plainName admits names that every terminal and every client can show: what exists under
// another name can be read and changed, but nothing new gets one.
func plainName(p Path) error {
	deny := func(why string) error {
		return fault.New(contract.PathDenied, "the new name %s", why).WithHint("choose another name")
	}
	if !utf8.ValidString(p.rel) {
		return deny("is not valid UTF-8")
	}
	for _, r := range p.rel {
		if unicode.IsControl(r) || uncounted(r) {
			return deny("has a control character or one that is not seen")
		}
	}
	return nil
}

// Shown is the path for an answer: as it is, but that bytes which are no UTF-8 are written
// as [text.Visible] does, \x{hex}. Such an entry can be seen and not named by a caller.
func (p Path) Shown() string { return shown(p.String()) }

func shown(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x{%x}`, s[i])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// guarded writes a name or a path as file systems may read it that do not count case,
// characters without a shape (HFS+, ext4 with casefold), or dots, spaces and what follows a
// colon at the end (NTFS): only for letters outside ASCII is the case left to [strings.EqualFold]
// and [ignore.ParseFold]. What nobody would write is what it gives.
func guarded(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		switch c := s[i]; {
		case c >= utf8.RuneSelf, c == ':':
			plain = false
		case c == '.' || c == ' ':
			plain = i+1 < len(s) && s[i+1] != '/'
		}
	}
	if plain {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if uncounted(r) {
			return -1
		}
		for f := unicode.SimpleFold(r); f != r && r >= utf8.RuneSelf; f = unicode.SimpleFold(f) {
			if f < utf8.RuneSelf {
				return f // the long s is an s, the sign of kelvin a k
			}
		}
		return r
	}, s)
	parts := strings.Split(s, "/")
	for i, part := range parts {
		if at := strings.IndexByte(part, ':'); at > 0 {
			part = part[:at]
		}
		if cut := strings.TrimRight(part, ". "); cut != "" {
			part = cut
		}
		parts[i] = part
	}
	return strings.Join(parts, "/")
}

// uncounted are the characters that have no shape of their own: joiners, marks of direction,
// selectors of a variant.
func uncounted(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

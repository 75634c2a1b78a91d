package install

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	piName     = "pi"
	piSettings = "settings.json"
	piMember   = "packages"
)

// A part is where something stands in the settings.
type part struct{ from, to int }

// piText tells where things stand in a text of Pi's settings.
type piText struct {
	open     int    // behind the first bracket
	members  []part // each from its name to the end of its value
	list     int    // which of them is the list of packages, or -1
	brackets part   // of the list: from behind "[" to "]"
	packages []part
}

// parseSettings reads an object whose packages, when it has any, are a list.
func parseSettings(text []byte) (piText, bool) {
	s := piText{list: -1}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return s, false
	}
	s.open = int(d.InputOffset())
	for d.PeekKind() == '"' {
		name, err := d.ReadValue()
		if err != nil {
			return s, false
		}
		from := int(d.InputOffset()) - len(name)
		plain, err := jsontext.AppendUnquote(nil, name)
		if err != nil {
			return s, false
		}
		value, err := d.ReadValue()
		if err != nil {
			return s, false
		}
		to := int(d.InputOffset())
		if string(plain) == piMember {
			s.list = len(s.members)
			if value.Kind() != '[' {
				return s, false
			}
			s.brackets = part{to - len(value) + 1, to - 1}
			s.packages = elements(value, to-len(value))
		}
		s.members = append(s.members, part{from, to})
	}
	t, err := d.ReadToken()
	return s, err == nil && t.Kind() == '}'
}

// elements tells where the elements of a valid array stand in a text that has it at an
// offset.
func elements(array []byte, at int) (list []part) {
	d := jsontext.NewDecoder(bytes.NewReader(array))
	_, _ = d.ReadToken() // "["
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return nil
		}
		to := at + int(d.InputOffset())
		list = append(list, part{to - len(value), to})
	}
	return list
}

// withPackage is before with the element of after that is ours, behind the others, and
// with a list for it at the end where there is none. It means what after means, or nothing
// is kept.
func withPackage(before, after []byte, ours func([]byte) bool) ([]byte, bool) {
	s, ok := parseSettings(before)
	now, there := parseSettings(after)
	if !ok || !there {
		return nil, false
	}
	var element []byte
	for _, p := range now.packages {
		if raw := after[p.from:p.to]; ours(raw) {
			element = raw
		}
	}
	if element == nil {
		return nil, false
	}
	var want []byte
	if s.list < 0 {
		member := append(append([]byte(`"`+piMember+`": [`), element...), ']')
		want = behind(before, s.open, s.members, member)
	} else {
		want = behind(before, s.brackets.from, s.packages, element)
	}
	return want, same(want, after)
}

// behind is text with one thing more behind the last of a list that begins at open, spaced
// as that one is.
func behind(text []byte, open int, list []part, more []byte) []byte {
	if len(list) == 0 {
		return bytes.Join([][]byte{text[:open], more, text[open:]}, nil)
	}
	last := list[len(list)-1]
	gap := text[open:last.from]
	if n := len(list); n > 1 {
		_, gap, _ = bytes.Cut(text[list[n-2].to:last.from], []byte(","))
	}
	return bytes.Join([][]byte{text[:last.to], []byte(","), gap, more, text[last.to:]}, nil)
}

// without is text without the nth of a list, and without the comma that it needs no more.
func without(text []byte, list []part, n int) []byte {
	p := list[n]
	switch {
	case n > 0:
		p.from = list[n-1].to // the comma before it
	case len(list) > 1:
		p.to = list[1].from // the comma behind it
	}
	return append(bytes.Clone(text[:p.from]), text[p.to:]...)
}

// withoutPackage is before without the element that is ours, and without the list when that
// is ours and has no other. It means what after means, or nothing is kept.
func withoutPackage(before, after []byte, ours func([]byte) bool, oursToo bool) ([]byte, bool) {
	s, ok := parseSettings(before)
	if !ok {
		return nil, false
	}
	for n, p := range s.packages {
		if !ours(before[p.from:p.to]) {
			continue
		}
		want := without(before, s.packages, n)
		if !same(want, after) {
			return nil, false
		}
		if oursToo && len(s.packages) == 1 {
			return without(before, s.members, s.list), true
		}
		return want, true
	}
	return nil, false
}

// same reports whether two texts are JSON of one meaning.
func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

package install

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

const piSettings = "settings.json"

// A part is where an element of the packages stands in the settings.
type part struct{ from, to int }

// packages finds the elements of the member "packages" and the places of its brackets.
func packages(text []byte) (list []part, open, end int, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, 0, 0, false
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, 0, 0, false
		}
		if name.String() != "packages" || d.PeekKind() != '[' {
			if d.SkipValue() != nil {
				return nil, 0, 0, false
			}
			continue
		}
		if _, err := d.ReadToken(); err != nil {
			return nil, 0, 0, false
		}
		open = int(d.InputOffset())
		for d.PeekKind() != ']' {
			value, err := d.ReadValue()
			if err != nil {
				return nil, 0, 0, false
			}
			to := int(d.InputOffset())
			list = append(list, part{to - len(value), to})
		}
		if _, err := d.ReadToken(); err != nil {
			return nil, 0, 0, false
		}
		return list, open, int(d.InputOffset()) - 1, true
	}
	return nil, 0, 0, false
}

// withPackage is before with the element of after that is ours, behind the others. It
// means what after means, or nothing is kept.
func withPackage(before, after []byte, ours func([]byte) bool) ([]byte, bool) {
	list, open, end, ok := packages(before)
	now, _, _, there := packages(after)
	if !ok || !there {
		return nil, false
	}
	var element []byte
	for _, p := range now {
		if raw := after[p.from:p.to]; ours(raw) {
			element = raw
		}
	}
	want := bytes.Clone(before[:open])
	if n := len(list); n == 0 {
		want = append(append(want, element...), before[end:]...)
	} else {
		last := list[n-1]
		gap := before[bytes.LastIndexAny(before[:last.from], "[,")+1 : last.from]
		want = append(append(append(bytes.Clone(before[:last.to]), ','), gap...), element...)
		want = append(want, before[last.to:]...)
	}
	return want, element != nil && same(want, after)
}

// withoutPackage is before without the element that is ours. It means what after means, or
// nothing is kept.
func withoutPackage(before, after []byte, ours func([]byte) bool) ([]byte, bool) {
	list, _, _, ok := packages(before)
	if !ok {
		return nil, false
	}
	for i, p := range list {
		if !ours(before[p.from:p.to]) {
			continue
		}
		switch {
		case i > 0:
			p.from = list[i-1].to // the comma before it
		case len(list) > 1:
			p.to = list[1].from // the comma behind it
		}
		want := append(bytes.Clone(before[:p.from]), before[p.to:]...)
		return want, same(want, after)
	}
	return nil, false
}

// same reports whether two texts are JSON of one meaning.
func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

package op

import (
	"encoding/json"
	"strconv"
)

// schema writes a shape as JSON Schema, members in a fixed order.
func (s *shape) schema() json.RawMessage { return s.append(nil) }

func (s *shape) append(b []byte) []byte {
	b = append(b, `{"type":`...)
	if s.nullable {
		b = append(b, '[')
		b = strconv.AppendQuote(b, s.typ)
		b = append(b, `,"null"]`...)
	} else {
		b = strconv.AppendQuote(b, s.typ)
	}
	text := func(key, value string) {
		if value != "" {
			b = append(b, `,"`+key+`":`...)
			q, _ := json.Marshal(value)
			b = append(b, q...)
		}
	}
	number := func(key string, n *float64) {
		if n != nil {
			b = append(b, `,"`+key+`":`...)
			b = strconv.AppendFloat(b, *n, 'f', -1, 64)
		}
	}
	count := func(key string, n int) {
		if n != 0 {
			b = append(b, `,"`+key+`":`...)
			b = strconv.AppendInt(b, int64(n), 10)
		}
	}
	text("description", s.doc)
	text("format", s.format)
	if s.enum != nil {
		q, _ := json.Marshal(s.enum)
		b = append(b, `,"enum":`...)
		if s.nullable {
			q = append(q[:len(q)-1], `,null]`...)
		}
		b = append(b, q...)
	}
	number("minimum", s.min)
	number("maximum", s.max)
	count("minLength", s.minLen)
	count("maxLength", s.maxLen)
	count("minItems", s.minItems)
	count("maxItems", s.maxItems)
	if s.def != nil {
		b = append(b, `,"default":`...)
		b = append(b, s.def...)
	}
	switch s.typ {
	case "array":
		b = append(b, `,"items":`...)
		b = s.item.append(b)
	case "object":
		b = s.appendMembers(b)
	}
	return append(b, '}')
}

func (s *shape) appendMembers(b []byte) []byte {
	if s.values != nil {
		b = append(b, `,"additionalProperties":`...)
		return s.values.append(b)
	}
	if s.free {
		return b
	}
	b = append(b, `,"properties":{`...)
	var required []string
	for i, f := range s.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, f.name)
		b = append(b, ':')
		b = f.shape.append(b)
		if f.required && !s.root {
			required = append(required, f.name)
		}
	}
	b = append(b, '}')
	if required != nil {
		q, _ := json.Marshal(required)
		b = append(b, `,"required":`...)
		b = append(b, q...)
	}
	if !s.open {
		b = append(b, `,"additionalProperties":false`...)
	}
	return b
}

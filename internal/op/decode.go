package op

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"localmcp/internal/fault"
)

// deepestInput bounds nesting of what a caller may send in a free object.
const deepestInput = 64

// decode reads args into v as s says, and refuses what s does not allow.
func decode(args json.RawMessage, s *shape, v reflect.Value) error {
	if trimmed := bytes.TrimSpace(args); len(trimmed) == 0 || string(trimmed) == "null" {
		args = json.RawMessage("{}")
	}
	if err := plain(args); err != nil {
		return err
	}
	d := decoder{json.NewDecoder(bytes.NewReader(args))}
	d.UseNumber()
	if err := d.value("", s, v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fault.New(InvalidArgument, "there is text after the arguments")
	}
	return nil
}

// plain refuses text that is no Unicode: bytes that are no UTF-8, and halves of surrogate
// pairs. Decoding would make U+FFFD of them, which is another text than the caller's.
func plain(args json.RawMessage) error {
	if utf8.Valid(args) && !bytes.Contains(args, []byte(`\ud`)) && !bytes.Contains(args, []byte(`\uD`)) {
		return nil
	}
	at, err := walk(args)
	if err == nil {
		return nil
	}
	if _, other := walk(args, jsontext.AllowInvalidUTF8(true)); other != nil {
		return nil // no JSON at all: whoever decodes it says so
	}
	return fault.Wrap(InvalidArgument, err, "there is text in %s that is not valid Unicode", cmp.Or(at, "the arguments")).
		WithHint("send UTF-8, and a character beyond U+FFFF as itself or as both halves of its pair")
}

// walk reads JSON to its end, and says where it could not go on.
func walk(args json.RawMessage, o ...jsontext.Options) (at string, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(args), append(o, jsontext.AllowDuplicateNames(true))...)
	for err == nil {
		_, err = d.ReadToken()
	}
	if err == io.EOF {
		return "", nil
	}
	var bad *jsontext.SyntacticError
	if errors.As(err, &bad) {
		for name := range bad.JSONPointer.Tokens() {
			if _, err := strconv.Atoi(name); err == nil {
				at += "[" + name + "]"
			} else {
				at = join(at, clip(strings.ToValidUTF8(name, "\uFFFD")))
			}
		}
	}
	return at, err
}

type decoder struct{ *json.Decoder }

// next reads a token; broken JSON becomes a refusal.
func (d decoder) next() (json.Token, error) {
	t, err := d.Token()
	if err != nil {
		return nil, fault.Wrap(InvalidArgument, err, "the arguments are not valid JSON")
	}
	return t, nil
}

func (d decoder) value(at string, s *shape, v reflect.Value) error {
	t, err := d.next()
	if err != nil {
		return err
	}
	return d.token(t, at, s, v)
}

// token continues with a value whose first token was read.
func (d decoder) token(t json.Token, at string, s *shape, v reflect.Value) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch t := t.(type) {
	case json.Delim:
		switch {
		case t == '{' && s.typ == "object":
			return d.object(at, s, v)
		case t == '[' && s.typ == "array":
			return d.array(at, s, v)
		}
	case string:
		if s.typ == "string" {
			return setString(t, at, s, v)
		}
	case json.Number:
		if s.typ == "integer" || s.typ == "number" {
			return setNumber(t, at, s, v)
		}
	case bool:
		if s.typ == "boolean" {
			v.SetBool(t)
			return nil
		}
	}
	return refuse(at, s, typeName(t))
}

func (d decoder) object(at string, s *shape, v reflect.Value) error {
	var seen, given []*field
	for d.More() {
		t, err := d.next()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		i := slices.IndexFunc(s.fields, func(f *field) bool { return f.name == name })
		if i < 0 {
			return fault.New(InvalidArgument, "unknown argument %s", quoted(join(at, name))).WithHint("accepted here: %s", s.names())
		}
		f := s.fields[i]
		if slices.Contains(seen, f) {
			return fault.New(InvalidArgument, "%s is given twice", join(at, name))
		}
		seen = append(seen, f)
		got, err := d.member(join(at, name), f, v.FieldByIndex(f.index))
		if err != nil {
			return err
		}
		if got {
			given = append(given, f)
		}
	}
	if _, err := d.next(); err != nil {
		return err
	}
	for _, f := range s.fields {
		if slices.Contains(given, f) {
			continue
		}
		if f.required {
			return fault.New(InvalidArgument, "%s is required: %s", join(at, f.name), f.accepts())
		}
		if f.def != nil {
			if err := decode(f.def, f.shape, v.FieldByIndex(f.index)); err != nil {
				return err
			}
		}
	}
	return nil
}

// member reads the value of a named argument and reports whether there was one.
// Null for an optional one is absence: models trained on strict schemas send it.
func (d decoder) member(at string, f *field, v reflect.Value) (bool, error) {
	if f.free {
		return d.free(at, f, v)
	}
	t, err := d.next()
	if err != nil {
		return false, err
	}
	if t == nil && !f.required {
		return false, nil
	}
	return true, d.token(t, at, f.shape, v)
}

func (d decoder) array(at string, s *shape, v reflect.Value) error {
	list := reflect.MakeSlice(v.Type(), 0, 0)
	for n := 0; d.More(); n++ {
		if s.maxItems > 0 && n >= s.maxItems {
			return refuse(at, s, "more")
		}
		item := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(fmt.Sprintf("%s[%d]", at, n), s.item, item); err != nil {
			return err
		}
		list = reflect.Append(list, item)
	}
	if _, err := d.next(); err != nil {
		return err
	}
	if list.Len() < s.minItems {
		return refuse(at, s, strconv.Itoa(list.Len()))
	}
	v.Set(list)
	return nil
}

// free reads an object of any content into a map.
func (d decoder) free(at string, f *field, v reflect.Value) (bool, error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return false, fault.Wrap(InvalidArgument, err, "the arguments are not valid JSON")
	}
	if string(raw) == "null" && !f.required {
		return false, nil
	}
	if raw[0] != '{' {
		return false, refuse(at, f.shape, "something else")
	}
	if tooDeep(raw) {
		return false, fault.New(InvalidArgument, "%s is nested more than %d deep", at, deepestInput)
	}
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return false, fault.Wrap(InvalidArgument, err, "%s must be %s", at, f.accepts())
	}
	return true, nil
}

func tooDeep(raw []byte) bool {
	depth, quote := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quote && c == '\\':
			i++
		case c == '"':
			quote = !quote
		case quote:
		case c == '{' || c == '[':
			if depth++; depth > deepestInput {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

func setString(text, at string, s *shape, v reflect.Value) error {
	if n := utf8.RuneCountInString(text); n < s.minLen || s.maxLen > 0 && n > s.maxLen {
		return refuse(at, s, strconv.Itoa(n)+" characters")
	}
	if s.enum != nil && !slices.Contains(s.enum, text) {
		return refuse(at, s, quoted(text))
	}
	if s.textual {
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			return refuse(at, s, quoted(text))
		}
		return nil
	}
	v.SetString(text)
	return nil
}

func setNumber(text json.Number, at string, s *shape, v reflect.Value) error {
	n, err := text.Float64()
	if err != nil || s.min != nil && n < *s.min || s.max != nil && n > *s.max {
		return refuse(at, s, clip(text.String()))
	}
	if s.typ == "number" {
		v.SetFloat(n)
		return nil
	}
	whole, err := strconv.ParseInt(text.String(), 10, 64)
	if err != nil { // 3.0 and 1e3 are whole numbers too
		if n != math.Trunc(n) || math.Abs(n) > exactInt {
			return refuse(at, s, clip(text.String()))
		}
		whole = int64(n)
	}
	if v.CanUint() {
		if whole < 0 || v.OverflowUint(uint64(whole)) {
			return refuse(at, s, clip(text.String()))
		}
		v.SetUint(uint64(whole))
		return nil
	}
	if v.OverflowInt(whole) {
		return refuse(at, s, clip(text.String()))
	}
	v.SetInt(whole)
	return nil
}

func refuse(at string, s *shape, got string) error {
	if at == "" {
		at = "the arguments"
	}
	return fault.New(InvalidArgument, "%s must be %s, not %s", at, s.accepts(), got)
}

// accepts says in words what a value may be.
func (s *shape) accepts() string {
	if s.enum != nil {
		return "one of " + strings.Join(s.enum, ", ")
	}
	switch s.typ {
	case "string":
		if s.format == "date-time" {
			return "a time like 2026-01-31T15:04:05Z"
		}
		return "a string" + span(count(s.minLen), count(s.maxLen), " characters")
	case "integer":
		return "a whole number" + span(bound(s.min), bound(s.max), "")
	case "number":
		return "a number" + span(bound(s.min), bound(s.max), "")
	case "boolean":
		return "true or false"
	case "array":
		return "a list" + span(count(s.minItems), count(s.maxItems), " items") + ", each " + s.item.accepts()
	}
	if s.free || len(s.fields) == 0 {
		return "an object"
	}
	return "an object with " + s.names()
}

func (s *shape) names() string {
	names := make([]string, len(s.fields))
	for i, f := range s.fields {
		names[i] = f.name
	}
	if len(names) == 0 {
		return "no arguments"
	}
	return strings.Join(names, ", ")
}

func span(low, high, unit string) string {
	switch {
	case low != "" && high != "":
		return " from " + low + " to " + high + unit
	case low != "":
		return " of at least " + low + unit
	case high != "":
		return " of at most " + high + unit
	}
	return ""
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func bound(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', -1, 64)
}

func typeName(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case bool:
		return "true or false"
	case json.Delim:
		if t == '[' {
			return "a list"
		}
	}
	return "an object"
}

// quoted shows a caller's text in a sentence: one line, escaped, not long.
func quoted(text string) string { return strconv.QuoteToASCII(clip(text)) }

func clip(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	for n := most; ; n-- {
		if utf8.RuneStart(text[n]) {
			return text[:n] + "..."
		}
	}
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

package op

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Struct tags, beside json:
//
//	doc:"..."                   description
//	enum:"a|b|c"                the strings accepted (of a list: of its items)
//	min:"1" max:"50"            bounds of a number (of a list: of its items)
//	minLength:"1" maxLength:"9" bounds of a string in characters (of a list: of its items)
//	minItems:"1" maxItems:"9"   bounds of a list
//	default:"8"                 used when the argument is absent; makes it optional
//	type:"object"               the JSON type of a value that encodes itself (outputs only)
//
// A field is required unless it has omitempty, omitzero or a default.

// shape is the schema of one value, in the form the decoder walks.
type shape struct {
	typ      string // object, array, string, integer, number, boolean
	doc      string
	format   string
	enum     []string
	min, max *float64
	minLen   int // 0: none
	maxLen   int
	minItems int
	maxItems int
	def      json.RawMessage
	nullable bool
	item     *shape   // of an array
	fields   []*field // of an object
	values   *shape   // of an object with free names
	free     bool     // an object with any content
	open     bool     // an object that may have more members than listed
	root     bool     // the root of an output: nothing is required
	textual  bool     // decoded by UnmarshalText
}

type field struct {
	name     string
	index    []int
	required bool
	*shape
}

var (
	rawType   = reflect.TypeFor[json.RawMessage]()
	timeType  = reflect.TypeFor[time.Time]()
	detail    = reflect.TypeFor[*Detail]()
	fitter    = reflect.TypeFor[Fitter]()
	marshaler = reflect.TypeFor[json.Marshaler]()
	textOut   = reflect.TypeFor[encoding.TextMarshaler]()
	textIn    = reflect.TypeFor[encoding.TextUnmarshaler]()
)

const (
	deepest  = 12
	exactInt = 1 << 53
)

// builder carries what an error message needs.
type builder struct {
	op    string
	input bool
}

func (b builder) bad(where, format string, args ...any) {
	panic("op: " + b.op + ": " + where + ": " + fmt.Sprintf(format, args...))
}

func inputShape(name string, t reflect.Type) *shape {
	b := builder{name, true}
	if t.Kind() != reflect.Struct {
		b.bad("input", "%v is not a struct", t)
	}
	return b.object("input", t, 0)
}

func outputShape(name string, t reflect.Type) *shape {
	b := builder{name, false}
	base := t
	if t.Kind() == reflect.Pointer {
		base = t.Elem()
	}
	if base.Kind() != reflect.Struct {
		b.bad("output", "%v is not a struct", t)
	}
	s := b.object("output", base, 0)
	s.root = true
	cut := false
	for _, f := range s.fields {
		if strings.Contains(" code message hint ", " "+f.name+" ") && f.typ != "string" {
			b.bad("output."+f.name, "must be a string, as it is in a failure")
		}
		cut = cut || base.FieldByIndex(f.index).Type == detail
	}
	if t.Implements(fitter) && !cut {
		b.bad("output", "a Fitter needs a field of type *op.Detail")
	}
	return s
}

// object describes a struct.
func (b builder) object(where string, t reflect.Type, depth int) *shape {
	if depth > deepest {
		b.bad(where, "nested too deeply, or recursive")
	}
	s := &shape{typ: "object", open: !b.input}
	b.members(s, where, t, nil, depth)
	return s
}

func (b builder) members(s *shape, where string, t reflect.Type, prefix []int, depth int) {
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(append([]int(nil), prefix...), i)
		tag := parseTags(sf.Tag)
		name, opts, _ := strings.Cut(tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct {
			b.members(s, where, sf.Type, index, depth)
			continue
		}
		if !sf.IsExported() {
			continue
		}
		if name == "" {
			b.bad(where, "field %s has no json name", sf.Name)
		}
		at := where + "." + name
		if b.input && !plainName(strings.ToLower(name), 64) {
			b.bad(at, "an argument's name has only letters, digits and _, at most 64 of them")
		}
		for _, other := range s.fields {
			if other.name == name {
				b.bad(at, "listed twice")
			}
		}
		optional := strings.Contains(opts, "omitempty") || strings.Contains(opts, "omitzero")
		v := b.value(at, sf, tag, optional, depth)
		s.fields = append(s.fields, &field{name: name, index: index, required: !optional && v.def == nil, shape: v})
	}
}

// value describes one field: its type, then its tags.
func (b builder) value(at string, sf reflect.StructField, tag tags, optional bool, depth int) *shape {
	var s *shape
	if typ, ok := tag.Lookup("type"); ok && !b.input {
		s = &shape{typ: typ, free: typ == "object", open: true}
		if !strings.Contains(" object string number integer boolean ", " "+typ+" ") {
			b.bad(at, "type tag %q is not a JSON type that needs nothing more", typ)
		}
		if sf.Type.Kind() == reflect.Pointer || sf.Type == rawType {
			s.nullable = !optional
		}
	} else {
		t := sf.Type
		pointer := t.Kind() == reflect.Pointer
		if pointer {
			t = t.Elem()
		}
		s = b.plain(at, t, depth)
		if pointer && !optional {
			if b.input && tag.Get("default") == "" {
				b.bad(at, "a pointer argument must be omitempty: null is not portable")
			}
			s.nullable = !b.input
		}
	}
	b.tags(at, sf.Type, tag, s)
	return s
}

// plain describes a type without tags.
func (b builder) plain(at string, t reflect.Type, depth int) *shape {
	if depth > deepest {
		b.bad(at, "nested too deeply, or recursive")
	}
	switch {
	case t == timeType:
		return &shape{typ: "string", format: "date-time", textual: true}
	case t == rawType:
		b.bad(at, "raw JSON has no schema; give a struct, or a type tag in an output")
	case b.input && reflect.PointerTo(t).Implements(textIn):
		return &shape{typ: "string", textual: true}
	case !b.input && t.Implements(textOut):
		return &shape{typ: "string"}
	case !b.input && t.Implements(marshaler):
		b.bad(at, "%v encodes itself; say how with a type tag", t)
	}
	zero := 0.0
	switch t.Kind() {
	case reflect.String:
		return &shape{typ: "string"}
	case reflect.Bool:
		return &shape{typ: "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &shape{typ: "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &shape{typ: "integer", min: &zero}
	case reflect.Float32, reflect.Float64:
		return &shape{typ: "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			b.bad(at, "bytes have no portable schema; use a string")
		}
		return &shape{typ: "array", item: b.element(at+"[]", t.Elem(), depth+1)}
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			b.bad(at, "a map needs string keys")
		}
		if t.Elem() == rawType || t.Elem().Kind() == reflect.Interface {
			return &shape{typ: "object", free: true, open: true}
		}
		if b.input {
			b.bad(at, "a map of typed values is not portable as an argument")
		}
		return &shape{typ: "object", open: true, values: b.element(at+"{}", t.Elem(), depth+1)}
	case reflect.Struct:
		return b.object(at, t, depth+1)
	}
	b.bad(at, "%v cannot be shown to every client", t)
	return nil
}

// element describes an item of a list or a value of a map.
func (b builder) element(at string, t reflect.Type, depth int) *shape {
	if t.Kind() != reflect.Pointer {
		if b.input && t.Kind() == reflect.Map {
			b.bad(at, "a list of free objects is not portable as an argument")
		}
		return b.plain(at, t, depth)
	}
	if b.input {
		b.bad(at, "a list of pointers is not portable as an argument")
	}
	s := b.plain(at, t.Elem(), depth)
	s.nullable = true
	return s
}

// tags adds what the tags say; of a list, the bounds of a value go to its items.
func (b builder) tags(at string, t reflect.Type, tag tags, s *shape) {
	s.doc = tag.Get("doc")
	v := s
	if s.typ == "array" {
		v = s.item
	}
	whole := func(key string, owner *shape, typ string) int {
		text, ok := tag.Lookup(key)
		if !ok {
			return 0
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || owner.typ != typ {
			b.bad(at, "bad tag %s:%q", key, text)
		}
		return n
	}
	v.minLen, v.maxLen = whole("minLength", v, "string"), whole("maxLength", v, "string")
	s.minItems, s.maxItems = whole("minItems", s, "array"), whole("maxItems", s, "array")
	bound := func(key string, old *float64) *float64 {
		text, ok := tag.Lookup(key)
		if !ok {
			return old
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || v.typ != "integer" && v.typ != "number" || n > exactInt || n < -exactInt {
			b.bad(at, "bad tag %s:%q", key, text)
		}
		return &n
	}
	v.min, v.max = bound("min", v.min), bound("max", v.max)
	if text, ok := tag.Lookup("enum"); ok {
		if v.typ != "string" {
			b.bad(at, "only strings can have an enum")
		}
		v.enum = strings.Split(text, "|")
	}
	if text, ok := tag.Lookup("default"); ok {
		if !b.input {
			b.bad(at, "an answer has no defaults")
		}
		s.def = json.RawMessage(text)
		if s.typ == "string" {
			s.def, _ = json.Marshal(text)
		}
		if err := decode(s.def, s, reflect.New(t).Elem()); err != nil {
			b.bad(at, "bad tag default:%q: %v", text, err)
		}
	}
}

// tags are a field's tags, taken apart once: reflect looks through them anew for each.
type tags []struct{ key, value string }

func parseTags(t reflect.StructTag) tags {
	var list tags
	for rest := strings.TrimLeft(string(t), " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		key, after, ok := strings.Cut(rest, ":")
		if !ok {
			break
		}
		quoted, err := strconv.QuotedPrefix(after)
		if err != nil {
			break
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			break
		}
		list = append(list, struct{ key, value string }{key, value})
		rest = after[len(quoted):]
	}
	return list
}

// Lookup returns the value of a key.
func (t tags) Lookup(key string) (string, bool) {
	for _, p := range t {
		if p.key == key {
			return p.value, true
		}
	}
	return "", false
}

// Get is Lookup of what may be absent.
func (t tags) Get(key string) string {
	v, _ := t.Lookup(key)
	return v
}

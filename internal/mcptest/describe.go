package mcptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"localmcp/internal/op"
)

// Describe writes a section of a page for each operation: what it is, its hints, and the
// fields of its input and output with their bounds.
func Describe(t testing.TB, b *strings.Builder, ops []op.Op) {
	t.Helper()
	for _, o := range ops {
		s := o.Spec()
		fmt.Fprintf(b, "\n## %s\n\n**%s.** %s\n\n", s.Name, s.Title, strings.TrimSpace(s.Doc))
		fmt.Fprintf(b, "Hints: read-only %s, destructive %s, idempotent %s, open world %s.\n", yes(s.ReadOnly), yes(s.Destructive), yes(s.Idempotent), yes(s.OpenWorld))
		schema(t, b, "Input", true, o.InputSchema())
		schema(t, b, "Output", false, o.OutputSchema())
	}
}

func yes(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

// node is what this page shows of a JSON Schema.
type node struct {
	Type        json.RawMessage
	Description string
	Enum        []any
	Default     json.RawMessage
	Minimum     *float64
	Maximum     *float64
	MinLength   int
	MaxLength   int
	MinItems    int
	MaxItems    int
	Items       *node
	Required    []string
	Properties  json.RawMessage
}

// schema writes the table of one. asked says that others fill it, who must know what is required.
func schema(t testing.TB, b *strings.Builder, title string, asked bool, raw json.RawMessage) {
	t.Helper()
	var n node
	if err := json.Unmarshal(raw, &n); err != nil {
		t.Fatal(err)
	}
	rows := &strings.Builder{}
	members(t, rows, "", &n, asked)
	if rows.Len() == 0 {
		fmt.Fprintf(b, "\n### %s\n\nNothing.\n", title)
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n| Field | Type | Meaning |\n| --- | --- | --- |\n%s", title, rows)
}

// members writes a row for every property, in the schema's own order.
func members(t testing.TB, b *strings.Builder, prefix string, n *node, asked bool) {
	t.Helper()
	if n.Properties == nil {
		return
	}
	d := json.NewDecoder(bytes.NewReader(n.Properties))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var p node
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		field := prefix + name.(string)
		kind := strings.NewReplacer(`"`, "", "[", "", "]", "", ",", " or ").Replace(string(p.Type))
		of := &p
		if p.Items != nil {
			kind += " of " + strings.Trim(string(p.Items.Type), `"`)
			of, field = p.Items, field+"[]"
		}
		said := meaning(&p, of)
		if asked && slices.Contains(n.Required, name.(string)) {
			said = strings.TrimSpace("Required. " + said)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", field, kind, said)
		members(t, b, field+".", of, asked)
	}
}

// meaning is the last cell of a row: the description, then the bounds.
func meaning(p, of *node) string {
	var parts []string
	if p.Description != "" {
		parts = append(parts, p.Description)
	}
	if of.Enum != nil {
		var words []string
		for _, e := range of.Enum {
			words = append(words, fmt.Sprintf("`%v`", e))
		}
		parts = append(parts, "One of "+strings.Join(words, ", ")+".")
	}
	bounds := []string{
		span(number(of.Minimum), number(of.Maximum), ""),
		span(count(of.MinLength), count(of.MaxLength), " characters"),
	}
	if of != p {
		for i, b := range bounds {
			if b != "" {
				bounds[i] = "Each " + strings.ToLower(b[:1]) + b[1:]
			}
		}
		bounds = append([]string{span(count(p.MinItems), count(p.MaxItems), " items")}, bounds...)
	}
	for _, b := range bounds {
		if b != "" {
			parts = append(parts, b)
		}
	}
	if p.Default != nil {
		parts = append(parts, "Default `"+string(p.Default)+"`.")
	}
	return strings.ReplaceAll(strings.Join(parts, " "), "|", `\|`)
}

// span says between what a number is; an end that is not bound is empty.
func span(least, most, of string) string {
	switch {
	case least != "" && most != "":
		return least + " to " + most + of + "."
	case least != "":
		return "At least " + least + of + "."
	case most != "":
		return "At most " + most + of + "."
	}
	return ""
}

func number(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', -1, 64)
}

// count is a bound of which 0 is none.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

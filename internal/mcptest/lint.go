package mcptest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"
)

var (
	toolName     = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	propertyName = regexp.MustCompile(`^[a-zA-Z0-9_]{1,64}$`)
)

// keywords that some client mishandles, wherever they stand.
var shunned = []string{"$ref", "$defs", "oneOf", "anyOf", "allOf", "not", "if", "then", "else",
	"prefixItems", "patternProperties", "nullable", "$schema", "$id", "const"}

// LintTools checks the result of tools/list against the rules every tool of ours
// keeps: names, titles, descriptions, all four hints, and schemas in the portable
// subset. It reads only the wire form, so it also judges what the SDK made of it.
func LintTools(t testing.TB, result json.RawMessage) {
	t.Helper()
	var list struct {
		Tools []struct {
			Name, Title, Description  string
			Annotations               map[string]any
			InputSchema, OutputSchema any
		}
	}
	if err := json.Unmarshal(result, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Tools) == 0 || len(list.Tools) > 125 {
		t.Errorf("%d tools", len(list.Tools))
	}
	for _, tool := range list.Tools {
		bad := func(where, what string) { t.Errorf("%s: %s: %s", tool.Name, where, what) }
		if !toolName.MatchString(tool.Name) {
			bad("name", "not lower snake case of at most 40")
		}
		if tool.Title == "" || tool.Description == "" || len(tool.Description) > 4000 {
			bad("description", "title or description missing or too long")
		}
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if _, ok := tool.Annotations[hint].(bool); !ok {
				bad("annotations", hint+" is missing")
			}
		}
		in, _ := tool.InputSchema.(map[string]any)
		if in["type"] != "object" || in["additionalProperties"] != false {
			bad("input", "the root is not a closed object")
		}
		lint(tool.InputSchema, "input", true, bad)
		out, _ := tool.OutputSchema.(map[string]any)
		if out["type"] != "object" || out["required"] != nil {
			bad("output", "the root is not an object without required members")
		}
		lint(tool.OutputSchema, "output", false, bad)
	}
}

func lint(v any, at string, input bool, bad func(where, what string)) {
	s, ok := v.(map[string]any)
	if !ok {
		bad(at, fmt.Sprintf("%v is not a schema object", v))
		return
	}
	for _, key := range shunned {
		if _, there := s[key]; there {
			bad(at, key+" is not portable")
		}
	}
	typ, one := s["type"].(string)
	if pair, ok := s["type"].([]any); ok && !input && len(pair) == 2 && pair[1] == "null" {
		typ, one = pair[0].(string)
	}
	if !one || !slices.Contains([]string{"object", "array", "string", "integer", "number", "boolean"}, typ) {
		bad(at, fmt.Sprintf("type is %v", s["type"]))
	}
	if values, ok := s["enum"].([]any); ok && typ != "string" || ok && len(values) == 0 {
		bad(at, "an enum has strings")
	}
	if typ == "array" {
		lint(s["items"], at+"[]", input, bad)
	}
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		if input && !propertyName.MatchString(name) {
			bad(at+"."+name, "a property's name has only letters, digits and _")
		}
		lint(p, at+"."+name, input, bad)
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, ok := properties[name.(string)]; !ok {
			bad(at, fmt.Sprintf("%v is required but not described", name))
		}
	}
	if more, ok := s["additionalProperties"].(map[string]any); ok {
		lint(more, at+"{}", input, bad)
	}
}

package surface

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"

	jsonv2 "github.com/go-json-experiment/json"
)

func unmarshal(object json.RawMessage, into any) error {
	return jsonv2.Unmarshal(object, into, jsonv2.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(true))
}

type discoverIn struct {
	Query     string `json:"query,omitempty" maxLength:"200" doc:"Words of what you want to do."`
	Domain    string `json:"domain,omitempty" enum:"code|exec|git|desktop|media|browser|game|workflow|schedule|web" doc:"Only operations of this kind."`
	Operation string `json:"operation,omitempty" maxLength:"64" doc:"The name of one operation whose arguments are wanted."`
	Limit     int    `json:"limit" min:"1" max:"25" default:"8"`
	Cursor    string `json:"cursor,omitempty" maxLength:"32" doc:"nextCursor of the answer before."`
}

type discoverOut struct {
	Matches      []match `json:"matches,omitempty" doc:"Operations found; ask for one of them by operation to see its arguments."`
	TotalMatches *int    `json:"totalMatches,omitempty"`

	Operation     string         `json:"operation,omitempty"`
	Gateway       string         `json:"gateway,omitempty" doc:"The tool to call."`
	Domain        string         `json:"domain,omitempty"`
	RequiredScope string         `json:"requiredScope,omitempty"`
	Action        string         `json:"action,omitempty"`
	Description   string         `json:"description,omitempty"`
	InputSchema   jsontext.Value `json:"inputSchema,omitempty" type:"object" doc:"JSON Schema of args."`
	SchemaHash    string         `json:"schemaHash,omitempty" doc:"Changes when the schema does."`
	CallShape     *callShape     `json:"callShape,omitempty" doc:"How the call looks."`
	Notes         []string       `json:"notes,omitempty"`
}

type match struct {
	Operation     string `json:"operation"`
	Gateway       string `json:"gateway"`
	Domain        string `json:"domain"`
	RequiredScope string `json:"requiredScope"`
	Action        string `json:"action"`
	Description   string `json:"description"`
}

type callShape struct {
	Gateway string  `json:"gateway"`
	Example example `json:"example"`
}

type example struct {
	WorkspaceID    string         `json:"workspaceId"`
	WorkspaceEpoch string         `json:"workspaceEpoch"`
	Operation      string         `json:"operation"`
	Args           map[string]any `json:"args"`
}

// shownDescription is how much of a description a list shows, in bytes.
const shownDescription = 200

// Discover is the operation that finds operations. It knows those it is given.
func Discover(ops []contract.Op) contract.Op {
	return contract.Read(contract.Def{
		Name: "dodo_discover", Title: "Find an operation",
		Doc: "Finds operations of the gateway tools (dodo_read, dodo_write, ...). Without arguments or with query it lists them; " +
			"with operation it gives the JSON Schema of that operation's args and the shape of the call.",
		Scope: contract.ScopeRead, Class: contract.ClassRead, ReadOnly: true, Idempotent: true,
	}, func(_ context.Context, _ contract.Call, in discoverIn) (contract.Answer[discoverOut], error) {
		if in.Operation != "" {
			return describe(ops, in.Operation)
		}
		return list(ops, in)
	})
}

// describe shows one operation.
func describe(ops []contract.Op, name string) (contract.Answer[discoverOut], error) {
	i := slices.IndexFunc(ops, func(o contract.Op) bool { return o.Name == name && o.Gateway != "" })
	if i < 0 {
		return contract.Answer[discoverOut]{}, fault.New(contract.NotFound, "there is no operation of that name here").
			WithHint("call dodo_discover with query to find one")
	}
	o := ops[i]
	digest, err := contract.Digest(jsontext.Value(o.InputSchema()))
	if err != nil {
		return contract.Answer[discoverOut]{}, err
	}
	return contract.Answer[discoverOut]{Data: discoverOut{
		Operation: o.Name, Gateway: o.Gateway, Domain: domainOf(o), RequiredScope: string(o.Scope), Action: string(o.Class),
		Description: o.Doc, InputSchema: jsontext.Value(o.InputSchema()), SchemaHash: digest,
		CallShape: &callShape{o.Gateway, example{"from project_overview", "from project_overview", o.Name, map[string]any{}}},
		Notes:     notes(o),
	}}, nil
}

func notes(o contract.Op) []string {
	n := []string{
		"workspaceId and workspaceEpoch stand beside operation and args, never inside args.",
		"Needs the scope " + string(o.Scope) + ".",
	}
	switch {
	case o.Proposes:
		n = append(n, "Runs nothing and changes nothing: what it proposes waits for the owner, who approves or refuses exactly that.")
	case o.ReadOnly && o.Class == contract.ClassExec:
		n = append(n, "Runs nothing, but reaches beyond this machine: the owner may have to approve it.")
	case o.Class == contract.ClassMutate:
		n = append(n, "Changes files: the owner may have to approve it. It is journaled and can be rolled back.")
	case o.Class == contract.ClassExec:
		n = append(n, "Runs something: the owner may have to approve it.")
	case o.Class == contract.ClassPlan:
		n = append(n, "Changes no file.")
	}
	in := string(o.InputSchema())
	if strings.Contains(in, `"idempotencyKey":`) {
		n = append(n, "The same idempotencyKey with the same arguments gives the stored answer and does nothing again.")
	}
	if strings.Contains(in, `"expectedHash":`) {
		n = append(n, "Give expectedHash from your last read: the call is refused when the file changed since.")
	}
	return n
}

// list finds operations by words: 3 for a word in the name, 1 for a word in name, title or
// description; equal ones keep the catalogue's order.
func list(ops []contract.Op, in discoverIn) (contract.Answer[discoverOut], error) {
	from, ok := parseCursor(in.Cursor)
	if !ok {
		return contract.Answer[discoverOut]{}, fault.New(contract.InvalidInput, "cursor is not one that dodo_discover gave").WithHint("leave cursor out to begin anew")
	}
	words := tokens(in.Query)
	type hit struct {
		o     contract.Op
		score int
	}
	var hits []hit
	for _, o := range ops {
		if o.Gateway == "" || in.Domain != "" && domainOf(o) != in.Domain {
			continue
		}
		score, all := 0, strings.ToLower(o.Name+" "+o.Title+" "+o.Doc)
		for _, w := range words {
			if strings.Contains(o.Name, w) {
				score += 3
			}
			if strings.Contains(all, w) {
				score++
			}
		}
		if score > 0 || len(words) == 0 {
			hits = append(hits, hit{o, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.score - a.score })
	total := len(hits)
	a := contract.Answer[discoverOut]{Data: discoverOut{Matches: []match{}, TotalMatches: &total}}
	for i := from; i < total && i < from+in.Limit; i++ {
		o := hits[i].o
		a.Data.Matches = append(a.Data.Matches, match{o.Name, o.Gateway, domainOf(o), string(o.Scope), string(o.Class), short(o.Doc)})
	}
	if next := from + in.Limit; next < total {
		a.Truncated, a.NextCursor = true, "c"+strconv.Itoa(next)
	}
	return a, nil
}

// tokens are the words of a query that say something.
func tokens(query string) []string {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_'
	})
	return slices.DeleteFunc(words, func(w string) bool { return len(w) < 2 })
}

// parseCursor reads "c" and an offset of one to six digits.
func parseCursor(c string) (from int, ok bool) {
	if c == "" {
		return 0, true
	}
	digits, ok := strings.CutPrefix(c, "c")
	if !ok || len(digits) == 0 || len(digits) > 6 || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	from, err := strconv.Atoi(digits)
	return from, err == nil
}

func domainOf(o contract.Op) string {
	for _, g := range gateways {
		if g.name == o.Gateway {
			return g.domain
		}
	}
	return ""
}

func short(s string) string {
	if len(s) <= shownDescription {
		return s
	}
	cut := shownDescription
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

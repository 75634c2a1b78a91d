package op_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"localmcp/internal/fault"
	"localmcp/internal/op"
)

type inner struct {
	Path string `json:"path" doc:"Where." minLength:"1"`
	Line int    `json:"line,omitempty" min:"1"`
}

type sampleIn struct {
	Query   string         `json:"query" doc:"What to look for." minLength:"1" maxLength:"10"`
	Limit   int            `json:"limit" doc:"How many." min:"1" max:"50" default:"8"`
	Mode    string         `json:"mode,omitempty" enum:"fast|full"`
	Origins []string       `json:"origins,omitempty" enum:"pi|codex" maxItems:"2"`
	Exact   *bool          `json:"exact,omitempty"`
	Ratio   float64        `json:"ratio,omitempty" min:"0" max:"1"`
	Since   time.Time      `json:"since,omitzero"`
	Places  []inner        `json:"places,omitempty"`
	Free    map[string]any `json:"free,omitempty"`
}

type sampleOut struct {
	Outcome string             `json:"outcome" enum:"found|none" doc:"How it went."`
	Title   *string            `json:"title"`
	Items   []inner            `json:"items"`
	Maybe   *inner             `json:"maybe,omitempty"`
	Counts  map[string]int     `json:"counts"`
	Raw     json.RawMessage    `json:"raw,omitempty" type:"object"`
	When    time.Time          `json:"when"`
	Share   map[string]float64 `json:"share,omitempty"`
}

var spec = op.Spec{Name: "sample", Title: "Sample", Doc: "A sample.", ReadOnly: true, Idempotent: true}

func sample(handler func(context.Context, op.Call, sampleIn) (sampleOut, error)) op.Op {
	return op.New(spec, handler)
}

func capture(t *testing.T, args string) (sampleIn, error) {
	t.Helper()
	var got sampleIn
	set := op.NewSet(sample(func(_ context.Context, _ op.Call, in sampleIn) (sampleOut, error) {
		got = in
		return sampleOut{}, nil
	}))
	_, err := set.Run(t.Context(), op.Call{Op: "sample", Args: json.RawMessage(args)})
	return got, err
}

func TestInputSchema(t *testing.T) {
	want := `{"type":"object","properties":{` +
		`"query":{"type":"string","description":"What to look for.","minLength":1,"maxLength":10},` +
		`"limit":{"type":"integer","description":"How many.","minimum":1,"maximum":50,"default":8},` +
		`"mode":{"type":"string","enum":["fast","full"]},` +
		`"origins":{"type":"array","maxItems":2,"items":{"type":"string","enum":["pi","codex"]}},` +
		`"exact":{"type":"boolean"},` +
		`"ratio":{"type":"number","minimum":0,"maximum":1},` +
		`"since":{"type":"string","format":"date-time"},` +
		`"places":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string","description":"Where.","minLength":1},"line":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}},` +
		`"free":{"type":"object"}},"required":["query"],"additionalProperties":false}`
	if d := cmp.Diff(want, string(sample(nil).InputSchema())); d != "" {
		t.Error(d)
	}
}

func TestOutputSchema(t *testing.T) {
	object := `{"type":"object","properties":{"path":{"type":"string","description":"Where.","minLength":1},"line":{"type":"integer","minimum":1}},"required":["path"]}`
	want := `{"type":"object","properties":{` +
		`"outcome":{"type":"string","description":"How it went.","enum":["found","none"]},` +
		`"title":{"type":["string","null"]},` +
		`"items":{"type":"array","items":` + object + `},` +
		`"maybe":` + object + `,` +
		`"counts":{"type":"object","additionalProperties":{"type":"integer"}},` +
		`"raw":{"type":"object"},` +
		`"when":{"type":"string","format":"date-time"},` +
		`"share":{"type":"object","additionalProperties":{"type":"number"}}}}`
	if d := cmp.Diff(want, string(sample(nil).OutputSchema())); d != "" {
		t.Error(d)
	}
}

// The schemas must mean to a full validator what they mean to our own decoder.
func TestSchemasAgreeWithDecoder(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(sample(nil).InputSchema(), &s); err != nil {
		t.Fatal(err)
	}
	full, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range append(append([]string{}, accepted...), refusedArgs()...) {
		var v any
		if json.Unmarshal([]byte(args), &v) != nil {
			continue
		}
		if strings.Contains(args, "null") || strings.Contains(args, "2026") || strings.Contains(args, `"mode":"fast","mode"`) || strings.Contains(args, `\u`) || !utf8.ValidString(args) {
			continue // where we are kinder (null), or stricter (time, repetition, Unicode), on purpose
		}
		_, ours := capture(t, args)
		if theirs := full.Validate(v); (ours == nil) != (theirs == nil) {
			t.Errorf("%s: we say %v, the schema says %v", args, ours, theirs)
		}
	}
}

var accepted = []string{
	`{"query":"x"}`,
	`{"query":"ééééééééé!","limit":50}`,
	`{"query":"x","limit":3.0}`,
	`{"query":"x","limit":null,"exact":null,"free":null,"origins":null}`,
	`{"query":"x","origins":["pi","codex"],"places":[{"path":"a","line":2}],"free":{"a":[1,{"b":null}]}}`,
	`{"query":"x","since":"2026-01-02T03:04:05Z","ratio":0.5,"exact":false}`,
	`{"query":"\ud83d\ude00\\ud800"}`,
}

func TestAccepted(t *testing.T) {
	for _, args := range accepted {
		in, err := capture(t, args)
		if err != nil {
			t.Errorf("%s: %v", args, err)
		}
		if !strings.Contains(args, `"limit"`) && in.Limit != 8 {
			t.Errorf("%s: default not applied: %d", args, in.Limit)
		}
	}
	in, _ := capture(t, accepted[3])
	if d := cmp.Diff(sampleIn{Query: "x", Limit: 8}, in); d != "" {
		t.Error("null is absence:", d)
	}
	in, _ = capture(t, accepted[4])
	want := sampleIn{Query: "x", Limit: 8, Origins: []string{"pi", "codex"}, Places: []inner{{"a", 2}},
		Free: map[string]any{"a": []any{1.0, map[string]any{"b": nil}}}}
	if d := cmp.Diff(want, in); d != "" {
		t.Error(d)
	}
}

var refused = []struct{ args, msg string }{
	{``, "query is required: a string from 1 to 10 characters"},
	{`null`, "query is required: a string from 1 to 10 characters"},
	{`{"query":null}`, "query must be a string from 1 to 10 characters, not null"},
	{`{"query":""}`, "query must be a string from 1 to 10 characters, not 0 characters"},
	{`{"query":"12345678901"}`, "query must be a string from 1 to 10 characters, not 11 characters"},
	{`{"query":7}`, "query must be a string from 1 to 10 characters, not a number"},
	{`{"query":"x","limit":"7"}`, "limit must be a whole number from 1 to 50, not a string"},
	{`{"query":"x","limit":0}`, "limit must be a whole number from 1 to 50, not 0"},
	{`{"query":"x","limit":51}`, "limit must be a whole number from 1 to 50, not 51"},
	{`{"query":"x","limit":1.5}`, "limit must be a whole number from 1 to 50, not 1.5"},
	{`{"query":"x","mode":"slow"}`, `mode must be one of fast, full, not "slow"`},
	{`{"query":"x","mode":"fast","mode":"full"}`, "mode is given twice"},
	{`{"query":"x","origins":"pi"}`, "origins must be a list of at most 2 items, each one of pi, codex, not a string"},
	{`{"query":"x","origins":["pi","omp"]}`, `origins[1] must be one of pi, codex, not "omp"`},
	{`{"query":"x","origins":["pi","pi","pi"]}`, "origins must be a list of at most 2 items, each one of pi, codex, not more"},
	{`{"query":"x","exact":"yes"}`, "exact must be true or false, not a string"},
	{`{"query":"x","ratio":2}`, "ratio must be a number from 0 to 1, not 2"},
	{`{"query":"x","since":"2026"}`, `since must be a time like 2026-01-31T15:04:05Z, not "2026"`},
	{`{"query":"x","places":[{"line":1}]}`, "places[0].path is required: a string of at least 1 characters"},
	{`{"query":"x","places":[{"path":"a","lines":1}]}`, `unknown argument "places[0].lines"`},
	{`{"query":"x","free":[]}`, "free must be an object, not something else"},
	{`{"query":"x","querry":"y"}`, `unknown argument "querry"`},
	{`{"query":"x","Query":"y"}`, `unknown argument "Query"`},
	{`[]`, "the arguments must be an object with query, limit, mode, origins, exact, ratio, since, places, free, not a list"},
	{`{"query":"x"`, "the arguments are not valid JSON"},
	{"{\"query\":\"a\xff\"}", "there is text in query that is not valid Unicode"},
	{`{"query":"\ud800"}`, "there is text in query that is not valid Unicode"},
	{`{"query":"\uDC00\uD800"}`, "there is text in query that is not valid Unicode"},
	{`{"query":"x","places":[{"path":"a"},{"path":"\ud83d"}]}`, "there is text in places[1].path that is not valid Unicode"},
	{`{"query":"x","free":{"a":["\udfff"]}}`, "there is text in free.a[0] that is not valid Unicode"},
	{"{\"query\":\"x\",\"\xfe\":1}", "there is text in the arguments that is not valid Unicode"},
	{`{"query":"\ud800"`, "the arguments are not valid JSON"},
	{`{"query":"x"} {}`, "there is text after the arguments"},
}

func refusedArgs() []string {
	var all []string
	for _, r := range refused {
		if r.args != "" && r.args != "null" {
			all = append(all, r.args)
		}
	}
	return all
}

func TestRefused(t *testing.T) {
	for _, r := range refused {
		_, err := capture(t, r.args)
		if !errors.Is(err, op.InvalidArgument) {
			t.Errorf("%s: got %v", r.args, err)
			continue
		}
		if d := cmp.Diff(r.msg, err.Error()); d != "" {
			t.Errorf("%s: %s", r.args, d)
		}
	}
	deep := `{"query":"x","free":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`
	if _, err := capture(t, deep); !errors.Is(err, op.InvalidArgument) {
		t.Errorf("deep nesting: %v", err)
	}
}

func TestSet(t *testing.T) {
	set := op.NewSet(sample(func(_ context.Context, c op.Call, in sampleIn) (sampleOut, error) {
		c.Report(1, 2, "half")
		if in.Query == "boom" {
			panic("secret")
		}
		return sampleOut{Outcome: c.Caller}, nil
	}))
	if d := cmp.Diff([]string{"sample"}, set.Names()); d != "" {
		t.Error(d)
	}
	var told string
	out, err := op.Recover(set).Run(t.Context(), op.Call{Op: "sample", Caller: "me", Args: json.RawMessage(`{"query":"x"}`),
		Progress: func(_, _ float64, m string) { told = m }})
	if err != nil || out.(sampleOut).Outcome != "me" || told != "half" {
		t.Errorf("%v %v %q", out, err, told)
	}
	_, err = op.Recover(set).Run(t.Context(), op.Call{Op: "sample", Args: json.RawMessage(`{"query":"boom"}`)})
	if !errors.Is(err, fault.Internal) || strings.Contains(err.Error(), "secret") || !strings.Contains(fault.From(err).Err.Error(), "secret") {
		t.Errorf("panic: %v", err)
	}
	if _, err = set.Run(t.Context(), op.Call{Op: "nope"}); !errors.Is(err, op.UnknownOperation) {
		t.Error(err)
	}
	mustPanic(t, "two operations", func() { op.NewSet(sample(nil), sample(nil)) })
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if p := recover(); p == nil || !strings.Contains(p.(string), what) {
			t.Errorf("panic %v, want one about %q", p, what)
		}
	}()
	f()
}

type recursive struct {
	Next []recursive `json:"next"`
}

type cutless struct {
	A string `json:"a"`
}

func (cutless) Fit(int, *op.Detail) any { return cutless{} }

func build[In, Out any](s op.Spec) func() {
	return func() {
		op.New(s, func(context.Context, op.Call, In) (Out, error) { panic("unused") })
	}
}

func TestNewRefusesWhatIsNotPortable(t *testing.T) {
	mustPanic(t, "lower snake case", build[struct{}, struct{}](op.Spec{Name: "Bad", Title: "x", Doc: "x"}))
	mustPanic(t, "title and a doc", build[struct{}, struct{}](op.Spec{Name: "bad"}))
	mustPanic(t, "both read-only", build[struct{}, struct{}](op.Spec{Name: "bad", Title: "x", Doc: "x", ReadOnly: true, Destructive: true}))
	mustPanic(t, "only letters", build[struct {
		A string `json:"x-a"`
	}, struct{}](spec))
	mustPanic(t, "no schema", build[struct {
		A json.RawMessage `json:"a"`
	}, struct{}](spec))
	mustPanic(t, "every client", build[struct {
		A any `json:"a"`
	}, struct{}](spec))
	mustPanic(t, "null is not portable", build[struct {
		A *int `json:"a"`
	}, struct{}](spec))
	mustPanic(t, "no json name", build[struct{ A string }, struct{}](spec))
	mustPanic(t, "bad tag default", build[struct {
		A int `json:"a" default:"9" max:"3"`
	}, struct{}](spec))
	mustPanic(t, "bad tag max", build[struct {
		A string `json:"a" max:"3"`
	}, struct{}](spec))
	mustPanic(t, "recursive", build[recursive, struct{}](spec))
	mustPanic(t, "every client", build[struct{}, struct {
		A any `json:"a"`
	}](spec))
	mustPanic(t, "as it is in a failure", build[struct{}, struct {
		A int `json:"code"`
	}](spec))
	mustPanic(t, "*op.Detail", build[struct{}, cutless](spec))
	mustPanic(t, "not a struct", build[struct{}, []string](spec))
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		sample(nil)
	}
}

func BenchmarkRun(b *testing.B) {
	set := op.Recover(op.NewSet(sample(func(context.Context, op.Call, sampleIn) (sampleOut, error) { return sampleOut{}, nil })))
	args := json.RawMessage(accepted[4])
	for b.Loop() {
		if _, err := set.Run(b.Context(), op.Call{Op: "sample", Args: args}); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, r := range refused {
		f.Add(r.args)
	}
	for _, a := range accepted {
		f.Add(a)
	}
	set := op.NewSet(sample(func(context.Context, op.Call, sampleIn) (sampleOut, error) { return sampleOut{}, nil }))
	f.Fuzz(func(t *testing.T, args string) {
		_, err := set.Run(t.Context(), op.Call{Op: "sample", Args: json.RawMessage(args)})
		if err != nil && !errors.Is(err, op.InvalidArgument) {
			t.Errorf("%q: %v", args, err)
		}
	})
}

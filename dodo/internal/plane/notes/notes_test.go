package notes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/plane/notes"
	"localmcp/internal/op"
)

// run runs an operation as the gate does, without its rules.
func run(s *notes.Service, name, args string) (map[string]any, error) {
	for _, o := range s.Ops() {
		if o.Name != name {
			continue
		}
		b, err := o.Bind(json.RawMessage(args))
		if err != nil {
			return nil, err
		}
		p, err := b.Prepare(context.Background(), contract.Call{Principal: contract.LocalOwner()})
		if err != nil {
			return nil, err
		}
		raw, err := op.Encode(p.Done.Data)
		if err != nil {
			return nil, err
		}
		var data map[string]any
		return data, json.Unmarshal(raw, &data)
	}
	return nil, errors.New("no operation " + name)
}

func must(t *testing.T, s *notes.Service, name, args string) map[string]any {
	t.Helper()
	d, err := run(s, name, args)
	if err != nil {
		t.Fatalf("%s %.200s: %v", name, args, err)
	}
	return d
}

func open(t *testing.T) (*state.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dodo")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := state.Open(context.Background(), dir, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, dir
}

// TestTodos: a workspace has one list, replaced whole, and another workspace has its own.
func TestTodos(t *testing.T) {
	store, _ := open(t)
	s, other := notes.New(store, "ws_a"), notes.New(store, "ws_b")
	if d := must(t, s, "todo_read", `{}`); len(d["todos"].([]any)) != 0 || d["updatedAt"] != nil {
		t.Errorf("%v", d)
	}
	d := must(t, s, "todo_write", `{"todos":[{"id":"1","content":"ünï","status":"in_progress","priority":"high"},{"id":"2","content":"b","status":"pending"}]}`)
	if d["count"] != 2.0 || d["inProgress"] != 1.0 {
		t.Errorf("%v", d)
	}
	d = must(t, s, "todo_read", `{}`)
	if list := d["todos"].([]any); len(list) != 2 || list[0].(map[string]any)["content"] != "ünï" || d["updatedAt"] == nil || d["note"] == nil {
		t.Errorf("%v", d)
	}
	if d := must(t, other, "todo_read", `{}`); len(d["todos"].([]any)) != 0 {
		t.Errorf("another workspace: %v", d)
	}
	must(t, s, "todo_write", `{"todos":[]}`)
	if d := must(t, s, "todo_read", `{}`); len(d["todos"].([]any)) != 0 || d["updatedAt"] == nil {
		t.Errorf("emptied: %v", d)
	}
	long := strings.Repeat(`{"id":"ID","content":"x","status":"pending"},`, 101)
	for _, bad := range []string{
		`{}`, `{"todos":[{"id":"1","content":"","status":"pending"}]}`, `{"todos":[{"id":"1","content":"x","status":"done"}]}`,
		`{"todos":[{"id":"1","content":"x","status":"pending"},{"id":"1","content":"y","status":"pending"}]}`,
		`{"todos":[{"id":"1","content":"` + strings.Repeat("x", 501) + `","status":"pending"}]}`, `{"todos":[` + strings.TrimSuffix(long, ",") + `]}`,
		`{"todos":[{"id":"1","content":"x","status":"pending","more":1}]}`,
	} {
		if _, err := run(s, "todo_write", bad); err == nil {
			t.Errorf("accepted %.80s", bad)
		}
	}
}

// TestHandoffs: the newest is read unless one is named; they are listed; a large one is
// refused; none is no error.
func TestHandoffs(t *testing.T) {
	store, _ := open(t)
	s := notes.New(store, "ws_a")
	if d := must(t, s, "handoff_read", `{}`); d["handoff"] != nil || d["note"] == "" {
		t.Errorf("%v", d)
	}
	var ids []string
	for i := range 3 {
		d := must(t, s, "handoff_write", fmt.Sprintf(`{"handoff":{"goal":"goal %d","nextSteps":["a"],"references":[{"kind":"path","id":"x.go"}]}}`, i))
		ids = append(ids, d["handoffId"].(string))
	}
	d := must(t, s, "handoff_read", `{"handoffId":"`+ids[0]+`"}`)
	if h := d["handoff"].(map[string]any); h["goal"] != "goal 0" || len(h["tests"].([]any)) != 0 || h["nextSteps"].([]any)[0] != "a" {
		t.Errorf("%v", d)
	}
	if d := must(t, s, "handoff_read", `{"list":true,"limit":2}`); len(d["handoffs"].([]any)) != 2 || d["handoff"] != nil {
		t.Errorf("%v", d)
	}
	if d := must(t, s, "handoff_read", `{}`); d["handoffId"] == "" {
		t.Errorf("%v", d)
	}
	if _, err := run(s, "handoff_read", `{"handoffId":"hnd_none"}`); !errors.Is(err, contract.NotFound) {
		t.Errorf("%v", err)
	}
	if _, err := run(notes.New(store, "ws_b"), "handoff_read", `{"handoffId":"`+ids[0]+`"}`); !errors.Is(err, contract.NotFound) {
		t.Errorf("another workspace: %v", err)
	}
	if _, err := run(s, "handoff_read", `{"handoffId":"x","list":true}`); !errors.Is(err, contract.InvalidInput) {
		t.Errorf("%v", err)
	}
	many := strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("é", 1000)+`",`, 40), ",")
	if _, err := run(s, "handoff_write", `{"handoff":{"goal":"g","tests":[`+many+`]}}`); !errors.Is(err, contract.ResourceLimit) {
		t.Errorf("80 KB: %v", err)
	}
}

// TestKeysAreMasked: what looks like a key is not kept in a note.
func TestKeysAreMasked(t *testing.T) {
	store, dir := open(t)
	s := notes.New(store, "ws_a")
	key := "ghp_" + strings.Repeat("a1B2", 9)
	must(t, s, "todo_write", `{"todos":[{"id":"1","content":"use `+key+` there","status":"pending"}]}`)
	must(t, s, "handoff_write", `{"handoff":{"goal":"`+key+`","tests":["with `+key+`"]}}`)
	todo, hand := must(t, s, "todo_read", `{}`), must(t, s, "handoff_read", `{}`)
	if got := todo["todos"].([]any)[0].(map[string]any)["content"]; got != "use [masked: github token] there" {
		t.Errorf("%v", got)
	}
	if got := hand["handoff"].(map[string]any); got["goal"] != "[masked: github token]" || got["tests"].([]any)[0] != "with [masked: github token]" {
		t.Errorf("%v", got)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), key) {
			t.Errorf("%s holds the key", filepath.Base(f))
		}
	}
}

package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localmcp/internal/fault"
	"localmcp/internal/op"
	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/memory"
	"localmcp/mooncite/internal/source"
)

// What the histories of a world say, one session each.
const (
	lantern = ".claude/projects/-srv-lantern/ef070e01-e148-4182-8c76-e5995c050003.jsonl"
	ferry   = ".claude/projects/-srv-ferry/ef070e01-e148-4182-8c76-e5995c050004.jsonl"
	export  = "incoming/chatgpt-share-archive/conversations.json"
)

// A world is a home with invented histories, an engine over them, and a store.
type world struct {
	*testenv.Home
	t      testing.TB
	engine *engine.Engine
	store  *memory.Store
	now    time.Time
	wait   time.Duration // for newer text
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{Home: testenv.NewHome(t), t: t, now: time.Date(2031, 5, 1, 10, 0, 0, 0, time.UTC), wait: 10 * time.Second}
	w.Write(t, lantern, turn("/srv/lantern", 1, "user", "The wick must be trimmed to four millimetres.")+turn("/srv/lantern", 2, "assistant", "Noted: four millimetres, every Monday."))
	w.Write(t, ferry, turn("/srv/ferry", 1, "user", "The ferry leaves at half past six."))
	w.Write(t, export, conversation("hello", "The tide table is pinned in the galley."))
	w.start()
	return w
}

func (w *world) places() source.Places {
	w.t.Helper()
	p, err := source.PlacesOf(w.Env())
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// start opens the engine and the store as a new process would.
func (w *world) start() {
	w.t.Helper()
	p := w.places()
	e, err := engine.Open(w.t.Context(), p, engine.Options{Patience: w.wait})
	if err != nil {
		w.t.Fatal(err)
	}
	w.engine = e
	w.store = memory.New(p.StateDir, "1.2.3", e, func() time.Time { return w.now })
	w.t.Cleanup(func() { _ = w.stop() })
}

// stop closes both, once: a second closing would close what others have opened since.
func (w *world) stop() error {
	e := w.engine
	if e == nil {
		return nil
	}
	w.engine = nil
	return errors.Join(w.store.Close(), e.Close())
}

// restart ends both and opens them again.
func (w *world) restart() {
	w.t.Helper()
	if err := w.stop(); err != nil {
		w.t.Fatal(err)
	}
	w.start()
}

func (w *world) database() string {
	return filepath.Join(w.places().StateDir, "learned-memory.sqlite")
}

func turn(cwd string, n int, role, text string) string {
	return fmt.Sprintf(`{"type":%q,"uuid":"6e02e3d0-14a0-4029-9aad-%012x","parentUuid":null,"cwd":%q,"timestamp":"2031-04-01T08:00:%02dZ","message":{"role":%q,"content":%s}}`+"\n", role, n, cwd, n, role, quoted(text))
}

// conversation is an export with one conversation of these turns.
func conversation(turns ...string) string {
	nodes, last := `"root":{"id":"root","parent":null,"message":null}`, "root"
	for i, text := range turns {
		id := fmt.Sprintf("n%d", i)
		nodes += fmt.Sprintf(`,%q:{"id":%q,"parent":%q,"message":{"id":"m%d","author":{"role":"user"},"create_time":1930000000,"content":{"content_type":"text","parts":[%s]}}}`, id, id, last, i, quoted(text))
		last = id
	}
	return fmt.Sprintf(`[{"title":"Tides","conversation_id":"c1","current_node":%q,"mapping":{%s}}]`, last, nodes)
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a form
	}
	return string(b)
}

// append adds to a file of the home.
func (w *world) append(rel, text string) {
	w.t.Helper()
	f, err := os.OpenFile(w.Path(rel), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = io.WriteString(f, text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// replace changes a file's text by writing it anew.
func (w *world) replace(rel, from, to string) {
	w.t.Helper()
	old, err := os.ReadFile(w.Path(rel))
	if err != nil {
		w.t.Fatal(err)
	}
	if !strings.Contains(string(old), from) {
		w.t.Fatalf("%s does not hold %q", rel, from)
	}
	w.Write(w.t, rel, strings.Replace(string(old), from, to, 1))
}

// evidence is the id of what a history says.
func (w *world) evidence(text string) string {
	w.t.Helper()
	if err := w.engine.Refresh(w.t.Context(), nil); err != nil {
		w.t.Fatal(err)
	}
	out, err := w.engine.Recall(w.t.Context(), engine.RecallIn{Query: `"` + text + `"`})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range out.Candidates {
		if strings.Contains(c.Excerpt, text) {
			return c.EvidenceID
		}
	}
	w.t.Fatalf("no history says %q: %s", text, out.Text())
	return ""
}

func (w *world) project(text string) string {
	w.t.Helper()
	out, err := w.engine.Recall(w.t.Context(), engine.RecallIn{Query: `"` + text + `"`})
	if err != nil || len(out.Candidates) == 0 {
		w.t.Fatalf("%v, %s", err, out.Text())
	}
	return out.Candidates[0].Project
}

// call runs a tool with JSON arguments, as a client would.
func (w *world) call(tool, args string) (any, error) {
	return op.NewSet(w.store.Ops(on)...).Run(context.WithoutCancel(w.t.Context()), op.Call{Op: tool, Args: json.RawMessage(args)})
}

func must[T any](w *world, tool, args string) T {
	w.t.Helper()
	out, err := w.call(tool, args)
	if err != nil {
		f := fault.From(err)
		w.t.Fatalf("%s %s\n%s: %s; %s (%v)", tool, args, f.Code, f.Msg, f.Hint, f.Err)
	}
	return out.(T)
}

// on is a switch that is on.
func on() error { return nil }

func (w *world) write(args string) memory.WriteOut {
	w.t.Helper()
	return must[memory.WriteOut](w, memory.ToolWrite, args)
}

func (w *world) recall(args string) memory.RecallOut {
	w.t.Helper()
	return must[memory.RecallOut](w, memory.ToolRecall, args)
}

func (w *world) inspect(args string) memory.InspectOut {
	w.t.Helper()
	return must[memory.InspectOut](w, memory.ToolInspect, args)
}

func (w *world) delete(args string) memory.DeleteOut {
	w.t.Helper()
	return must[memory.DeleteOut](w, memory.ToolDelete, args)
}

// refused wants a fault with a code whose words hold text, and advice.
func (w *world) refused(code fault.Code, text, tool, args string) {
	w.t.Helper()
	out, err := w.call(tool, args)
	if err == nil {
		w.t.Errorf("%s %s: no fault but %+v", tool, args, out)
		return
	}
	f := fault.From(err)
	if f.Code != code || !strings.Contains(f.Msg, text) {
		w.t.Errorf("%s %s: %s: %s; want %s with %q", tool, args, f.Code, f.Msg, code, text)
	}
	if f.Hint == "" && code != op.InvalidArgument {
		w.t.Errorf("%q says no way out", f.Msg)
	}
}

// unanchored makes a memory that rests on nothing.
func (w *world) unanchored(text string) memory.WriteOut {
	w.t.Helper()
	return w.write(fmt.Sprintf(`{"operation":"create","interpretation":%s,"scope":{"kind":"global"},"provenance":{"kind":"unanchored","basis_note":"told by hand"}}`, quoted(text)))
}

// anchored makes a memory that rests on what histories say.
func (w *world) anchored(text string, said ...string) memory.WriteOut {
	w.t.Helper()
	var ids []string
	for _, s := range said {
		ids = append(ids, quoted(w.evidence(s)))
	}
	return w.write(fmt.Sprintf(`{"operation":"create","interpretation":%s,"provenance":{"kind":"verified","evidence_ids":[%s]}}`, quoted(text), strings.Join(ids, ",")))
}

// derived makes a memory from the current revisions of others.
func (w *world) derived(text, relation string, parents ...memory.WriteOut) memory.WriteOut {
	w.t.Helper()
	return w.write(fmt.Sprintf(`{"operation":"create","interpretation":%s,"scope":{"kind":"global"},"provenance":{"kind":"derived","parents":[%s]}}`, quoted(text), parentsOf(relation, parents...)))
}

func parentsOf(relation string, parents ...memory.WriteOut) string {
	var list []string
	for _, p := range parents {
		list = append(list, fmt.Sprintf(`{"memory_id":%q,"revision":%d,"relation":%q,"reason":"because of it"}`, p.MemoryID, p.Revision, relation))
	}
	return strings.Join(list, ",")
}

func (w *world) archive(m memory.WriteOut, version int) {
	w.t.Helper()
	w.write(fmt.Sprintf(`{"operation":"archive","memory_id":%q,"expected_revision":%d,"expected_metadata_version":%d}`, m.MemoryID, m.Revision, version))
}

// encoded is an answer as JSON with its fields in the order in which they are written,
// sorted with its members in the order of the alphabet.
func encoded(t testing.TB, v any) string {
	t.Helper()
	data, err := op.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func sorted(t testing.TB, v any) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(encoded(t, v)), &m); err != nil {
		t.Fatal(err)
	}
	return encoded(t, m)
}

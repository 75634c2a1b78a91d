package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/source"
)

// Where the tests' histories are, below a home.
const (
	piDir      = ".pi/agent/sessions/--w-app--/"
	ompDir     = ".omp/agent/sessions/-w-app/"
	claudeDir  = ".claude/projects/-w-app/"
	codexDir   = ".codex/sessions/2031/05/01/"
	chatgptDir = "incoming/chatgpt-share-archive/"
)

// A world is a home with histories and one engine that reads them.
type world struct {
	*testenv.Home
	t      testing.TB
	engine *engine.Engine
}

func newWorld(t testing.TB) *world { return &world{Home: testenv.NewHome(t), t: t} }

func (w *world) places() source.Places {
	w.t.Helper()
	p, err := source.PlacesOf(w.Env())
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// open makes an engine that is closed with the test.
func (w *world) open() *engine.Engine {
	w.t.Helper()
	e, err := engine.Open(w.t.Context(), w.places(), engine.Options{Patience: 5 * time.Second})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { e.Close() })
	return e
}

// e is the world's engine, opened when first needed.
func (w *world) e() *engine.Engine {
	if w.engine == nil {
		w.engine = w.open()
	}
	return w.engine
}

// reopen ends the world's engine and opens another, as a new process would.
func (w *world) reopen() {
	w.t.Helper()
	if err := w.e().Close(); err != nil {
		w.t.Fatal(err)
	}
	w.engine = nil
}

// ask recalls, once everything was read.
func (w *world) ask(in engine.RecallIn) engine.RecallOut {
	w.t.Helper()
	for range 200 {
		out, err := w.e().Recall(w.t.Context(), in)
		if err != nil {
			w.t.Fatal(err)
		}
		if st := out.Searched; st.Pending == 0 || !strings.Contains(strings.Join(out.Warnings, "\n"), "still being read") {
			return out
		}
		if err := w.e().Refresh(w.t.Context(), nil); err != nil {
			w.t.Fatal(err)
		}
	}
	w.t.Fatal("the histories are never read")
	return engine.RecallOut{}
}

func (w *world) recall(query string) engine.RecallOut {
	w.t.Helper()
	return w.ask(engine.RecallIn{Query: query})
}

// one recalls and returns the first candidate, which has to be there.
func (w *world) one(query string) engine.Candidate {
	w.t.Helper()
	out := w.recall(query)
	if len(out.Candidates) == 0 {
		w.t.Fatalf("recall %q: %s, %v", query, out.Outcome, out.Warnings)
	}
	return out.Candidates[0]
}

// absent recalls and wants a proof of absence.
func (w *world) absent(query string) {
	w.t.Helper()
	if out := w.recall(query); out.Outcome != engine.NoMatch || !out.Conclusive || out.Next != nil {
		w.t.Errorf("recall %q: %s, conclusive %t, %v", query, out.Outcome, out.Conclusive, out.Warnings)
	}
}

func (w *world) inspect(id string) engine.InspectOut {
	w.t.Helper()
	out, err := w.e().Inspect(w.t.Context(), engine.InspectIn{EvidenceID: id})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) verified(id string) engine.InspectOut {
	w.t.Helper()
	out := w.inspect(id)
	if out.Outcome != engine.Verified || !out.Conclusive || out.Target == nil {
		w.t.Fatalf("inspect %s: %s: %s", id, out.Outcome, out.Meaning)
	}
	return out
}

func (w *world) status() engine.StatusOut {
	w.t.Helper()
	if err := w.e().Refresh(w.t.Context(), nil); err != nil {
		w.t.Fatal(err)
	}
	out, err := w.e().Status(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) rebuild() engine.RebuildOut {
	w.t.Helper()
	out, err := w.e().Rebuild(w.t.Context(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) append(rel, text string) {
	w.t.Helper()
	f, err := os.OpenFile(w.Path(rel), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		w.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// overwrite changes a file in place: the same inode, other bytes.
func (w *world) overwrite(rel, text string) {
	w.t.Helper()
	if err := os.WriteFile(w.Path(rel), []byte(text), 0); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(rel string) string {
	w.t.Helper()
	b, err := os.ReadFile(w.Path(rel))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

func (w *world) remove(rel string) {
	w.t.Helper()
	if err := os.RemoveAll(w.Path(rel)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) touch(rel string, at time.Time) {
	w.t.Helper()
	if err := os.Chtimes(w.Path(rel), at, at); err != nil {
		w.t.Fatal(err)
	}
}

// lines makes JSONL of values.
func lines(values ...any) string {
	var b strings.Builder
	for _, v := range values {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		b.Write(data)
		b.WriteByte('\n')
	}
	return b.String()
}

type obj = map[string]any

// at is a time of the tests' invented day, by its second.
func at(second int) string {
	return time.Date(2031, 5, 1, 10, 0, second, 0, time.UTC).Format("2006-01-02T15:04:05.000Z")
}

// say is one turn of a conversation; kind is user, assistant or tool.
type say struct{ who, text string }

// turns gives the records of turns as an origin writes them, entry ids with a prefix,
// counted from first.
func turns(origin, prefix string, first int, all ...say) string {
	var out []any
	for i, s := range all {
		n := first + i
		id, parent := fmt.Sprintf("%s%d", prefix, n), any(fmt.Sprintf("%s%d", prefix, n-1))
		if n == 0 {
			parent = nil
		}
		switch origin {
		case "pi", "omp":
			m := obj{"role": s.who, "content": s.text}
			if s.who == "tool" {
				m = obj{"role": "toolResult", "toolCallId": "t", "toolName": "bash", "content": []any{obj{"type": "text", "text": s.text}}}
			}
			out = append(out, obj{"type": "message", "id": id, "parentId": parent, "timestamp": at(n), "message": m})
		case "claude-code":
			rec := obj{"type": s.who, "uuid": id, "parentUuid": parent, "sessionId": "s", "cwd": "/w/app", "timestamp": at(n), "message": obj{"role": s.who, "content": s.text}}
			if s.who == "tool" {
				rec["type"] = "user"
				rec["message"] = obj{"role": "user", "content": []any{obj{"type": "tool_result", "tool_use_id": "t", "content": s.text}}}
			}
			out = append(out, rec)
		case "codex":
			p := obj{"type": "user_message", "message": s.text}
			kind := "event_msg"
			switch s.who {
			case "assistant":
				p["type"] = "agent_message"
			case "tool":
				kind, p = "response_item", obj{"type": "function_call_output", "call_id": "c", "output": s.text}
			}
			out = append(out, obj{"timestamp": at(n), "type": kind, "payload": p})
		}
	}
	return lines(out...)
}

// header is the first line of a session.
func header(origin, session string) string {
	switch origin {
	case "pi":
		return lines(obj{"type": "session", "version": 3, "id": session, "timestamp": at(0), "cwd": "/w/app"})
	case "omp":
		return lines(obj{"type": "title", "v": 1, "title": "A title", "source": "auto", "pad": "      "}, obj{"type": "session", "version": 3, "id": session, "timestamp": at(0), "cwd": "/w/app"})
	case "codex":
		return lines(obj{"timestamp": at(0), "type": "session_meta", "payload": obj{"id": session, "cwd": "/w/app"}})
	}
	return ""
}

// place is where a session of an origin is, below the home.
func place(origin, name string) string {
	switch origin {
	case "pi":
		return piDir + name + ".jsonl"
	case "omp":
		return ompDir + name + ".jsonl"
	case "claude-code":
		return claudeDir + name + ".jsonl"
	case "codex":
		return codexDir + "rollout-" + name + ".jsonl"
	}
	return chatgptDir + name + "/conversations.json"
}

// session writes a session of an origin and returns its place.
func (w *world) session(origin, name string, all ...say) string {
	w.t.Helper()
	rel := place(origin, name)
	w.Write(w.t, rel, header(origin, name)+turns(origin, name+"-", 0, all...))
	return rel
}

// jsonlOrigins are those whose sessions are files of lines.
var jsonlOrigins = []string{"pi", "omp", "claude-code", "codex"}

// conversation is one of a ChatGPT export.
func conversation(id string, all ...say) obj {
	mapping := obj{id + "-root": obj{"id": id + "-root", "parent": nil, "children": []any{id + "-n0"}, "message": nil}}
	last := id + "-root"
	for i, s := range all {
		node := fmt.Sprintf("%s-n%d", id, i)
		mapping[node] = obj{"id": node, "parent": last, "children": []any{}, "message": obj{"id": fmt.Sprintf("%s-m%d", id, i), "author": obj{"role": s.who},
			"create_time": 1935396000 + i, "content": obj{"content_type": "text", "parts": []any{s.text}}}}
		last = node
	}
	return obj{"title": "Talk " + id, "conversation_id": id, "current_node": last, "mapping": mapping}
}

func export(all ...obj) string {
	data, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// whole is an answer as JSON and as text.
func whole(t testing.TB, v interface{ Text() string }) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + v.Text()
}

func excerpts(out engine.RecallOut) []string {
	var all []string
	for _, c := range out.Candidates {
		all = append(all, c.Excerpt)
	}
	return all
}

func ids(out engine.RecallOut) []string {
	var all []string
	for _, c := range out.Candidates {
		all = append(all, c.EvidenceID)
	}
	return all
}

// copyTree copies histories, so that they can be changed.
func copyTree(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(to, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(name, 0o700)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func registration(w *world, origin, rel string) source.Registration {
	return source.Registration{Origin: evidence.Origin(origin), Dir: w.Path(rel)}
}

// past is a time in which a file was as good as never touched lately.
func (w *world) past() time.Time { return time.Now().Add(-24 * time.Hour) }

// sorted is an answer as JSON whose names are in the order of the alphabet, as some
// clients store it.
func sorted(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(lines(m), "\n")
}

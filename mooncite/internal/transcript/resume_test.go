package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"localmcp/mooncite/internal/evidence"
)

// The property of a parser that stops and goes on: wherever a file was cut, the second
// reading gives with the first what one reading gives, labels included, or it says so
// ([Result.Relabel], [ErrRestart]). It is held over made-up files: a story is bytes,
// two for a line, so that the fuzzer can search among all of them.

// A story writes the lines of a file. Its records are named r0, r1 and so on.
type story struct {
	lines []string
	ids   []string
	named string // the newest record of the main chain
	side  string // the newest sub-agent record
}

// pick names a record: mostly the newest, else any, at times one that is nowhere.
func (s *story) pick(newest string, arg int) string {
	switch {
	case newest == "" || arg%16 == 15:
		return ""
	case arg%16 == 14:
		return "nowhere"
	case arg%16 < 8:
		return newest
	}
	return s.ids[(arg/16*7+arg)%len(s.ids)]
}

func (s *story) id() string {
	id := fmt.Sprintf("r%d", len(s.ids))
	s.ids = append(s.ids, id)
	return id
}

func (s *story) line(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// odd writes a line that was there before, a torn one, or one of those given.
func (s *story) odd(arg int, lines ...string) {
	switch n := arg % (4 + len(lines)); {
	case n >= 4:
		s.lines = append(s.lines, lines[n-4])
	case n == 3 || len(s.lines) == 0:
		s.lines = append(s.lines, `{"type":"user","uuid":"torn`)
	default:
		s.lines = append(s.lines, s.lines[arg/8%len(s.lines)])
	}
}

// ref writes a reference: null for none.
func ref(id string) string {
	if id == "" {
		return "null"
	}
	return `"` + id + `"`
}

// claudeStory makes a Claude Code file: answers in several records, results, notices,
// edits, compactions, sub-agents in the file, chosen leaves, queued turns and damage.
func claudeStory(in []byte) []string {
	s := &story{}
	for i := 0; i+1 < len(in) && len(s.lines) < 100; i += 2 {
		op, arg := int(in[i]), int(in[i+1])
		parent := s.pick(s.named, arg)
		switch op % 20 {
		case 0, 1, 2:
			s.named = s.id()
			s.line(`{"type":"user","uuid":"%s","parentUuid":%s,"message":{"role":"user","content":"words of %[1]s"}}`, s.named, ref(parent))
		case 3, 4, 5, 6: // an answer, or one more record of it
			s.named = s.id()
			s.line(`{"type":"assistant","uuid":"%s","parentUuid":%s,"message":{"id":"msg%d","role":"assistant","content":[{"type":"text","text":"words of %[1]s"}]}}`, s.named, ref(parent), op/20%4)
		case 7: // one that says nothing
			s.named = s.id()
			s.line(`{"type":"assistant","uuid":"%s","parentUuid":%s,"message":{"id":"msg%d","role":"assistant","content":[{"type":"thinking","thinking":"hm"}]}}`, s.named, ref(parent), op/20%4)
		case 8, 9: // a result; the next turn may hang on it, or not
			id := s.id()
			s.line(`{"type":"user","uuid":"%s","parentUuid":%s,"message":{"role":"user","content":[{"type":"tool_result","content":"result %[1]s"}]}}`, id, ref(parent))
			if op/20%2 == 0 {
				s.named = id
			}
		case 10, 11:
			id := s.id()
			s.line(`{"type":"system","subtype":"informational","uuid":"%s","parentUuid":%s,"content":"notice %[1]s"}`, id, ref(parent))
			if op/20%2 == 0 {
				s.named = id
			}
		case 12: // a compaction
			s.named = s.id()
			s.line(`{"type":"system","subtype":"compact_boundary","uuid":"%s","parentUuid":null,"logicalParentUuid":%s,"content":"compacted"}`, s.named, ref(parent))
		case 13:
			s.named = s.id()
			s.line(`{"type":"user","uuid":"%s","parentUuid":%s,"isCompactSummary":true,"message":{"role":"user","content":"summary %[1]s"}}`, s.named, ref(parent))
		case 14, 15: // a sub-agent: goes on with its chain, or starts anywhere
			from := s.side
			if arg%4 == 0 {
				from = parent
			}
			s.side = s.id()
			if op/20%2 == 0 {
				s.line(`{"type":"user","isSidechain":true,"uuid":"%s","parentUuid":%s,"message":{"role":"user","content":"task %[1]s"}}`, s.side, ref(from))
			} else {
				s.line(`{"type":"assistant","isSidechain":true,"uuid":"%s","parentUuid":%s,"message":{"id":"msg%d","role":"assistant","content":[{"type":"text","text":"words of %[1]s"}]}}`, s.side, ref(from), op/40%4)
			}
		case 16:
			s.line(`{"type":"last-prompt","leafUuid":%s}`, ref(parent))
			if parent != "nowhere" && parent != "" {
				s.named = parent
			}
		case 17:
			switch arg % 4 {
			case 0, 1:
				s.line(`{"type":"queue-operation","operation":"enqueue","content":"typed %d"}`, arg/4%3)
			case 2:
				s.line(`{"type":"queue-operation","operation":"%s","content":"typed %d"}`, []string{"dequeue", "remove", "popAll"}[arg/4%3], arg/16%3)
			case 3:
				s.named = s.id()
				s.line(`{"type":"user","uuid":"%s","parentUuid":%s,"message":{"role":"user","content":"typed %d"}}`, s.named, ref(parent), arg/16%3)
			}
		case 18:
			s.odd(arg, `{"type":"ai-title","aiTitle":"a title"}`, `{"type":"custom-title","customTitle":"a name"}`, `{"type":"what","uuid":"x"}`)
		case 19:
			s.named = s.id()
			s.line(`{"type":"user","uuid":"%s","parentUuid":%s,"cwd":"/w/%d","forkedFrom":{"sessionId":"f%[3]d"},"message":{"role":"user","content":"elsewhere %[1]s"}}`, s.named, ref(parent), arg%3)
		}
	}
	return s.lines
}

// piStory makes a Pi or OMP file: branches, compactions, titles, records without ids,
// a header that comes late, and damage.
func piStory(in []byte) []string {
	s := &story{}
	for i := 0; i+1 < len(in) && len(s.lines) < 100; i += 2 {
		op, arg := int(in[i]), int(in[i+1])
		if i == 0 && op%4 > 0 {
			s.line(`{"type":"session","version":%d,"id":"own","timestamp":"2031-05-01T10:00:00Z","cwd":"/w"%s}`, 1+arg%3, []string{"", `,"parentSession":"other"`}[op%2])
			continue
		}
		parent := s.pick(s.named, arg)
		at := fmt.Sprintf("2031-05-01T10:00:%02dZ", arg%60)
		if op%3 == 0 {
			at = "2031-04-01T10:00:00Z" // copied from the parent session
		}
		switch op % 12 {
		case 0, 1, 2, 3, 4:
			s.named = s.id()
			s.line(`{"type":"message","id":"%s","parentId":%s,"timestamp":"%s","message":{"role":"%s","content":"words of %[1]s"}}`, s.named, ref(parent), at, []string{"user", "assistant", "toolResult"}[op/12%3])
		case 5:
			s.named = s.id()
			s.line(`{"type":"compaction","id":"%s","parentId":%s,"summary":"summary %[1]s"}`, s.named, ref(parent))
		case 6:
			s.named = s.id()
			s.line(`{"type":"model_change","id":"%s","parentId":%s}`, s.named, ref(parent))
		case 7:
			s.named = s.id()
			s.line(`{"type":"session_info","id":"%s","parentId":%s,"name":"name %d"}`, s.named, ref(parent), arg%3)
		case 8:
			s.line(`{"type":"message","timestamp":"%s","message":{"role":"user","content":"old words %d"}}`, at, arg)
		case 9:
			s.line(`{"type":"session","version":3,"id":"late%d","cwd":"/late","parentSession":"other"}`, arg%3)
		case 10, 11:
			s.odd(arg, `{"type":"title","v":1,"title":"a title"}`, `{"type":"what","id":"x"}`, `{"type":"message","id":"bad","parentId":7}`)
		}
	}
	return s.lines
}

// codexStory makes a rollout: events and their doubles, turns undone, copied parts,
// directories told late, headers, and damage.
func codexStory(in []byte) []string {
	s := &story{}
	uuid := func(ms int) string { return fmt.Sprintf("0000%04x-%04x-7000-8000-000000000000", ms, ms) }
	for i := 0; i+1 < len(in) && len(s.lines) < 100; i += 2 {
		op, arg := int(in[i]), int(in[i+1])
		if i == 0 && op%4 > 0 {
			s.line(`{"timestamp":"2026-03-01T10:00:00Z","type":"session_meta","payload":{"id":"%s"%s%s}}`, []string{uuid(8), "11111111-1111-4111-8111-111111111111"}[arg%2],
				[]string{"", `,"cwd":"/w/r"`}[arg/2%2], []string{"", `,"forked_from_id":"other"`, `,"history_mode":"paginated"`, `,"parent_thread_id":"up"`}[arg/4%4])
			continue
		}
		at := fmt.Sprintf("2026-03-01T10:%02d:00Z", len(s.lines)/4)
		word := fmt.Sprintf("w%d", arg%5)
		payload := func(kind, format string, args ...any) {
			s.line(`{"timestamp":"%s","type":"%s","payload":{%s}}`, at, kind, fmt.Sprintf(format, args...))
		}
		switch op % 20 {
		case 0, 1:
			payload("event_msg", `"type":"user_message","message":"%s"`, word)
		case 2, 3:
			payload("response_item", `"type":"message","role":"user","content":[{"type":"input_text","text":"%s"}]`, word)
		case 4, 5:
			payload("event_msg", `"type":"agent_message","message":"%s"`, word)
		case 6, 7:
			payload("response_item", `"type":"message","role":"assistant","content":[{"type":"output_text","text":"%s"}]`, word)
		case 8:
			payload("event_msg", `"type":"item_completed","item":{"type":"%s","content":[{"type":"Text","text":"%s"}]}`, []string{"AgentMessage", "UserMessage"}[arg/8%2], word)
		case 9:
			payload("response_item", `"type":"function_call_output","call_id":"%s","output":"o"`, word)
		case 10:
			payload("event_msg", `"type":"exec_command_end","call_id":"%s","command":["c"],"aggregated_output":"o"`, word)
		case 11:
			payload("event_msg", `"type":"task_complete"`)
		case 12, 13:
			payload("event_msg", `"type":"thread_rolled_back","num_turns":%d`, arg%4)
		case 14:
			payload("turn_context", `"turn_id":"%s"`, uuid(arg%16))
		case 15:
			payload("compacted", `"message":"summary %s"`, word)
		case 16:
			payload("response_item", `"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context><cwd>/w/%s</cwd></environment_context>"}]`, word)
		case 17:
			payload("session_meta", `"id":"%s","cwd":"/late"`, uuid(arg%4))
		case 18:
			s.line(`{"type":"message","role":"user","content":[{"type":"input_text","text":"bare %s"}]}`, word)
		case 19:
			s.odd(arg, `{"timestamp":"x","type":"event_msg","payload":{"type":"thread_name_updated","thread_name":"a name"}}`, `{"type":"what"}`, `{"record_type":"state"}`)
		}
	}
	return s.lines
}

// stories are the files that grow line by line.
var stories = map[string]struct {
	file File
	tell func([]byte) []string
}{
	"claude": {claudeFile, claudeStory},
	"codex":  {File{evidence.Codex, "2026/03/01/rollout-2026-03-01T10-00-00-00000008-0008-7000-8000-000000000000.jsonl"}, codexStory},
	"omp":    {File{evidence.OMP, "-w/2031_s1/Scout.jsonl"}, piStory},
	"pi":     {File{evidence.Pi, "--w--/2031_s1.jsonl"}, piStory},
}

// sameTree reports whether a state that came about in steps has the branches of one
// that came at once. It may remember less of the tip, and may suspect more names of
// having been there: both only make it ask sooner.
func sameTree(steps, once []byte) bool {
	var a, b struct{ Tree treeState }
	if json.Unmarshal(steps, &a) != nil || json.Unmarshal(once, &b) != nil {
		return true // of an origin without a tree
	}
	for _, id := range a.Tree.Tip.IDs {
		if !slices.Contains(b.Tree.Tip.IDs, id) {
			return false
		}
	}
	return a.Tree.Leaf == b.Tree.Leaf && a.Tree.Gap == b.Tree.Gap && a.Tree.Tip.Group == b.Tree.Tip.Group && reflect.DeepEqual(a.Tree.Lost, b.Tree.Lost)
}

// An event is what [Scan] tells a parser.
type event struct {
	rec    Record
	damage int64 // bytes that hold no record; 0: rec is one
}

// events keeps what Scan finds, to be told to parsers many times.
type events []event

func (v *events) Record(r *Record, _ func(*Record, *Entry) error) error {
	c := *r
	c.Bytes = slices.Clone(r.Bytes)
	*v = append(*v, event{rec: c})
	return nil
}

func (v *events) Damaged(line, start, n int64, _ bool) {
	*v = append(*v, event{rec: Record{Line: line, Start: start}, damage: n})
}

func (v *events) Finish(func(*Record, *Entry) error) (Result, error) { return Result{}, nil }

// A told is what a parser gave for some events.
type told struct {
	all []given // by place
	res Result
}

func tell(f File, state []byte, evs []event) (out told, err error) {
	p, err := New(f, state)
	if err != nil {
		return out, err
	}
	emit := func(r *Record, e *Entry) error {
		rec := *r
		rec.Bytes, rec.checked = nil, false
		out.all = append(out.all, given{Rec: rec, Entry: *e, Off: e.Off})
		return nil
	}
	for i := range evs {
		if v := &evs[i]; v.damage > 0 {
			p.Damaged(v.rec.Line, v.rec.Start, v.damage, false)
		} else if err := p.Record(&v.rec, emit); err != nil {
			return out, err
		}
	}
	out.res, err = p.Finish(emit)
	for i := range out.all {
		out.all[i].Off = out.all[i].Off || out.res.OffBranch.Has(i)
	}
	return out, err
}

// checkStory holds the property for every cut of a file, and for three readings.
func checkStory(tb testing.TB, f File, lines []string, third int) {
	tb.Helper()
	var evs events
	if _, err := Scan(strings.NewReader(strings.Join(lines, "\n")+"\n"), f, Position{}, &evs, nil); err != nil {
		tb.Fatal(err)
	}
	until := make([]told, len(evs)+1) // one reading up to each place
	for i := range until {
		var err error
		if until[i], err = tell(f, nil, evs[:i]); err != nil {
			return
		}
	}
	for cut := range evs {
		checkResumed(tb, f, evs, cut, len(evs), until[cut], until)
		// What was read in two goes on in a third; nothing may add up.
		to := cut + (len(evs)-cut)*third/256
		if middle := checkResumed(tb, f, evs, cut, to, until[cut], until); middle != nil {
			checkResumed(tb, f, evs, to, len(evs), *middle, until)
		}
	}
}

// checkResumed goes on from head, at the event from, and compares with what one reading
// gave. It returns both together, nil when the parser asked for another reading.
func checkResumed(tb testing.TB, f File, evs []event, from, to int, head told, until []told) *told {
	tb.Helper()
	if head.res.State == nil {
		return nil
	}
	tail, err := tell(f, head.res.State, evs[from:to])
	if errors.Is(err, ErrRestart) {
		return nil
	}
	whole := until[to]
	both := told{all: slices.Concat(head.all, tail.all), res: tail.res}
	if tail.res.Relabel {
		whole.all = slices.Clone(whole.all)
		for i := range whole.all {
			whole.all[i].Off = false
		}
		for i := range both.all {
			both.all[i].Off = false
		}
	}
	byPlace := func(a, b given) int { return cmp.Compare(a.Rec.Start, b.Rec.Start) }
	both.all = firsts(both.all)
	slices.SortStableFunc(whole.all, byPlace)
	slices.SortStableFunc(both.all, byPlace)
	what := ""
	switch {
	case err != nil:
		what = err.Error()
	case !reflect.DeepEqual(whole.all, both.all):
		what = "entries (-whole +resumed):\n" + diff.Diff(whole.all, both.all, diff.AllowUnexported(Record{}))
	case tail.res.Relabel:
		return nil
	case whole.res.Info != both.res.Info:
		what = "info (-whole +resumed):\n" + diff.Diff(whole.res.Info, both.res.Info)
	case !sameTree(both.res.State, whole.res.State):
		what = "state:\n-" + string(whole.res.State) + "\n+" + string(both.res.State)
	}
	if what != "" {
		for i := range to {
			if i == from {
				what += "\n-- cut --"
			}
			what += "\n" + string(evs[i].rec.Bytes)
		}
		tb.Fatal(what)
	}
	return &both
}

// Appends that reach back behind what a saved state remembers.
func TestResumeReachesBack(t *testing.T) {
	codexFile := File{Origin: evidence.Codex, Rel: "2031/rollout-a.jsonl"}
	for name, c := range map[string]struct {
		file  File
		lines []string
	}{
		"rollback while the directory is unknown": {codexFile, []string{
			`{"type":"session_meta","payload":{"id":"abc"}}`, cxUser, cxUndo, strings.Replace(cxUser, "asked", "asked better", 1),
		}},
		"a compaction hangs on a record behind the tip": {claudeFile, []string{
			said("u1", ""), said("u2", "u1"), said("u3", "u2"),
			`{"type":"system","subtype":"compact_boundary","uuid":"c","parentUuid":null,"logicalParentUuid":"u1","content":"compacted"}`, said("u4", "c"),
		}},
		"one more record of an older answer": {claudeFile, []string{
			said("u1", ""), answered("a1", "u1", "m1"), said("u2", "a1"), said("u3", "u2"), answered("a2", "a1", "m1"), said("u4", "u3"),
		}},
		"one more record of an older answer, elsewhere": {claudeFile, []string{
			said("u1", ""), answered("a1", "u1", "m1"), said("u2", "a1"), said("u3", "u2"), answered("a2", "u3", "m1"), said("u4", "u3"),
		}},
		"one more record of an answer that was lost": {claudeFile, []string{
			said("u1", ""), answered("a1", "u1", "m1"), said("u2", "u1"), answered("a2", "u2", "m1"), said("u3", "a2"),
		}},
		"an answer that reaches into a lost branch": {claudeFile, []string{
			said("u1", ""), said("u2", "u1"), said("u3", "u1"), answered("a1", "u3", "m1"), answered("a2", "u2", "m1"), said("u4", "a1"),
		}},
		"nothing but a sub-agent before": {claudeFile, []string{
			strings.Replace(said("s1", ""), "{", `{"isSidechain":true,`, 1), strings.Replace(said("s2", "s1"), "{", `{"isSidechain":true,`, 1),
			strings.Replace(said("s3", "s1"), "{", `{"isSidechain":true,`, 1), said("u1", "s2"), said("u2", "u1"),
		}},
		"a record that came again": {claudeFile, []string{
			said("u1", ""), said("u2", "u1"), said("u1", ""), answered("a1", "u2", "m1"),
			strings.Replace(said("r1", "u1"), `"words"`, `[{"type":"tool_result","content":"words"}]`, 1),
		}},
		"a fork of the year 1970": {File{evidence.Pi, "a.jsonl"}, []string{
			`{"type":"session","version":3,"id":"s","timestamp":"1970-01-01T00:00:00Z","parentSession":"t"}`,
			`{"type":"message","id":"a","timestamp":"1969-01-01T00:00:00Z","message":{"role":"user","content":"words"}}`,
		}},
		"more turns typed than are held": {claudeFile, manyTyped()},
	} {
		t.Run(name, func(t *testing.T) {
			checkStory(t, c.file, c.lines, 128)
		})
	}
}

// manyTyped is a queue that is too full, with turns taken out and sent after all.
func manyTyped() (lines []string) {
	text := func(i int) string { return fmt.Sprint("turn ", i, strings.Repeat("x", 5000)) }
	for i := range 60 {
		lines = append(lines, typed("enqueue", text(i)))
		switch i % 5 {
		case 1:
			lines = append(lines, typed("remove", text(i)))
		case 3:
			lines = append(lines, strings.Replace(said(fmt.Sprint("u", i), ""), "words", text(i-2), 1))
		}
	}
	return append(lines, typed("popAll", ""), answered("a", "", "m"))
}

// said and answered are lines of Claude Code.
func said(id, parent string) string {
	return fmt.Sprintf(`{"type":"user","uuid":"%s","parentUuid":%s,"message":{"role":"user","content":"words"}}`, id, ref(parent))
}

func answered(id, parent, group string) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":"%s","parentUuid":%s,"message":{"id":"%s","role":"assistant","content":[{"type":"text","text":"answer"}]}}`, id, ref(parent), group)
}

// TestStories holds the property over many made-up files.
func TestStories(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			for seed := range 300 {
				rnd := rand.New(rand.NewPCG(uint64(seed), 7))
				in := make([]byte, 2*(2+rnd.IntN(28)))
				for i := range in {
					in[i] = byte(rnd.Uint32())
				}
				checkStory(t, s.file, s.tell(in), rnd.IntN(256))
			}
		})
	}
}

// FuzzStories looks for a made-up file that breaks the property.
func FuzzStories(f *testing.F) {
	names := slices.Sorted(maps.Keys(stories))
	for i := range names {
		for seed := range 8 {
			rnd := rand.New(rand.NewPCG(uint64(seed), 9))
			in := []byte{byte(i), byte(rnd.Uint32())}
			for range 40 {
				in = append(in, byte(rnd.Uint32()))
			}
			f.Add(in)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 2 {
			s := stories[names[int(in[0])%len(names)]]
			checkStory(t, s.file, s.tell(in[2:]), int(in[1]))
		}
	})
}

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"localmcp/internal/mcptest"
	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/memory"
)

// memoryTool calls a tool of learned memory and wants an answer.
func memoryTool[T any](c *client, tool, args string) T {
	c.t.Helper()
	r := c.tool(tool, args)
	if !strings.HasPrefix(r.text(), "Mooncite learned-memory ") {
		c.t.Errorf("%s: the text does not say what it is: %.100s", tool, r.text())
	}
	return decode[T](c.t, string(r.Data))
}

// failed calls a tool and wants a coded failure that says the way out.
func (c *client) failed(code, words, tool, args string) {
	c.t.Helper()
	r := result[toolResult](c.t, c.Call("tools/call", toolParams(tool, args)))
	f := decode[struct{ Code, Message, Hint string }](c.t, string(r.Data))
	if !r.IsError || f.Code != code || !strings.Contains(f.Message, words) || f.Hint == "" {
		c.t.Errorf("%s %s: %+v, want %s with %q", tool, args, r, code, words)
	}
}

func (c *client) create(text, evidenceID string) memory.WriteOut {
	c.t.Helper()
	return memoryTool[memory.WriteOut](c, memory.ToolWrite, fmt.Sprintf(`{"operation":"create","interpretation":%s,"provenance":{"kind":"verified","evidence_ids":[%q]}}`, quoted(text), evidenceID))
}

// The way an agent goes: find and verify evidence, write down what it means, find that
// again, correct it, hand it to the owner as a skill, and delete it.
func TestMemoryEndToEnd(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.enableMemory()
	c := w.serve()
	id := c.finds("ECONNRESET in parseManifestChunk").EvidenceID
	m := c.create("The manifest parser gives up on a reset.\nRetry it.", id)
	if m.Outcome != "created" || m.ProvenanceOutcome != "verified" || m.Scope.Kind != "project" {
		t.Fatalf("%s", m.Text())
	}
	c.failed(string(evidence.CodeConflict), "expected_revision is 7, but the current one is 1", memory.ToolWrite, fmt.Sprintf(`{"operation":"revise","memory_id":%q,"expected_revision":7,"interpretation":"x","provenance":{"kind":"unanchored","basis_note":"y"}}`, m.MemoryID))
	found := memoryTool[memory.RecallOut](c, memory.ToolRecall, `{"query":"manifest reset","related_limit":2}`)
	if len(found.Candidates) != 1 || found.Candidates[0].MemoryID != m.MemoryID || found.Candidates[0].ProvenanceState != "indexed" {
		t.Fatalf("%s", found.Text())
	}
	shown := memoryTool[memory.InspectOut](c, memory.ToolInspect, fmt.Sprintf(`{"kind":"revision","memory_id":%q,"window":1}`, m.MemoryID))
	if shown.ProvenanceOutcome != "verified" || len(shown.Anchors) != 1 || shown.Anchors[0].Inspection.Outcome != engine.Verified || len(shown.Anchors[0].Inspection.Window) < 2 {
		t.Fatalf("%s", shown.Text())
	}
	life := memoryTool[memory.WriteOut](c, memory.ToolWrite, fmt.Sprintf(`{"operation":"reinforce","memory_id":%q,"expected_revision":1,"expected_metadata_version":1,"salience":40}`, m.MemoryID))
	if life.Lifecycle.MetadataVersion != 2 {
		t.Errorf("%s", life.Text())
	}
	k := memoryTool[memory.WriteOut](c, memory.ToolWrite, fmt.Sprintf(`{"operation":"propose_skill_candidate","sources":[{"memory_id":%q,"revision":1}],"artifact":{"name":"retry","description":"When.","instructions":"1. wait\n2. retry"}}`, m.MemoryID)).Candidate
	if r := memoryTool[memory.WriteOut](c, memory.ToolWrite, fmt.Sprintf(`{"operation":"review_skill_candidate","candidate_id":%q,"expected_state":"pending_review","decision":"approved","note":"fine"}`, k.CandidateID)); r.Candidate.Installed || r.Candidate.Review.State != "approved" {
		t.Errorf("%s", r.Text())
	}
	if st := c.status(); st.LearnedMemory == nil || st.LearnedMemory.Memories != 1 || st.LearnedMemory.SkillCandidates != 1 || st.Outcome != engine.Ready {
		t.Errorf("%s", st.Text())
	}
	del := fmt.Sprintf(`{"kind":"memory","memory_id":%q,"expected_revision":1,"expected_metadata_version":2}`, m.MemoryID)
	if d := memoryTool[memory.DeleteOut](c, memory.ToolDelete, del); d.Outcome != "blocked" || d.Dependencies[0].CandidateID != k.CandidateID {
		t.Errorf("%s", d.Text())
	}
	// Another server and the owner's terminal see the same.
	other := w.serve()
	if out := memoryTool[memory.RecallOut](other, memory.ToolRecall, `{"query":"manifest"}`); len(out.Candidates) != 1 {
		t.Errorf("%s", out.Text())
	}
	if st := decode[memory.Status](t, w.must(0, "memory", "status", "--json").stdout); st.Memories != 1 || st.SchemaVersion == nil || *st.SchemaVersion != 1 {
		t.Errorf("%s", st.Text())
	}
	w.must(1, "memory", "purge", "--yes") // not under a running client
	// Off: the tools go, the memories stay.
	w.must(0, "memory", "disable")
	// Servers that run refuse every one of them at once.
	for tool, args := range map[string]string{
		memory.ToolRecall: `{"query":"manifest"}`, memory.ToolInspect: fmt.Sprintf(`{"kind":"revision","memory_id":%q}`, m.MemoryID),
		memory.ToolWrite:  `{"operation":"create","interpretation":"x","scope":{"kind":"global"},"provenance":{"kind":"unanchored","basis_note":"y"}}`,
		memory.ToolDelete: del,
	} {
		r := result[toolResult](t, c.Call("tools/call", toolParams(tool, args)))
		if !r.IsError || !strings.Contains(r.text(), "learned memory is switched off") || !strings.Contains(r.text(), "mooncite memory enable") {
			t.Errorf("%s: %+v", tool, r)
		}
	}
	if st := c.status(); st.LearnedMemory != nil || st.Outcome != engine.Ready {
		t.Errorf("%s", st.Text())
	}
	off := w.serve()
	if m := off.Call("tools/call", toolParams(memory.ToolRecall, `{"query":"manifest"}`)); m.Error == nil {
		t.Error("a tool that is switched off was run")
	}
	if st := off.status(); st.LearnedMemory != nil {
		t.Errorf("%s", st.Text())
	}
	w.enableMemory()
	on := w.serve()
	memoryTool[memory.DeleteOut](on, memory.ToolDelete, fmt.Sprintf(`{"kind":"skill_candidate","candidate_id":%q,"expected_state":"approved"}`, k.CandidateID))
	if d := memoryTool[memory.DeleteOut](on, memory.ToolDelete, del); d.Outcome != "deleted" || d.DeletedRevisions != 1 {
		t.Errorf("%s", d.Text())
	}
	if out := memoryTool[memory.RecallOut](other, memory.ToolRecall, `{"query":"manifest"}`); out.Outcome != "no_match" {
		t.Errorf("%s", out.Text())
	}
}

// Both revisions of the protocol offer the tools, and refuse what does not fit.
func TestMemoryInvalidArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enableMemory()
	c := w.startServer()
	r := result[toolResult](t, c.Call("tools/call", `{"name":"`+memory.ToolRecall+`","arguments":{"query":"x"},`+meta+`}`))
	if r.IsError || r.Type != "complete" {
		t.Errorf("%+v", r)
	}
	c = w.serve()
	for _, x := range []struct{ tool, args, names string }{
		{memory.ToolRecall, `{}`, "query"}, {memory.ToolRecall, `{"query":"x","limit":0}`, "limit"}, {memory.ToolInspect, `{"kind":"x"}`, "kind"},
		{memory.ToolWrite, `{"operation":"create","interpretation":"x"}`, "provenance"}, {memory.ToolWrite, `{"operation":"create","interpretation":"x","provenance":{"kind":"unanchored","basis_note":"y","more":1}}`, "more"},
		{memory.ToolDelete, `{"kind":"memory","memory_id":"x","expected_revision":1,"expected_metadata_version":1}`, "memory_id"},
	} {
		r := result[toolResult](t, c.Call("tools/call", toolParams(x.tool, x.args)))
		if !r.IsError || !strings.HasPrefix(r.text(), "Input validation error: Invalid arguments for tool "+x.tool) || !strings.Contains(r.text(), x.names) {
			t.Errorf("%s %s: %+v", x.tool, x.args, r)
		}
	}
}

// The failure of learned memory takes nothing from evidence, and ends with its cause.
func TestMemoryFailureLeavesEvidence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data string
		code string
	}{
		"damaged": {strings.Repeat("neither a database nor anything else\n", 200), string(sqlitedb.Damaged)},
		"foreign": {"", string(sqlitedb.Foreign)},
	} {
		t.Run(name, func(t *testing.T) {
			w := sampleWorld(t)
			w.enableMemory()
			w.must(0, "rebuild")
			path := w.state() + "/learned-memory.sqlite"
			if c.data == "" {
				index, err := os.ReadFile(w.state() + "/index-1.sqlite")
				if err != nil {
					t.Fatal(err)
				}
				c.data = string(index)
			}
			if err := os.WriteFile(path, []byte(c.data), 0o600); err != nil {
				t.Fatal(err)
			}
			p := w.serve()
			id := p.finds("ECONNRESET in parseManifestChunk").EvidenceID
			if in := p.inspect(id); in.Outcome != engine.Verified {
				t.Errorf("%s", in.Text())
			}
			p.failed(c.code, "", memory.ToolRecall, `{"query":"x"}`)
			p.failed(c.code, "", memory.ToolInspect, `{"kind":"revision","memory_id":"mooncite-memory:00000000-0000-4000-8000-000000000000"}`)
			p.failed(c.code, "", memory.ToolWrite, fmt.Sprintf(`{"operation":"create","interpretation":"x","provenance":{"kind":"verified","evidence_ids":[%q]}}`, id))
			p.failed(c.code, "", memory.ToolDelete, `{"kind":"memory","memory_id":"mooncite-memory:00000000-0000-4000-8000-000000000000","expected_revision":1,"expected_metadata_version":1}`)
			if st := p.status(); st.Outcome != engine.Ready || st.LearnedMemory.Outcome != "unavailable" || st.LearnedMemory.ErrorCode == "" {
				t.Errorf("%s", st.Text())
			}
			w.must(0, "memory", "purge", "--yes") // nobody could open it, so nobody has it open
			if m := p.create("It works again.", id); m.Outcome != "created" {
				t.Errorf("%s", m.Text())
			}
		})
	}
}

// Forgetting evidence hides what rests on it and tells the owner of it.
func TestForgetTellsOfMemory(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.enableMemory()
	c := w.serve()
	hit := c.finds("ECONNRESET in parseManifestChunk")
	m := c.create("The manifest parser gives up on a reset.", hit.EvidenceID)
	child := memoryTool[memory.WriteOut](c, memory.ToolWrite, fmt.Sprintf(`{"operation":"create","interpretation":"Manifests are reset.","scope":{"kind":"global"},"provenance":{"kind":"derived","parents":[{"memory_id":%q,"revision":1,"relation":"refines","reason":"r"}]}}`, m.MemoryID))
	other := c.finds("at most 6 attempts")
	if r := w.must(0, "forget", "--yes", "--json", "--evidence", other.EvidenceID); r.stderr != "" {
		t.Errorf("nothing rests on it: %s", r.stderr)
	}
	r := w.must(0, "forget", "--yes", "--json", "--session", hit.SessionID)
	if want := "(2). What agents wrote of it stays until an agent deletes it, in this order:\n  " + child.MemoryID + "  recalled still: derived from one that does\n  " + m.MemoryID + "  hidden from recall now\n"; !strings.Contains(r.stderr, want) {
		t.Errorf("%s", r.stderr)
	}
	if out := memoryTool[memory.RecallOut](c, memory.ToolRecall, `{"query":"manifest"}`); len(out.Candidates) != 1 || out.Candidates[0].MemoryID != child.MemoryID || !strings.Contains(strings.Join(out.Warnings, " "), "1 quarantined") {
		t.Errorf("%s", out.Text())
	}
	shown := memoryTool[memory.InspectOut](c, memory.ToolInspect, fmt.Sprintf(`{"kind":"revision","memory_id":%q,"window":2}`, m.MemoryID))
	if shown.ProvenanceOutcome != "quarantined" || shown.ProvenanceState != "deauthorized" || len(shown.Anchors[0].Inspection.Window) != 0 {
		t.Errorf("%s", shown.Text())
	}
	// What memory keeps of evidence is digests: no text of the session is in its file.
	data, err := os.ReadFile(w.state() + "/learned-memory.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	log, _ := os.ReadFile(w.state() + "/learned-memory.sqlite-wal")
	if all := string(data) + string(log); strings.Contains(all, "ECONNRESET") || !strings.Contains(all, "gives up on a reset") {
		t.Error("text of the history is in the database, or the interpretation is not")
	}
}

// Servers are killed while they write: what was answered stays, and the next one works.
func TestKillMemoryServer(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.enableMemory()
	r := rand.New(rand.NewPCG(9, 9))
	kept := map[string]bool{}
	for round := range rounds(t, 8) {
		p := w.serve()
		end := time.Now().Add(time.Duration(r.Int64N(int64(40 * time.Millisecond))))
		for n := 0; time.Now().Before(end); n++ {
			m := memoryTool[memory.WriteOut](p, memory.ToolWrite, fmt.Sprintf(`{"operation":"create","interpretation":"Note %d of round %d.","scope":{"kind":"global"},"provenance":{"kind":"unanchored","basis_note":"x"}}`, n, round))
			kept[m.MemoryID] = true
		}
		p.Request("tools/call", toolParams(memory.ToolWrite, `{"operation":"create","interpretation":"Perhaps.","scope":{"kind":"global"},"provenance":{"kind":"unanchored","basis_note":"x"}}`))
		time.Sleep(time.Duration(r.Int64N(int64(6 * time.Millisecond))))
		_ = p.Cmd.Process.Kill()
		_ = p.WaitExit(5 * time.Second)
	}
	st := decode[memory.Status](t, w.must(0, "memory", "status", "--json").stdout)
	if st.Outcome != "ready" || st.Memories < int64(len(kept)) || st.Memories > int64(len(kept)+rounds(t, 8)) {
		t.Errorf("%d were answered: %s", len(kept), st.Text())
	}
	c := w.serve()
	for id := range kept {
		if out := memoryTool[memory.RecallOut](c, memory.ToolRecall, fmt.Sprintf(`{"query":%q}`, id)); len(out.Candidates) != 1 {
			t.Errorf("%s is lost", id)
		}
	}
}

// A long answer is cut in both forms and can be read as a whole.
func TestLongMemoryAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enableMemory()
	c := w.serve()
	for i := range 6 {
		memoryTool[memory.WriteOut](c, memory.ToolWrite, fmt.Sprintf(`{"operation":"create","interpretation":%s,"scope":{"kind":"global"},"provenance":{"kind":"unanchored","basis_note":"x"}}`, quoted(fmt.Sprintf("Lantern %d. ", i)+strings.Repeat("The lantern keeper wrote a long line. ", 150))))
	}
	r := c.tool(memory.ToolRecall, `{"query":"lantern","limit":6}`)
	out := decode[memory.RecallOut](t, string(r.Data))
	if len(r.Data) > longest || len(r.text()) > longest || out.ResultDetail == nil || len(out.Candidates) != 6 || out.Candidates[0].OmittedBytes == 0 {
		t.Errorf("%d bytes of structure, %d of text, %d candidates", len(r.Data), len(r.text()), len(out.Candidates))
	}
	whole := decode[struct {
		Data memory.RecallOut `json:"structuredContent"`
	}](t, result[struct{ Contents []struct{ Text string } }](t, c.Call("resources/read", `{"uri":"`+out.ResultDetail.FullResult.URI+`"}`)).Contents[0].Text).Data
	if len(whole.Candidates) != 6 || len(whole.Candidates[0].Interpretation) < 5000 {
		t.Errorf("the whole has %d candidates", len(whole.Candidates))
	}
	readable := func(uri string) bool {
		return c.Call("resources/read", `{"uri":"`+uri+`"}`).Error == nil
	}
	// What is deleted, and what is switched off, is gone from there too.
	id := out.Candidates[0].MemoryID
	if r := memoryTool[memory.DeleteOut](c, memory.ToolDelete, fmt.Sprintf(`{"kind":"memory","memory_id":%q,"expected_revision":1,"expected_metadata_version":1}`, id)); r.Outcome != "deleted" {
		t.Fatalf("%+v", r)
	}
	if readable(out.ResultDetail.FullResult.URI) {
		t.Error("a deleted memory can still be read")
	}
	out = decode[memory.RecallOut](t, string(c.tool(memory.ToolRecall, `{"query":"lantern","limit":6}`).Data))
	if uri := out.ResultDetail.FullResult.URI; !readable(uri) {
		t.Error("a new answer cannot be read")
	} else if w.must(0, "memory", "disable"); readable(uri) {
		t.Error("learned memory is off and can still be read")
	}
}

// A full disk is said to be one, loses no memory, and leaves evidence working.
func TestMemoryDiskFull(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.enableMemory()
	limited := []string{"sh", "-c", `ulimit -f 400; exec "$@"`, "sh"} // 512-byte blocks
	w.must(0, "rebuild")
	p := &client{mcptest.Start(t, w.Environ(), append(limited, w.path, "serve")...), t}
	p.Call("initialize", initialize)
	p.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	long := quoted(strings.Repeat("The keeper writes a long line of words. ", 200))
	kept := 0
	var code string
	for range 60 {
		r := result[toolResult](t, p.Call("tools/call", toolParams(memory.ToolWrite, `{"operation":"create","interpretation":`+long+`,"scope":{"kind":"global"},"provenance":{"kind":"unanchored","basis_note":"x"}}`)))
		if r.IsError {
			code = decode[struct{ Code string }](t, string(r.Data)).Code
			break
		}
		kept++
	}
	if !slices.Contains([]string{string(sqlitedb.Full), string(sqlitedb.Unusable)}, code) || kept == 0 {
		t.Fatalf("code %q after %d memories", code, kept)
	}
	p.finds("ECONNRESET in parseManifestChunk")
	st := decode[memory.Status](t, w.must(0, "memory", "status", "--json").stdout)
	if st.Outcome != "ready" || st.Memories != int64(kept) {
		t.Errorf("%d kept: %s", kept, st.Text())
	}
	if c := w.serve(); memoryTool[memory.WriteOut](c, memory.ToolWrite, `{"operation":"create","interpretation":"Room.","scope":{"kind":"global"},"provenance":{"kind":"unanchored","basis_note":"x"}}`).Outcome != "created" {
		t.Error("no room again")
	}
}

// What status says over MCP is what the store says.
func TestMemoryStatusIsTheSame(t *testing.T) {
	a, errA := json.Marshal(memory.Status{Kind: "derived_memory_status", Message: "x", ErrorCode: "busy"})
	b, errB := json.Marshal(engine.LearnedMemory(memory.Status{Kind: "derived_memory_status", Message: "x", ErrorCode: "busy"}))
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Errorf("%s\n%s", a, b)
	}
}

// The same with a real disk, which is made larger afterwards: the server goes on.
func TestMemoryDiskFullAndMended(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.enableMemory()
	disk := w.tinyDisk(3 << 10)
	p := &client{mcptest.Start(t, w.Environ(), append(disk, w.path, "serve")...), t}
	p.Call("initialize", initialize)
	p.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.finds("ECONNRESET in parseManifestChunk")
	create := toolParams(memory.ToolWrite, `{"operation":"create","interpretation":`+quoted(strings.Repeat("The keeper writes a long line of words. ", 200))+`,"scope":{"kind":"global"},"provenance":{"kind":"unanchored","basis_note":"x"}}`)
	kept := int64(0)
	for {
		r := result[toolResult](t, p.Call("tools/call", create))
		if !r.IsError {
			if kept++; kept < 1000 {
				continue
			}
		}
		if code := decode[struct{ Code string }](t, string(r.Data)).Code; code != string(sqlitedb.Full) {
			t.Fatalf("after %d memories: %s", kept, r.text())
		}
		break
	}
	if st := p.status(); st.LearnedMemory.Outcome != "ready" || st.LearnedMemory.Memories != kept {
		t.Errorf("%d kept: %s", kept, st.Text())
	}
	if in := p.inspect(p.finds("ECONNRESET in parseManifestChunk").EvidenceID); in.Outcome != engine.Verified {
		t.Errorf("%s", in.Text())
	}
	more := exec.CommandContext(t.Context(), disk[0], append(disk[1:], "mount", "-o", "remount,size=200m", w.state())...)
	if r := finish(t, more); r.status != 0 {
		t.Fatalf("no larger disk: %s", r.stderr)
	}
	if r := result[toolResult](t, p.Call("tools/call", create)); r.IsError {
		t.Errorf("with space again: %s", r.text())
	}
	if st := p.status(); st.LearnedMemory.Memories != kept+1 {
		t.Errorf("%s", st.Text())
	}
}

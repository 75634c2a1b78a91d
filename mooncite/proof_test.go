package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localmcp/mooncite/internal/corpus"
	"localmcp/mooncite/internal/engine"
)

// roots are where the origins' histories are in a home.
var roots = map[string]string{
	"pi": ".pi/agent/sessions", "omp": ".omp/agent/sessions", "claude-code": ".claude/projects",
	"codex": ".codex/sessions", "chatgpt": "incoming/chatgpt-share-archive",
}

// values are all strings of decoded JSON.
func values(v any) []string {
	switch x := v.(type) {
	case string:
		out := []string{x}
		var inner any // arguments of tools are JSON in a string
		if strings.HasPrefix(x, "{") && json.Unmarshal([]byte(x), &inner) == nil {
			out = append(out, values(inner)...)
		}
		return out
	case []any:
		var out []string
		for _, e := range x {
			out = append(out, values(e)...)
		}
		return out
	case map[string]any:
		var out []string
		for _, e := range x {
			out = append(out, values(e)...)
		}
		return out
	}
	return nil
}

// Whatever a recall gives out is verified by an inspection, and what the inspection
// says is in the record it names: this is looked up here without any of our parsers.
func TestEveryCandidateIsProved(t *testing.T) {
	t.Parallel()
	w, _ := smallWorld(t)
	_, queries, err := corpus.Load(w.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(w.Dir, os.DirFS("../samples/home")); err != nil {
		t.Fatal(err)
	}
	c := w.serve()
	c.settles("zzyzx", func(o engine.RecallOut) bool { return o.Conclusive })
	seen := map[string]bool{}
	asked := []string{"ECONNRESET", "再試行", "retry policy", "HTTP/2 stalls", "npm test", "berth 14", "harbor", "at most 6 attempts"}
	for _, q := range queries[:60] {
		asked = append(asked, q.Query)
	}
	origins := map[string]int{}
	for _, q := range asked {
		out := decode[engine.RecallOut](t, string(c.tool(engine.ToolRecall, `{"limit":10,"query":`+quoted(q)+`}`).Data))
		for _, x := range out.Candidates {
			if seen[x.EvidenceID] {
				continue
			}
			seen[x.EvidenceID] = true
			in := c.inspect(x.EvidenceID)
			if in.Outcome != engine.Verified {
				t.Errorf("%q: %s", q, in.Text())
				continue
			}
			origins[x.SourceOrigin]++
			if lost := w.notInRecord(&in); lost != "" {
				t.Errorf("%q: %s: %q is not in the record's values", q, x.EvidenceID, lost)
			}
		}
	}
	if len(origins) != 5 || len(seen) < 100 {
		t.Errorf("%d candidates of %v were looked at: too few to say anything", len(seen), origins)
	}
}

// notInRecord returns a line of the target's text that its record does not hold.
func (w *world) notInRecord(in *engine.InspectOut) string {
	w.t.Helper()
	l := in.Locator
	data, err := os.ReadFile(filepath.Join(w.Path(roots[l.SourceOrigin]), l.RelativePath))
	if err != nil {
		w.t.Fatal(err)
	}
	if l.ByteStart < 0 || l.ByteEnd > int64(len(data)) || l.ByteStart >= l.ByteEnd {
		w.t.Fatalf("bytes %d to %d of %d", l.ByteStart, l.ByteEnd, len(data))
	}
	all := values(decode[any](w.t, string(data[l.ByteStart:l.ByteEnd])))
	for line := range strings.SplitSeq(in.Target.Text, "\n") {
		if in.Target.Masked > 0 || strings.Contains(line, `\u{`) {
			continue
		}
		if !slices.ContainsFunc(all, func(v string) bool { return strings.Contains(v, line) }) {
			return line
		}
	}
	return ""
}

// Ctrl-C ends a rebuild as it ends any command, and nothing is lost.
func TestInterruptedRebuild(t *testing.T) {
	t.Parallel()
	w := bigWorld(t)
	c := w.command(t.Context(), "rebuild")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if names, _ := filepath.Glob(filepath.Join(w.state(), "build-*")); len(names) > 0 {
			break
		}
	}
	_ = c.Process.Signal(os.Interrupt)
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	select {
	case err := <-done:
		if c.ProcessState.ExitCode() != 130 {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it did not end")
		_ = c.Process.Kill()
		<-done
	}
	w.must(0, "rebuild")
	w.clean()
}

// The answer to a query from the far past of a large history is in the first five.
func TestPlantedPhrasesAreFound(t *testing.T) {
	t.Parallel()
	w := bigWorld(t)
	c := w.serve()
	c.settles("zzyzx", func(o engine.RecallOut) bool { return o.Conclusive })
	for _, p := range big.stats.Planted {
		out := c.recall(p.Text)
		if len(out.Candidates) > 5 || !slices.ContainsFunc(out.Candidates, func(x engine.Candidate) bool { return strings.Contains(x.Excerpt, p.Text) }) {
			t.Errorf("%q (%s, %v) is not in the first five", p.Text, p.Origin, p.Time)
		}
	}
}

package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/mcptest"
	"localmcp/mooncite/internal/corpus"
	"localmcp/mooncite/internal/engine"
)

// smallWorld is a world with a corpus that takes a short moment to index.
func smallWorld(t testing.TB) (*world, corpus.Stats) {
	t.Helper()
	w := newWorld(t)
	stats, err := corpus.Write(t.Context(), corpus.Config{Home: w.Dir, Bytes: corpus.MinBytes})
	if err != nil {
		t.Fatal(err)
	}
	return w, stats
}

// questions find a good part of a small corpus.
func questions(stats corpus.Stats) []string {
	var all []string
	for _, p := range stats.Planted {
		all = append(all, p.Text)
	}
	return all
}

// snapshot is what a world's index answers: ids and texts for the questions, and the
// digest of everything.
func (w *world) snapshot(stats corpus.Stats) (ids map[string]string, generation string) {
	w.t.Helper()
	return w.evidenceIDs(questions(stats)...), w.status().Generation
}

// rebuiltElsewhere is the snapshot of a new state directory over the same histories.
func (w *world) rebuiltElsewhere(stats corpus.Stats) (map[string]string, string) {
	w.t.Helper()
	fresh := &world{Home: w.Home, t: w.t, path: w.path}
	fresh.Set("MOONCITE_STATE_DIR", fresh.Path("fresh/state"))
	defer fresh.Set("MOONCITE_STATE_DIR", "")
	defer os.RemoveAll(fresh.Path("fresh"))
	fresh.must(0, "rebuild")
	return fresh.snapshot(stats)
}

// lastGood wants an answer that has the text and no trouble.
func (w *world) lastGood(round int, what string, p corpus.Planted) {
	w.t.Helper()
	r := w.run("recall", "--json", `"`+p.Text+`"`)
	if r.status != 0 || r.stderr != "" {
		w.t.Fatalf("round %d, after %s: status %d\n%s%s", round, what, r.status, r.stdout, r.stderr)
	}
	if out := decode[engine.RecallOut](w.t, r.stdout); len(out.Candidates) == 0 || !out.Conclusive {
		w.t.Fatalf("round %d, after %s: %q is lost\n%s", round, what, p.Text, out.Text())
	}
}

// clean wants nothing in the state directory but one index and what belongs to it.
func (w *world) clean() {
	w.t.Helper()
	indexes := 0
	for _, name := range w.stateFiles() {
		switch {
		case strings.HasPrefix(name, "build-"), strings.HasSuffix(name, ".tmp"):
			w.t.Errorf("a crashed build left %s", name)
		case strings.HasPrefix(name, "index-") && strings.HasSuffix(name, ".sqlite"):
			indexes++
		}
	}
	if indexes != 1 {
		w.t.Errorf("%d indexes: %v", indexes, w.stateFiles())
	}
}

// killAfter starts a command and kills it.
func (w *world) killAfter(d time.Duration, args ...string) {
	w.t.Helper()
	c := w.command(w.t.Context(), args...)
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(d)
	_ = c.Process.Kill()
	_ = c.Wait()
}

// A rebuild may be killed at any moment: what was there answers, and in the end
// everything is as if nothing had happened.
func TestKillRebuild(t *testing.T) {
	t.Parallel()
	w, stats := smallWorld(t)
	began := time.Now()
	w.must(0, "rebuild")
	whole := time.Since(began)
	want, generation := w.snapshot(stats)
	r := rand.New(rand.NewPCG(1, 1))
	for round := range rounds(t, 16) {
		w.killAfter(time.Duration(r.Int64N(int64(whole*11/10))), "rebuild")
		w.lastGood(round, "a killed rebuild", stats.Planted[round%len(stats.Planted)])
	}
	w.must(0, "rebuild")
	w.clean()
	got, now := w.snapshot(stats)
	if diff := cmp.Diff(want, got); diff != "" || now != generation {
		t.Errorf("generation %s, want %s (-want +got)\n%s", now, generation, diff)
	}
	again, fresh := w.rebuiltElsewhere(stats)
	if diff := cmp.Diff(again, got); diff != "" || now != fresh {
		t.Errorf("a fresh index has other ids: generation %s, fresh %s\n%s", now, fresh, diff)
	}
}

// rounds is how often to try: fewer where time is short.
func rounds(t *testing.T, n int) int {
	if testing.Short() {
		return min(n, 4)
	}
	return n
}

// A first index may be killed at any moment, over and over: the next start goes on.
func TestKillFirstIndex(t *testing.T) {
	t.Parallel()
	w, stats := smallWorld(t)
	began := time.Now()
	w.must(0, "status")
	whole := time.Since(began)
	want, generation := w.snapshot(stats)
	r := rand.New(rand.NewPCG(2, 2))
	for round := range rounds(t, 12) {
		if round%4 == 0 { // else it goes on where the last one was killed
			if err := os.RemoveAll(w.state()); err != nil {
				t.Fatal(err)
			}
		}
		c := mcptest.Start(t, w.Environ(), w.path, "serve")
		time.Sleep(time.Duration(r.Int64N(int64(whole))))
		_ = c.Cmd.Process.Kill()
		_ = c.WaitExit(5 * time.Second)
		if round%4 == 3 {
			w.lastGood(round, "a killed first index", stats.Planted[round%len(stats.Planted)])
		}
	}
	got, now := w.snapshot(stats)
	if diff := cmp.Diff(want, got); diff != "" || now != generation {
		t.Errorf("generation %s, want %s (-want +got)\n%s", now, generation, diff)
	}
	w.must(0, "rebuild")
	w.clean()
}

// Histories grow while servers are killed: no turn is lost, none comes twice, and
// the end is what a new index gives.
func TestKillRefresh(t *testing.T) {
	t.Parallel()
	w, stats := smallWorld(t)
	w.must(0, "rebuild")
	var all []string
	list := chats()
	for _, c := range list {
		w.start(c, "The first word of this session is begin-"+string(c.origin)+".")
	}
	r := rand.New(rand.NewPCG(3, 3))
	for round := range rounds(t, 16) {
		c := list[round%len(list)]
		word := fmt.Sprintf("lamp%04d", round)
		all = append(all, word)
		w.add(c.rel, c.turn("Please light "+word+" before the ferry comes. "+strings.Repeat("Keep the wick short. ", 200)))
		p := mcptest.Start(t, w.Environ(), w.path, "serve")
		p.Send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + initialize + `}`)
		p.Send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":` + toolParams(engine.ToolRecall, `{"query":"`+word+`"}`) + `}`)
		time.Sleep(time.Duration(r.Int64N(int64(80 * time.Millisecond))))
		_ = p.Cmd.Process.Kill()
		_ = p.WaitExit(5 * time.Second)
		if round%3 == 0 {
			w.lastGood(round, "a killed refresh", stats.Planted[round%len(stats.Planted)])
		}
	}
	for _, word := range all {
		if out := w.recall(word); len(out.Candidates) != 1 || !out.Conclusive {
			t.Errorf("%s: %s", word, out.Text())
		}
	}
	got := w.evidenceIDs(append(questions(stats), all...)...)
	w.must(0, "rebuild")
	w.clean()
	want := w.evidenceIDs(append(questions(stats), all...)...)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("ids (-rebuilt +grown)\n%s", diff)
	}
}

// What a crashed build leaves is removed by the next one.
func TestLeftoversAreSwept(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.must(0, "rebuild")
	for _, name := range []string{"build-99999.sqlite", "build-99999.sqlite-wal", "build-99999.sqlite-shm", "index-7.sqlite", "index-7.sqlite-wal"} {
		w.Write(t, ".local/state/mooncite/"+name, strings.Repeat("x", 5000))
	}
	w.must(0, "recall", "ECONNRESET")
	w.must(0, "rebuild")
	w.clean()
	w.must(0, "recall", "ECONNRESET")
}

// Four servers, a rebuild and growing histories at once: no client sees an error, and
// all see everything in the end.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	w, stats := smallWorld(t)
	list := chats()
	for _, c := range list {
		w.start(c, "The first word of this session is begin-"+string(c.origin)+".")
	}
	clients := make([]*client, 4)
	for i := range clients {
		clients[i] = w.serve()
	}
	var words []string
	for i := range 20 {
		words = append(words, fmt.Sprintf("beacon%04d", i))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	bad := make(chan string, 100)
	for i, c := range clients {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				// Not the helpers: a test may be failed only by its own goroutine.
				params := toolParams(engine.ToolRecall, `{"query":"`+words[(n+i)%len(words)]+`"}`)
				if n%7 == 6 {
					params = toolParams(engine.ToolStatus, `{}`)
				}
				m := c.Call("tools/call", params)
				if text := string(m.Result); m.Error != nil || strings.Contains(text, `"isError":true`) || strings.Contains(text, `"outcome":"unavailable"`) || strings.Contains(text, "locked") || strings.Contains(text, "busy") {
					select {
					case bad <- fmt.Sprintf("%+v %.800s", m.Error, text):
					default:
					}
				}
			}
		})
	}
	for n, word := range words {
		c := list[n%len(list)]
		w.add(c.rel, c.turn("Please watch "+word+" tonight."))
		if n == 5 || n == 12 {
			if r := w.run("rebuild"); r.status != 0 {
				t.Errorf("rebuild beside four servers: status %d\n%s%s", r.status, r.stdout, r.stderr)
			}
		}
		time.Sleep(15 * time.Millisecond)
	}
	close(stop)
	wg.Wait()
	close(bad)
	for text := range bad {
		t.Error(text)
	}
	for _, c := range clients {
		for _, word := range words {
			c.finds(word)
		}
		if s := c.Stderr(); strings.Contains(s, "panic") {
			t.Error(s)
		}
	}
	for _, p := range stats.Planted[:2] {
		clients[0].finds(p.Text)
	}
	w.must(0, "rebuild")
	w.clean()
}

// Eight clients start at once on a machine where mooncite never ran.
func TestFirstStartsAtOnce(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	clients := make([]*client, 8)
	for i := range clients {
		clients[i] = w.startServer()
	}
	for _, c := range clients {
		c.Request("initialize", initialize)
	}
	for _, c := range clients {
		c.Await("1")
		c.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	var got []string
	for _, c := range clients {
		out := c.settles("ECONNRESET", func(o engine.RecallOut) bool {
			if o.Outcome == engine.Unavailable {
				t.Errorf("%s", o.Text())
			}
			return o.Conclusive && len(o.Candidates) > 0
		})
		got = append(got, out.Generation+" "+out.Candidates[0].EvidenceID)
	}
	if len(slices.Compact(got)) != 1 {
		t.Errorf("they disagree: %v", got)
	}
	w.must(0, "rebuild")
	w.clean()
}

// The same on the command line, in the same moment.
func TestCommandsAtOnce(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	results := make([]ran, 8)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			if i%4 == 3 {
				results[i] = finish(t, w.command(t.Context(), "rebuild"))
				return
			}
			results[i] = finish(t, w.command(t.Context(), "recall", "ECONNRESET"))
		})
	}
	wg.Wait()
	for i, r := range results {
		if r.status != 0 || r.stderr != "" {
			t.Errorf("%d: status %d\n%s%s", i, r.status, r.stdout, r.stderr)
		}
	}
}

// Two processes that write and ask in turn lose no turn of either.
func TestNoLostUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := chats()[:2]
	for _, c := range list {
		w.start(c, "The first word of this session is begin-"+string(c.origin)+".")
	}
	clients := []*client{w.serve(), w.serve()}
	var words []string
	for n := range 20 {
		i := n % 2
		word := fmt.Sprintf("signal%04d", n)
		words = append(words, word)
		w.add(list[i].rel, list[i].turn("Answer "+word+" with two short flashes."))
		clients[i].Request("tools/call", toolParams(engine.ToolRecall, `{"query":"`+word+`"}`))
	}
	for _, c := range clients {
		for _, word := range words {
			c.finds(word)
		}
	}
	for _, word := range words {
		if out := w.recall(word); len(out.Candidates) != 1 {
			t.Errorf("%s: %s", word, out.Text())
		}
	}
}

// A history that grows turn by turn does not leave files that grow without bound.
func TestStateStaysSmall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := chats()[3]
	w.start(c, "The first word.")
	reader, p := w.serve(), w.serve()
	for n := range 120 {
		w.add(c.rel, c.turn(fmt.Sprintf("Turn buoy%04d to the wind. %s", n, strings.Repeat("Mind the tide. ", 60))))
		p.recall("buoy")
		if n%10 == 0 {
			reader.recall("tide")
		}
	}
	p.finds("buoy0119")
	var total int64
	for _, name := range w.stateFiles() {
		st, err := os.Stat(w.state() + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		total += st.Size()
	}
	if total > 16<<20 {
		t.Errorf("%d bytes of state for 120 turns: %v", total, w.stateFiles())
	}
}

// Rebuilds replace the index under the hands of a server with many questions at once.
func TestRebuildUnderLoad(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	c := w.serve()
	id := c.finds("ECONNRESET").EvidenceID
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 8 {
			if r := finish(t, w.command(t.Context(), "rebuild")); r.status != 0 {
				t.Errorf("rebuild: status %d\n%s%s", r.status, r.stdout, r.stderr)
			}
		}
	}()
	for asking := true; asking; {
		select {
		case <-done:
			asking = false
		default:
		}
		var ids []string
		for n := range 12 {
			params := toolParams(engine.ToolRecall, `{"query":"ECONNRESET in parseManifestChunk"}`)
			switch n % 3 {
			case 1:
				params = toolParams(engine.ToolInspect, `{"evidence_id":"`+id+`"}`)
			case 2:
				params = toolParams(engine.ToolStatus, `{}`)
			}
			ids = append(ids, c.Request("tools/call", params))
		}
		for _, id := range ids {
			r := result[toolResult](t, c.Await(id))
			if text := r.text(); r.IsError || !strings.Contains(text, ": matches; ") && !strings.Contains(text, ": verified; ") && !strings.Contains(text, ": ready; ") {
				t.Fatalf("%s", text)
			}
		}
	}
}

package mcpserve_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"localmcp/internal/mcpserve"
	"localmcp/internal/mcptest"
)

// A relay is one client whose server is replaced by another whenever it is stale.
type relay struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan mcptest.Message
	stale atomic.Bool
	took  atomic.Int64 // replacements
	done  chan error
}

// newRelay starts one; always makes every server stale at every line.
func newRelay(t *testing.T, always bool) *relay {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	r := &relay{t: t, in: inW, lines: make(chan mcptest.Message, 1000), done: make(chan error, 1)}
	go func() {
		var state []byte
		for {
			o := tiny()
			o.Stale = func() bool { return always || r.stale.Swap(false) }
			next, err := mcpserve.New(o).Resume(t.Context(), state, inR, outW)
			if err != nil || next == nil {
				outW.Close()
				r.done <- err
				return
			}
			state = next
			r.took.Add(1)
		}
	}()
	go func() {
		s := bufio.NewScanner(outR)
		s.Buffer(nil, 8<<20)
		for s.Scan() {
			var m mcptest.Message
			if err := json.Unmarshal(s.Bytes(), &m); err != nil {
				t.Errorf("%v in %s", err, s.Bytes())
			}
			r.lines <- m
		}
		close(r.lines)
	}()
	return r
}

func (r *relay) send(raw string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, raw); err != nil {
		r.t.Fatal(err)
	}
}

func (r *relay) next() mcptest.Message {
	r.t.Helper()
	select {
	case m, ok := <-r.lines:
		if !ok {
			r.t.Fatal("the output ended")
		}
		return m
	case <-time.After(10 * time.Second):
		r.t.Fatal("no answer")
	}
	return mcptest.Message{}
}

// answer wants the next message to be the answer to a request.
func (r *relay) answer(id string) mcptest.Message {
	r.t.Helper()
	m := r.next()
	if string(m.ID) != id {
		r.t.Fatalf("want the answer to %s: %+v %s", id, m, m.Result)
	}
	return m
}

// end closes the input and wants no further message.
func (r *relay) end() {
	r.t.Helper()
	r.in.Close()
	if err := <-r.done; err != nil {
		r.t.Error(err)
	}
	for m := range r.lines {
		r.t.Errorf("one message too many: %+v", m)
	}
}

func request(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
}

// What was asked before is answered before, by the server that was asked; what comes
// after is answered by the next one, which knows everything the first one knew.
func TestHandoverLegacy(t *testing.T) {
	r := newRelay(t, false)
	r.send(request(1, "initialize", strings.Replace(initialize, "2025-11-25", "2025-06-18", 1)))
	r.answer("1")
	r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	r.send(request(2, "tools/call", toolCall("long", `{"count":5000}`)))
	long := read[toolResult](t, r.answer("2"))
	uri := long.Content[len(long.Content)-1].URI
	// One is in flight, the next one is not taken up, of the one after that only half came.
	r.send(request(3, "tools/call", toolCall("slow", `{"millis":300}`)))
	time.Sleep(50 * time.Millisecond)
	r.stale.Store(true)
	last := request(5, "resources/read", `{"uri":"`+uri+`"}`)
	r.send(request(4, "tools/call", toolCall("long", `{"count":5000}`)) + last[:30])
	r.answer("3")
	again := read[toolResult](t, r.answer("4"))
	if r.took.Load() != 1 {
		t.Fatalf("%d replacements", r.took.Load())
	}
	if len(again.Content) != 2 { // this revision knows links
		t.Errorf("%+v", again.Content)
	}
	r.send(last[30:])
	if m := r.answer("5"); m.Error != nil {
		t.Errorf("the kept answer is lost: %+v", m.Error)
	}
	r.send(request(6, "resources/read", `{"uri":"tiny-result://artifact/none"}`))
	if m := r.answer("6"); m.Error == nil || m.Error.Code != -32002 {
		t.Errorf("another era: %+v", m.Error)
	}
	r.send(request(7, "initialize", initialize))
	r.answer("7")
	r.end()
}

// The revision of the handshake survives: an old client gets no links afterwards either.
func TestHandoverKeepsTheRevision(t *testing.T) {
	for asked, contents := range map[string]int{"2024-11-05": 1, "2025-06-18": 2} {
		r := newRelay(t, true)
		r.send(request(1, "initialize", strings.Replace(initialize, "2025-11-25", asked, 1)))
		r.answer("1")
		for id := 2; id < 5; id++ {
			r.send(request(id, "tools/call", toolCall("long", `{"count":5000}`)))
			if res := read[toolResult](t, r.answer(fmt.Sprint(id))); len(res.Content) != contents {
				t.Errorf("%s: %d contents, want %d", asked, len(res.Content), contents)
			}
		}
		r.end()
		if r.took.Load() < 3 {
			t.Errorf("%d replacements", r.took.Load())
		}
	}
}

// The newer era has no handshake; a request to listen ends at once, before and after.
func TestHandoverModern(t *testing.T) {
	r := newRelay(t, false)
	r.send(request(1, "server/discover", discover))
	r.answer("1")
	for id := 2; id < 8; id += 2 {
		r.stale.Store(true)
		r.send(request(id, "subscriptions/listen", `{"notifications":{"toolsListChanged":true},`+meta+`}`))
		if m := r.next(); m.Method != "notifications/subscriptions/acknowledged" {
			t.Fatalf("%+v", m)
		}
		r.answer(fmt.Sprint(id))
		r.stale.Store(true)
		r.send(request(id+1, "tools/call", `{"name":"echo","arguments":{"text":"hi"},`+meta+`}`))
		if res := read[toolResult](t, r.answer(fmt.Sprint(id+1))); res.Type != "complete" {
			t.Errorf("%+v", res)
		}
	}
	if r.took.Load() != 6 {
		t.Errorf("%d replacements", r.took.Load())
	}
	r.end()
}

// However the bytes arrive, and although every line meets another server, each request
// is answered once.
func TestHandoverAtEveryLine(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for _, open := range []string{
		request(0, "initialize", initialize) + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n",
		request(0, "server/discover", discover),
	} {
		r := newRelay(t, true)
		params := `{"name":"echo","arguments":{"text":"%d"}}`
		if strings.Contains(open, "discover") {
			params = `{"name":"echo","arguments":{"text":"%d"},` + meta + `}`
		}
		const n = 60
		all := open
		for id := 1; id <= n; id++ {
			all += request(id, "tools/call", fmt.Sprintf(params, id))
			if id%10 == 0 {
				all += "no JSON\n\n"
			}
		}
		go func() {
			for rest := all; rest != ""; {
				k := min(len(rest), 1+rnd.IntN(700))
				if _, err := io.WriteString(r.in, rest[:k]); err != nil {
					t.Error(err)
					return
				}
				rest = rest[k:]
			}
		}()
		seen := map[string]int{}
		for range 1 + n + n/10 {
			m := r.next()
			seen[string(m.ID)]++
		}
		for id := range n + 1 {
			if seen[fmt.Sprint(id)] != 1 {
				t.Errorf("request %d was answered %d times", id, seen[fmt.Sprint(id)])
			}
		}
		r.end()
		if r.took.Load() < n {
			t.Errorf("%d replacements", r.took.Load())
		}
	}
}

// What is no state is refused and ends nothing else.
func TestResumeRefusesNonsense(t *testing.T) {
	if _, err := mcpserve.New(tiny()).Resume(t.Context(), []byte("{"), strings.NewReader(""), io.Discard); err == nil {
		t.Error("nonsense was taken for a state")
	}
}

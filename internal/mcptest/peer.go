package mcptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// limit bounds every wait of a peer.
const limit = 20 * time.Second

// Message is one frame from the server.
type Message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// Peer is the client's end of a server process.
type Peer struct {
	Cmd *exec.Cmd

	t      testing.TB
	in     io.WriteCloser
	exited chan struct{}
	err    error // how the process ended; set before exited is closed

	mu     sync.Mutex // guards what follows
	got    []Message  // not yet awaited
	came   chan struct{}
	bad    []string // lines of stdout that are no frames
	stderr bytes.Buffer
	nextID int
}

// Start runs a server process. Env is added to an otherwise empty environment when
// it is not nil.
func Start(t testing.TB, env []string, command ...string) *Peer {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = env
	p := &Peer{Cmd: cmd, t: t, exited: make(chan struct{}), came: make(chan struct{})}
	cmd.Stderr = lockedWriter{p}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.read(out)
		p.err = cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		<-p.exited
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, line := range p.bad {
			t.Errorf("stdout has a line that is no frame: %q", line)
		}
	})
	return p
}

type lockedWriter struct{ p *Peer }

func (w lockedWriter) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.p.stderr.Write(b)
}

func (p *Peer) read(out io.Reader) {
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			p.take(line)
		}
		if err != nil {
			return
		}
	}
}

func (p *Peer) take(line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Message
	if line[0] == '[' {
		_ = json.Unmarshal(line, &all)
	} else if m := (Message{}); json.Unmarshal(line, &m) == nil {
		all = []Message{m}
	}
	if len(all) == 0 {
		p.bad = append(p.bad, string(line))
	}
	p.got = append(p.got, all...)
	close(p.came)
	p.came = make(chan struct{})
}

// Send writes one line as it is.
func (p *Peer) Send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatalf("send: %v\n%s", err, p.Stderr())
	}
}

// Request sends a request under a new id and returns the id.
func (p *Peer) Request(method, params string) string {
	p.t.Helper()
	p.mu.Lock()
	p.nextID++
	id := strconv.Itoa(p.nextID)
	p.mu.Unlock()
	p.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	return id
}

// Call sends a request and waits for its answer.
func (p *Peer) Call(method, params string) Message {
	p.t.Helper()
	return p.Await(p.Request(method, params))
}

// Await waits for the answer to the request with an id (its JSON form).
func (p *Peer) Await(id string) Message {
	p.t.Helper()
	return p.AwaitFunc("an answer to "+id, func(m Message) bool { return m.Method == "" && string(m.ID) == id })
}

// AwaitFunc waits for the first message, not awaited before, that match accepts.
func (p *Peer) AwaitFunc(what string, match func(Message) bool) Message {
	p.t.Helper()
	timeout := time.After(limit)
	for {
		p.mu.Lock()
		came := p.came
		i := slices.IndexFunc(p.got, match)
		var m Message
		if i >= 0 {
			m = p.got[i]
			p.got = slices.Delete(p.got, i, i+1)
		}
		p.mu.Unlock()
		if i >= 0 {
			return m
		}
		select {
		case <-came:
		case <-p.exited:
			if !p.has(match) {
				p.t.Fatalf("the process ended before %s\n%s", what, p.Stderr())
			}
		case <-timeout:
			p.t.Fatalf("no %s in %v\n%s", what, limit, p.Stderr())
		}
	}
}

func (p *Peer) has(match func(Message) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.got, match)
}

// Rest returns the messages that came and were not awaited.
func (p *Peer) Rest() []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// CloseInput ends the child's stdin.
func (p *Peer) CloseInput() { _ = p.in.Close() }

// WaitExit waits for the end of the process, fails the test when it takes longer
// than max, and returns how it ended.
func (p *Peer) WaitExit(max time.Duration) error {
	p.t.Helper()
	start := time.Now()
	select {
	case <-p.exited:
		return p.err
	case <-time.After(max):
		p.t.Fatalf("the process still runs after %v\n%s", time.Since(start), p.Stderr())
		return nil
	}
}

// Stderr returns what the child wrote to stderr so far.
func (p *Peer) Stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

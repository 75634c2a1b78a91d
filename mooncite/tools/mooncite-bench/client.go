package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// patience bounds the wait for one answer.
const patience = 60 * time.Second

// reply is one answer and the moment it was read.
type reply struct {
	at     time.Time
	result jsontext.Value
	err    error
}

// server is a running "mooncite serve" seen from its client.
type server struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	started time.Time
	ended   chan struct{} // closed when the server's output and messages ended
	errs    tail

	out sync.Mutex // held while a line is written; never together with mu

	mu      sync.Mutex // guards what follows
	next    int
	waiting map[int]chan reply
}

// serve starts a server.
func serve(ctx context.Context, bin string, p place) (*server, error) {
	s := &server{ended: make(chan struct{}), waiting: map[int]chan reply{}}
	s.cmd = exec.CommandContext(ctx, bin, "serve")
	s.cmd.Env, s.cmd.Dir = p.env(), p.home()
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	errs, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	s.in, s.started = in, time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	said := make(chan struct{})
	go func() {
		io.Copy(&s.errs, errs)
		close(said)
	}()
	go s.read(out, said)
	return s, nil
}

// message is any line of either side.
type message struct {
	JSONRPC string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id,omitzero"`
	Method  string         `json:"method,omitempty"`
	Params  any            `json:"params,omitempty"`
	Result  jsontext.Value `json:"result,omitzero"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// read hands each answer to who waits for it, until the output ends; said is closed
// when the server has written its last message, which tells why it ended.
func (s *server) read(out io.Reader, said <-chan struct{}) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		at := time.Now()
		if err != nil {
			break
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			continue
		}
		if m.Method != "" {
			if len(m.ID) > 0 {
				s.answer(m)
			}
			continue
		}
		var id int
		if json.Unmarshal(m.ID, &id) != nil {
			continue
		}
		a := reply{at: at, result: m.Result}
		if m.Error != nil {
			a.err = fmt.Errorf("error %d: %s", m.Error.Code, m.Error.Message)
		}
		s.deliver(id, a)
	}
	select {
	case <-said:
	case <-time.After(time.Second): // a process it left behind may hold the pipe
	}
	close(s.ended)
	s.mu.Lock()
	ids := slices.Collect(maps.Keys(s.waiting))
	s.mu.Unlock()
	for _, id := range ids {
		s.deliver(id, reply{at: time.Now(), err: errors.New("the server ended: " + lastLines(s.errs.String()))})
	}
}

func (s *server) deliver(id int, a reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.waiting[id]; ok {
		c <- a
		delete(s.waiting, id)
	}
}

// answer replies to a request of the server: ping is answered, all else refused.
func (s *server) answer(m message) {
	body := `"error":{"code":-32601,"message":"not offered by this client"}`
	if m.Method == "ping" {
		body = `"result":{}`
	}
	// A failed write shows in the next request.
	s.write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, body))
}

// write sends one line. It holds no lock that the reader needs: when both pipes are
// full, one side must go on reading.
func (s *server) write(line []byte) error {
	s.out.Lock()
	defer s.out.Unlock()
	_, err := s.in.Write(append(line, '\n'))
	return err
}

// send writes a request and returns the moment before it was written and where its
// answer will come.
func (s *server) send(method string, params any) (time.Time, <-chan reply) {
	c := make(chan reply, 1)
	s.mu.Lock()
	s.next++
	id := s.next
	s.waiting[id] = c
	s.mu.Unlock()
	line, err := json.Marshal(message{JSONRPC: "2.0", ID: jsontext.Value(strconv.Itoa(id)), Method: method, Params: params})
	begin := time.Now()
	if err == nil {
		err = s.write(line)
	}
	if err != nil {
		s.deliver(id, reply{at: begin, err: fmt.Errorf("%w: %s", err, lastLines(s.errs.String()))})
	}
	return begin, c
}

// wait takes an answer.
func wait(ctx context.Context, c <-chan reply) (reply, error) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case a := <-c:
		return a, a.err
	case <-ctx.Done():
		return reply{}, ctx.Err()
	case <-limit.C:
		return reply{}, fmt.Errorf("no answer in %s", patience)
	}
}

// request asks and waits; it returns how long the answer took.
func (s *server) request(ctx context.Context, method string, params any) (jsontext.Value, time.Duration, error) {
	begin, c := s.send(method, params)
	a, err := wait(ctx, c)
	return a.result, a.at.Sub(begin), err
}

// initialize opens the session in the legacy way and returns the time from the
// start of the process to the answer.
func (s *server) initialize(ctx context.Context) (time.Duration, error) {
	_, c := s.send("initialize", map[string]any{
		"protocolVersion": "2025-11-25",
		"capabilities":    map[string]any{},
		"clientInfo":      map[string]any{"name": "mooncite-bench", "version": "1"},
	})
	a, err := wait(ctx, c)
	if err != nil {
		return 0, fmt.Errorf("initialize: %w", err)
	}
	return a.at.Sub(s.started), s.write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
}

// call uses a tool and reads its structured answer into out.
func (s *server) call(ctx context.Context, tool string, args, out any) (time.Duration, error) {
	result, took, err := s.request(ctx, "tools/call", toolCall(tool, args))
	if err == nil {
		err = structured(result, out)
	}
	if err != nil {
		return took, fmt.Errorf("%s: %w", tool, err)
	}
	return took, nil
}

func toolCall(tool string, args any) map[string]any {
	return map[string]any{"name": tool, "arguments": args}
}

// structured reads the structured part of a tool's answer.
func structured(result jsontext.Value, out any) error {
	var r struct {
		IsError           bool           `json:"isError"`
		StructuredContent jsontext.Value `json:"structuredContent"`
		Content           []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return err
	}
	if r.IsError || len(r.StructuredContent) == 0 {
		text := ""
		if len(r.Content) > 0 {
			text = r.Content[0].Text
		}
		return errors.New("no good answer: " + lastLines(text))
	}
	return json.Unmarshal(r.StructuredContent, out)
}

// close ends the session as a client does, by closing the server's input.
func (s *server) close() error {
	s.in.Close()
	select {
	case <-s.ended:
	case <-time.After(5 * time.Second):
		s.cmd.Process.Kill()
		s.cmd.Wait()
		return errors.New("serve did not end within 5 s of the end of its input")
	}
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("serve: %w: %s", err, lastLines(s.errs.String()))
	}
	return nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buf.Len() > 64<<10 {
		t.buf.Next(t.buf.Len() - 1<<10)
	}
	return t.buf.Write(p)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

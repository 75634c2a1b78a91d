package mcpserve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// linger is how long handlers have to notice that they were cancelled, and to answer that.
	linger = 300 * time.Millisecond
	// endMost bounds the same with what [Options.AtEnd] takes.
	endMost = 1100 * time.Millisecond
	// last is how long the SDK has to close a session whose handlers are gone.
	last = 100 * time.Millisecond
	// most requests may wait for an answer at once; a batch counts each.
	most = 256
	// mostInBatch bounds one batch of the revisions that had them.
	mostInBatch = 100
)

// conn carries one session over newline-delimited JSON. Unlike the SDK's own it
// answers and skips a line it cannot read instead of ending, and does not answer a
// cancelled request.
type conn struct {
	out    io.Writer
	drain  time.Duration // how long calls may still go on after the input ended
	atEnd  func()        // see [Options.AtEnd]; may be nil
	frames chan frame
	queue  []jsonrpc.Message // what is left of a batch; used by Read only

	// For a handover; used by Read only, and after it has said that it is over.
	left        *frame // what was not taken up
	initialized bool

	stop   chan struct{} // closed by Close
	finish chan struct{} // closed when the session is to end, whatever the input says
	ending chan struct{} // closed when calls are to end that still run
	ended  chan struct{} // closed when Read has said that the input is over
	wake   chan struct{} // signals that a pending request was answered

	once, end, told sync.Once

	// The two locks are never held together.
	writing sync.Mutex // guards out and mute
	mute    bool       // another process speaks now
	mu      sync.Mutex // guards what follows and what it holds
	pending map[jsonrpc.ID]*pending
	sending int // answers on their way out
}

var (
	_ mcp.Transport  = (*conn)(nil)
	_ mcp.Connection = (*conn)(nil)
)

// pending is a request that was read and not yet answered.
type pending struct {
	stream    bool // answered only when its stream ends
	cancelled bool
	batch     *batch
}

// batch collects the answers of one batch.
type batch struct {
	left    int
	answers [][]byte
}

// connOptions are how a conn reads.
type connOptions struct {
	max    int // bytes of a line
	drain  time.Duration
	atEnd  func()
	stale  func() bool // see [Options.Stale]; may be nil
	unread []byte      // comes before the input; its first line is never stale
}

func newConn(in io.Reader, out io.Writer, o connOptions) *conn {
	c := &conn{
		out:     out,
		drain:   o.drain,
		atEnd:   o.atEnd,
		frames:  make(chan frame),
		stop:    make(chan struct{}),
		finish:  make(chan struct{}),
		ending:  make(chan struct{}),
		ended:   make(chan struct{}),
		wake:    make(chan struct{}, 1),
		pending: map[jsonrpc.ID]*pending{},
	}
	// The reader of a real stdin cannot be interrupted; it ends with the process.
	go readFrames(in, o, c.frames, c.stop)
	return c
}

// Connect makes a conn its own transport.
func (c *conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID is empty: a pipe is its own session.
func (c *conn) SessionID() string { return "" }

// Close ends reading; the streams belong to others.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.stop) })
	return nil
}

// Finish makes Read say that the input is over, once what runs has been answered or given up.
func (c *conn) Finish() { c.told.Do(func() { close(c.finish) }) }

// Read returns the next message, or io.EOF when the input or the session is over.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			m := c.queue[0]
			c.queue = c.queue[1:]
			return m, nil
		}
		select {
		case <-ctx.Done():
			return nil, c.over()
		case <-c.stop:
			return nil, c.over()
		case <-c.finish:
			c.windUp()
			return nil, c.over()
		case f := <-c.frames:
			if f.err != nil {
				c.settle(c.drain, c.finish)
				c.windUp()
				return nil, c.over()
			}
			if f.stale {
				if !c.handOver(ctx, f) {
					c.windUp()
				}
				return nil, c.over()
			}
			c.accept(f)
		}
	}
}

func (c *conn) over() error {
	c.end.Do(func() { close(c.ended) })
	return io.EOF
}

// settle waits a little for requests that are still being worked on: a script may
// write its requests, close the pipe and read the answers.
func (c *conn) settle(most time.Duration, until <-chan struct{}) {
	t := time.NewTimer(most)
	defer t.Stop()
	for c.working() > 0 {
		select {
		case <-c.wake:
		case <-t.C:
			return
		case <-until:
			return
		case <-c.stop:
			return
		}
	}
}

// windUp ends what runs while answers can still be given: behind the end of Read the SDK
// sends none.
func (c *conn) windUp() {
	close(c.ending)
	until := time.Now().Add(endMost)
	if c.atEnd != nil {
		done := make(chan struct{})
		go func() { defer close(done); c.atEnd() }()
		t := time.NewTimer(endMost)
		defer t.Stop()
		select {
		case <-done:
		case <-t.C: // left behind, as a handler is that does not end
		case <-c.stop:
			return
		}
	}
	c.settle(min(linger, time.Until(until)), nil)
}

func (c *conn) working() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.sending
	for _, p := range c.pending {
		if !p.stream {
			n++
		}
	}
	return n
}

// accept queues the messages of a line, or answers that it cannot.
func (c *conn) accept(f frame) {
	line := bytes.TrimSpace(f.line)
	switch {
	case f.tooLong:
		c.reject(outerID(f.line), jsonrpc.CodeInvalidRequest, "the message is too long")
	case len(line) == 0:
	case !json.Valid(line):
		c.reject(nil, jsonrpc.CodeParseError, "the line is not valid JSON")
	case line[0] == '[':
		c.acceptBatch(line)
	default:
		if m := c.decode(line); m != nil && c.track(m, nil) {
			c.queue = append(c.queue, m)
		}
	}
}

func (c *conn) acceptBatch(line []byte) {
	var parts []json.RawMessage
	if json.Unmarshal(line, &parts) != nil || len(parts) == 0 || len(parts) > mostInBatch {
		c.reject(nil, jsonrpc.CodeInvalidRequest, "the batch is empty or too long")
		return
	}
	b := &batch{}
	for _, part := range parts {
		if m := c.decode(part); m != nil && c.track(m, b) {
			c.queue = append(c.queue, m)
		}
	}
}

// decode reads one message; what is JSON but no message is answered, with its id
// when it has one.
func (c *conn) decode(line []byte) jsonrpc.Message {
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		c.reject(outerID(line), jsonrpc.CodeInvalidRequest, "the line is not a JSON-RPC 2.0 message")
		return nil
	}
	return m
}

// track notes a request so that its answer can be counted, batched or left out. It
// reports whether the request may go on.
func (c *conn) track(m jsonrpc.Message, b *batch) bool {
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return true
	}
	if !r.IsCall() {
		switch r.Method {
		case "notifications/cancelled":
			c.cancelled(r.Params)
		case "notifications/initialized":
			c.initialized = true
		}
		return true
	}
	if c.book(r, b) {
		return true
	}
	id, _ := json.Marshal(r.ID.Raw())
	c.reject(id, jsonrpc.CodeInternalError, "too many requests are waiting for an answer; try again later")
	return false
}

// book opens the books of a request, or reports that there are too many.
func (c *conn) book(r *jsonrpc.Request, b *batch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.pending[r.ID]; twice {
		return true // the SDK refuses it
	}
	if len(c.pending) >= most {
		return false
	}
	c.pending[r.ID] = &pending{stream: r.Method == "subscriptions/listen", batch: b}
	if b != nil {
		b.left++
	}
	return true
}

func (c *conn) cancelled(params json.RawMessage) {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.pending[id]; call != nil && !call.stream {
		call.cancelled = true
	}
}

// Write sends one message as one line.
func (c *conn) Write(_ context.Context, m jsonrpc.Message) error {
	resp, ok := m.(*jsonrpc.Response)
	if !ok {
		data, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return err
		}
		return c.send(data)
	}
	data := encodeResponse(resp)
	defer c.sent()
	if data = c.answered(resp.ID, data); data == nil {
		return nil
	}
	return c.send(data)
}

// encodeResponse writes an answer; one that cannot be written becomes a failure with
// the same id, for a client must not wait forever.
func encodeResponse(r *jsonrpc.Response) []byte {
	if e := (*jsonrpc.Error)(nil); r.Error != nil && (!errors.As(r.Error, &e) || e.Code == 0) {
		// The SDK gives no code to a request that comes at the wrong time.
		r = &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: r.Error.Error()}}
	}
	data, err := jsonrpc.EncodeMessage(r)
	if err != nil {
		id, _ := json.Marshal(r.ID.Raw())
		return failure(id, jsonrpc.CodeInternalError, "the answer could not be written")
	}
	return data
}

// answered settles the books of a request and returns what is to be sent now: the
// answer, its whole batch, or nothing.
func (c *conn) answered(id jsonrpc.ID, data []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending++
	p := c.pending[id]
	if p == nil {
		return data
	}
	delete(c.pending, id)
	if p.cancelled {
		data = nil
	}
	if p.batch == nil {
		return data
	}
	if data != nil {
		p.batch.answers = append(p.batch.answers, data)
	}
	if p.batch.left--; p.batch.left > 0 || len(p.batch.answers) == 0 {
		return nil
	}
	return append(append([]byte{'['}, bytes.Join(p.batch.answers, []byte{','})...), ']')
}

// sent says that what answered gave is out.
func (c *conn) sent() {
	c.mu.Lock()
	c.sending--
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// reject answers what never became a request.
func (c *conn) reject(id json.RawMessage, code int, message string) {
	_ = c.send(failure(id, code, message)) // a broken pipe is found by the reader
}

func failure(id json.RawMessage, code int, message string) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	data, _ := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": code, "message": message},
	})
	return data
}

func (c *conn) send(data []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.mute {
		return nil
	}
	_, err := c.out.Write(append(data, '\n'))
	return err
}

package mcpserve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// handover is what a session leaves when another process is to go on with it, such that
// the client does not notice.
type handover struct {
	Session   mcp.ServerSessionState `json:"session"`
	Unread    []byte                 `json:"unread"` // what the client sent and nobody has taken up
	Artifacts []keptArtifact         `json:"artifacts,omitempty"`
}

type keptArtifact struct {
	URI     string    `json:"uri"`
	Doc     string    `json:"doc"`
	Expires time.Time `json:"expires"`
	Tool    string    `json:"tool"`
	Basis   string    `json:"basis"`
}

// Resume is [Server.Serve] for a session that another process began: state is what that
// one's Resume returned. Nil begins a new session. When [Options.Stale] ended it, next is
// the state to go on with, else nil.
func (s *Server) Resume(ctx context.Context, state []byte, in io.Reader, out io.Writer) (next []byte, err error) {
	var from handover
	if len(state) > 0 {
		if err := json.Unmarshal(state, &from); err != nil {
			return nil, fmt.Errorf("read the state of the session: %w", err)
		}
	}
	if s.keep != nil {
		s.keep.restore(from.Artifacts)
	}
	c := newConn(in, out, connOptions{max: s.opts.MaxFrame, drain: s.opts.Drain, atEnd: s.opts.AtEnd, stale: s.opts.Stale, unread: from.Unread})
	defer c.Close()
	session, err := s.sdk.Connect(context.WithValue(ctx, connKey{}, c), c, &mcp.ServerSessionOptions{State: &from.Session})
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = session.Wait() // how a session ended is not a failure of ours
	}()
	s.await(ctx, c, done)
	if c.left == nil {
		return nil, nil
	}
	return s.leave(session, c, from.Session)
}

// await waits for the end of a session, and no longer than promised.
func (s *Server) await(ctx context.Context, c *conn, done <-chan struct{}) {
	select {
	case <-done:
		return
	case <-c.ended:
	case <-ctx.Done():
		c.Finish()
		select {
		case <-c.ended:
		case <-time.After(endMost + last): // the SDK does not come back to read
			c.Close()
		}
	}
	t := time.NewTimer(last)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// leave writes down what the next process needs.
func (s *Server) leave(session *mcp.ServerSession, c *conn, before mcp.ServerSessionState) ([]byte, error) {
	h := handover{Session: before, Unread: c.left.rest}
	h.Session.InitializeParams = session.InitializeParams()
	if h.Session.InitializedParams == nil && c.initialized {
		h.Session.InitializedParams = &mcp.InitializedParams{}
	}
	if s.keep != nil {
		h.Artifacts = s.keep.all()
	}
	return json.Marshal(h)
}

// all returns what is kept, oldest first.
func (s *shelf) all() []keptArtifact {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(s.now())
	var list []keptArtifact
	for _, a := range s.kept {
		list = append(list, keptArtifact{a.uri, a.doc, a.expires, a.tool, a.basis})
	}
	return list
}

// restore puts what another process kept on an empty shelf.
func (s *shelf) restore(list []keptArtifact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range list {
		s.kept = append(s.kept, artifact{a.URI, a.Doc, a.Expires, a.Tool, a.Basis})
		s.bytes += len(a.Doc)
	}
	s.sweep(s.now())
}

// handOver finishes what runs and then says nothing more. No stream is among it: this
// package offers no changes to listen to, so that one ends as soon as it begins. It reports
// whether that came before the end of everything.
func (c *conn) handOver(ctx context.Context, f frame) bool {
	for c.unanswered() > 0 {
		select {
		case <-c.wake:
		case <-c.stop:
			return false
		case <-c.finish:
			return false
		case <-ctx.Done():
			return false
		}
	}
	c.writing.Lock()
	c.mute = true
	c.writing.Unlock()
	c.left = &f
	return true
}

// unanswered counts what was asked and whose answer is not out.
func (c *conn) unanswered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) + c.sending
}

package mcpserve

import (
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// shares are how many calls of each owner run or wait. In the era of sessions a call goes on
// when its client goes away, so that no bound of what is open bounds them.
type shares struct {
	most int

	mu   sync.Mutex // guards held
	held map[string]int
}

// take counts a call of an owner in, if it has not all it may have.
func (s *shares) take(owner string) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[owner] >= s.most {
		return nil, false
	}
	s.held[owner]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held[owner]--; s.held[owner] == 0 {
			delete(s.held, owner)
		}
	}, true
}

// share takes a place for a call among those of its owner. What comes by a pipe has all of
// them.
func (s *Server) share(req *mcp.CallToolRequest) (release func(), ok bool) {
	if req.Extra == nil || len(req.Extra.Header[ownerKey]) != 1 {
		return func() {}, true
	}
	return s.shares.take(req.Extra.Header[ownerKey][0])
}

package mcpserve

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"localmcp/internal/op"
)

// Artifacts say how the whole of a cut answer is kept.
type Artifacts struct {
	Scheme string        // of its address: <scheme>://artifact/<id>; empty keeps none
	Kind   string        // the document's kind member
	Keep   int           // how many; 0 means 12
	Life   time.Duration // for how long; 0 means 10 minutes
	Bytes  int           // all together; 0 means 8 MiB

	// Basis, when it is set, names the state of what a tool's answers rest on. An answer
	// is given again only while that is what it was before the tool was called: what the
	// owner has withdrawn since must not be read here. It is called by several goroutines.
	Basis func(tool string) string
}

// shelf keeps the newest whole answers in memory for a short time.
type shelf struct {
	cfg Artifacts
	now func() time.Time

	mu    sync.Mutex // guards what follows
	kept  []artifact // oldest first
	bytes int
}

type artifact struct {
	uri     string
	doc     string
	expires time.Time
	tool    string
	basis   string // of the tool, when the answer was made
}

func newShelf(cfg Artifacts, now func() time.Time) *shelf {
	cfg.Keep = orDefault(cfg.Keep, 12)
	cfg.Bytes = orDefault(cfg.Bytes, 8<<20)
	if cfg.Life <= 0 {
		cfg.Life = 10 * time.Minute
	}
	return &shelf{cfg: cfg, now: now}
}

// basis is what a tool's answers rest on now. A nil shelf keeps none.
func (s *shelf) basis(tool string) string {
	if s == nil || s.cfg.Basis == nil {
		return ""
	}
	return s.cfg.Basis(tool)
}

// put keeps an answer that rests on a basis and says where; nil when it is larger than the
// whole shelf.
func (s *shelf) put(tool, basis string, r rendered) *op.Full {
	now := s.now()
	doc, err := op.Encode(struct {
		Kind    string          `json:"kind"`
		Tool    string          `json:"tool"`
		Created string          `json:"createdAt"`
		Text    string          `json:"renderedText"`
		Data    json.RawMessage `json:"structuredContent"`
	}{s.cfg.Kind, tool, stamp(now), r.text, r.data})
	if err != nil {
		return nil
	}
	var b bytes.Buffer
	if json.Indent(&b, doc, "", "  ") != nil || b.Len() > s.cfg.Bytes {
		return nil
	}
	a := artifact{s.prefix() + strings.ToLower(rand.Text()), b.String(), now.Add(s.cfg.Life), tool, basis}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, a)
	s.bytes += len(a.doc)
	s.sweep(now)
	return &op.Full{URI: a.uri, Bytes: len(a.doc), ExpiresAt: stamp(a.expires)}
}

// get returns a document that is still kept.
func (s *shelf) get(uri string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(s.now())
	i := slices.IndexFunc(s.kept, func(a artifact) bool { return a.uri == uri })
	if i < 0 {
		return "", false
	}
	a := s.kept[i]
	if s.basis(a.tool) != a.basis {
		s.bytes -= len(a.doc)
		s.kept = slices.Delete(s.kept, i, i+1)
		return "", false
	}
	return a.doc, true
}

// sweep drops what is too old, too many or too much, oldest first. s.mu is held.
func (s *shelf) sweep(now time.Time) {
	for len(s.kept) > 0 {
		oldest := s.kept[0]
		if now.Before(oldest.expires) && len(s.kept) <= s.cfg.Keep && s.bytes <= s.cfg.Bytes {
			return
		}
		s.bytes -= len(oldest.doc)
		s.kept[0] = artifact{}
		s.kept = s.kept[1:]
	}
}

func (s *shelf) prefix() string { return s.cfg.Scheme + "://artifact/" }

// addArtifacts shows the shelf as one resource template.
func (s *Server) addArtifacts() {
	s.sdk.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: s.keep.prefix() + "{id}",
		Name:        "full_result",
		Title:       "The whole of an answer that was cut",
		Description: "Kept for a few minutes after the answer; its address is in resultDetail.fullResult.",
		MIMEType:    "application/json",
	}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		doc, ok := s.keep.get(req.Params.URI)
		if !ok {
			return nil, notFound(req.Params.URI)
		}
		return text(doc), nil
	})
}

func text(content string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{Text: content}}}
}

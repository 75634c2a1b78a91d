package mcpserve

import (
	"log/slog"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"localmcp/internal/op"
)

// Options say what to serve. Only Name, Version and Set are needed.
type Options struct {
	Name         string // how the program calls itself
	Title        string // how people call it
	Version      string
	Instructions string // for models; the first 512 characters must stand alone

	Set    op.Set    // the operations shown, in this order
	Runner op.Runner // runs them; nil means Set; a panic below it fails the call alone
	Caller string    // goes into every call; empty means "local"

	Artifacts Artifacts // how whole answers are kept; the zero value keeps none

	MaxReply int // bytes an answer may have before it is cut; 0 means 10000
	MaxCalls int // tool calls running at once; 0 means 16
	MaxFrame int // bytes of one incoming message; 0 means 8 MiB

	// Drain is how long requests may go on after the input ended; 0 means 800 ms. A longer
	// one, or any with AtEnd above 400 ms, gives up the promise to end within two seconds.
	Drain time.Duration

	// AtEnd, when it is set, is called once a session when it is about to end and calls are told
	// so. It ends what they wait for, such that they can still answer, within a second.
	AtEnd func()

	// Whole names clients (by clientInfo.name) that always get whole answers.
	Whole []string

	// Stale, when it is set, is asked before each message is taken up whether another
	// process should do that. Then what runs is finished and [Server.Resume] returns. It
	// is called by one goroutine.
	Stale func() bool

	Log *slog.Logger     // nil means none
	Now func() time.Time // nil means time.Now
}

// Server serves the operations; one value may serve many sessions.
type Server struct {
	opts  Options
	sdk   *mcp.Server
	self  *mcp.Implementation
	caps  *mcp.ServerCapabilities
	keep  *shelf
	slots chan struct{}
	tools func() map[string]shown // of the set, by name
}

// shown is a tool as clients see it, and its place in the list.
type shown struct {
	*mcp.Tool
	place int
}

// New builds a server. It panics on what only a programmer can get wrong.
func New(o Options) *Server {
	if o.Name == "" || o.Version == "" {
		panic("mcpserve: a server needs a name and a version")
	}
	if o.Runner == nil {
		o.Runner = o.Set
	}
	o.Runner = op.Recover(o.Runner) // the SDK would let a panic end the process
	if o.Caller == "" {
		o.Caller = "local"
	}
	o.MaxReply = orDefault(o.MaxReply, 10_000)
	o.MaxCalls = orDefault(o.MaxCalls, 16)
	o.MaxFrame = orDefault(o.MaxFrame, 8<<20)
	if o.Drain <= 0 {
		o.Drain = 800 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{
		opts:  o,
		self:  &mcp.Implementation{Name: o.Name, Title: o.Title, Version: o.Version},
		caps:  &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		slots: make(chan struct{}, o.MaxCalls),
		tools: sync.OnceValue(func() map[string]shown {
			all := map[string]shown{}
			for i, each := range o.Set.Ops() {
				t := tool(each)
				t.InputSchema, t.OutputSchema = each.InputSchema(), each.OutputSchema()
				all[t.Name] = shown{t, i}
			}
			return all
		}),
	}
	if o.Artifacts.Scheme != "" {
		s.caps.Resources = &mcp.ResourceCapabilities{}
	}
	s.sdk = mcp.NewServer(s.self, &mcp.ServerOptions{Instructions: o.Instructions, Capabilities: s.caps})
	for _, each := range o.Set.Ops() {
		s.sdk.AddTool(tool(each), s.handler(each))
	}
	if o.Artifacts.Scheme != "" {
		s.keep = newShelf(o.Artifacts, o.Now)
		s.addArtifacts()
	}
	s.sdk.AddReceivingMiddleware(s.middleware)
	return s
}

func orDefault(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// tool shows an operation's spec in the protocol's words, every hint spoken. Its schema is
// put in when the tools are listed: the SDK would look through each when it is added.
func tool(o op.Op) *mcp.Tool {
	spec := o.Spec()
	return &mcp.Tool{
		Name:        spec.Name,
		Title:       spec.Title,
		Description: spec.Doc,
		InputSchema: &jsonschema.Schema{Type: "object"},
		Annotations: &mcp.ToolAnnotations{
			Title:           spec.Title,
			ReadOnlyHint:    spec.ReadOnly,
			DestructiveHint: &spec.Destructive,
			IdempotentHint:  spec.Idempotent,
			OpenWorldHint:   &spec.OpenWorld,
		},
	}
}

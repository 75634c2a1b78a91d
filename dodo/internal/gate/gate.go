package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// Authority says who calls and what holds on a workspace, at this moment. Every method is
// asked anew for each call, and again after a wait.
type Authority interface {
	// Principal resolves what a door established about the caller.
	Principal(ctx context.Context, caller string) (contract.Principal, error)
	// Standing is what holds for a principal on a workspace.
	Standing(ctx context.Context, p contract.Principal, workspace string) (Standing, error)
}

// Standing is a caller's place on a workspace.
type Standing struct {
	Scopes  contract.Scopes // effective
	Trust   contract.Trust  // effective
	Version int             // of the owner's policy; another one makes approvals void
}

// Workspaces finds the workspace a call is about.
type Workspaces interface {
	// Lease gives the workspace of a project, or the active one when project is empty. It
	// stays open until release is called.
	Lease(ctx context.Context, p contract.Principal, project string) (w Workspace, release func(), err error)
}

// Workspace is an open workspace.
type Workspace struct {
	ID, Epoch string
	Lookup    func(name string) (contract.Op, bool)
	Turns     *Turns
}

// Config is what a gate is made of. All but Log and Now is needed.
type Config struct {
	Authority  Authority
	Workspaces Workspaces
	State      *state.Store // approvals, receipts, audit
	Limits     func() contract.Limits

	Log *slog.Logger
	Now func() time.Time
}

// Gate runs calls.
type Gate struct{ Config }

// New returns a gate.
func New(c Config) *Gate {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Gate{c}
}

// Request is a call as a door hands it in.
type Request struct {
	Caller  string          // as the door established it
	Op      string          // the target's name
	Context Context         // where; of a tool call, taken from its arguments by [Split]
	Args    json.RawMessage // without the context
	Via     string          // the gateway, if there is one
	// Malformed is why the call could not be read; it is refused with that and recorded.
	Malformed error
	Progress  func(done, total float64, message string)
}

// Run takes a call through. It always answers.
func (g *Gate) Run(ctx context.Context, r Request) *contract.Reply {
	c := &call{Gate: g, Request: r, begun: g.Now(), id: contract.NewID("req", 16)}
	defer c.release()
	ctx, end := context.WithCancel(ctx) // what lasts as long as the call, such as a view, ends with it
	defer end()
	result, err := c.run(ctx)
	if errors.Is(context.Cause(ctx), op.ErrEnding) && errors.Is(err, context.Canceled) && fault.From(err).Code == fault.Internal {
		hint := "nothing was done"
		if c.done {
			hint = afterEffect
		}
		err = ending(hint)
	}
	reply := c.reply(result, err)
	if err := c.record(reply); err != nil {
		g.Log.Error("audit failed; the result is withheld", "op", r.Op, "request", c.id, "cause", err)
		return contract.Failure(c.shownID, c.shownEpoch, c.unrecorded(err))
	}
	return reply
}

// unrecorded is the fault of a call that could not be recorded, with the reason when it is
// one that somebody can do something about.
func (c *call) unrecorded(cause error) *fault.Error {
	f := fault.New(contract.InternalError, "the call could not be recorded, so its result is withheld").Retry()
	var hints []string
	if c.done {
		hints = append(hints, afterEffect)
	}
	look := "the owner should look at the disk; then call again"
	if why := new(fault.Error); errors.As(cause, &why) {
		f.Msg += ": " + why.Msg
		look = cmp.Or(why.Hint, look)
	}
	hints = append(hints, look)
	return f.WithHint("%s", strings.Join(hints, "; "))
}

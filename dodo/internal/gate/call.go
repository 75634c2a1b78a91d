package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/policy"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// overview is the one operation that needs no context: it gives it.
const overview = "project_overview"

// call is one call on its way.
type call struct {
	*Gate
	Request
	id    string
	begun time.Time

	principal contract.Principal
	workspace Workspace
	op        contract.Op
	leased    func()

	shownID, shownEpoch string // what the envelope may say; empty before access is established
	done                bool   // an effect was begun
	ref                 string // id of what came of it

	key    *state.Key // of the call, when it has one
	digest string     // of its arguments
}

func (c *call) release() {
	if c.leased != nil {
		c.leased()
	}
}

// run is the road, in the order of spec dodo-behaviour 1.11.
func (c *call) run(ctx context.Context) (_ contract.Result, err error) {
	defer c.contain(&err)
	var none contract.Result
	p, err := c.Authority.Principal(ctx, c.Caller)
	if err != nil {
		return none, err
	}
	c.principal = p
	err = c.reach(ctx)
	if err == nil {
		_, err = c.authorize(ctx)
	}
	if err != nil {
		return c.choose(ctx, err)
	}
	if err := c.context(); err != nil {
		return none, err
	}
	if max := c.Limits().RequestBodyBytes; len(c.Args) > max {
		return none, fault.New(contract.ResourceLimit, "the arguments have %d bytes, more than the %d allowed", len(c.Args), max).
			WithHint("send less at once, or let the owner choose a larger profile: dodo limits --profile large")
	}
	if c.Malformed != nil {
		return none, c.Malformed
	}
	bound, err := c.op.Bind(c.Args)
	if err != nil {
		return none, err
	}
	receipt, err := c.replay(ctx, bound)
	if err != nil || receipt != nil {
		return contract.Result{Data: receipt}, err
	}
	prepared, err := c.prepare(ctx, bound)
	if err != nil {
		return none, err
	}
	if prepared.Done != nil {
		return *prepared.Done, nil
	}
	return c.act(ctx, prepared)
}

// reach finds the workspace and the operation.
func (c *call) reach(ctx context.Context) error {
	project := ""
	if t := c.Context.TargetProjectID; t != nil {
		if !contract.IsProjectID(*t) {
			return invalid("targetProjectId is not the id of a project").WithHint("project_overview lists the projects and their ids")
		}
		if err := c.unfederated(); err != nil {
			return err
		}
		project = *t
	}
	w, release, err := c.Workspaces.Lease(ctx, c.principal, project)
	if err != nil {
		return err
	}
	c.workspace, c.leased = w, release
	o, ok := w.Lookup(c.Op)
	if !ok && c.Malformed != nil {
		return c.Malformed
	}
	if !ok {
		return fault.New(contract.NotFound, "there is no operation called %s", quoted(c.Op)).
			WithHint("dodo_discover finds operations by what they do")
	}
	c.op = o
	return nil
}

// choose answers a caller that only has to be told which project to name; anything else is
// refused with the reason.
func (c *call) choose(ctx context.Context, reason error) (none contract.Result, err error) {
	noRead := errors.Is(reason, contract.WorkspaceAccessRequired) || errors.Is(reason, contract.Forbidden)
	if c.Op != overview || !noRead || c.Choose == nil || c.Context.TargetProjectID != nil || c.Malformed != nil {
		return none, reason
	}
	choice, err := c.Choose(ctx, c.principal)
	if err != nil || choice == nil {
		return none, cmp.Or(err, reason)
	}
	if _, err := choice.Op.Bind(c.Args); err != nil {
		return none, err
	}
	c.op = choice.Op
	return choice.Result, nil
}

// unfederated refuses a call that names two places at once.
func (c *call) unfederated() error {
	err := members(c.Args, func(name string, _ []byte, value jsontext.Value) error {
		if (name == "projectId" || name == "projectIds") && value.Kind() != 'n' { // null is absence, as for every argument
			return invalid("targetProjectId and %s cannot be used together", name).
				WithHint("targetProjectId moves the whole call to another project; %s only reads from one", name)
		}
		return nil
	})
	if err != nil && c.Malformed == nil && len(c.Args) > 0 {
		return err
	}
	return nil
}

// authorize holds the caller against the workspace and the operation's scope.
func (c *call) authorize(ctx context.Context) (Standing, error) {
	s, err := c.Authority.Standing(ctx, c.principal, c.workspace.ID)
	if err != nil {
		return s, err
	}
	if len(s.Scopes) == 0 {
		return s, fault.New(contract.WorkspaceAccessRequired, "the owner has not granted this client access to the workspace").
			WithHint("the owner can grant it on this machine: dodo access set CLIENT --scopes dodo:read")
	}
	if !s.Scopes.Has(c.op.Scope) {
		return s, fault.New(contract.Forbidden, "%s needs the scope %s", c.op.Name, c.op.Scope).
			WithHint("connect again and ask for that scope, or let the owner grant it").With("requiredScope", string(c.op.Scope))
	}
	c.shownID, c.shownEpoch = c.workspace.ID, c.workspace.Epoch
	return s, nil
}

// context holds what the caller believes about the workspace against what is.
func (c *call) context() error {
	if c.Op == overview {
		return nil
	}
	again := "call project_overview and use the workspaceId and workspaceEpoch it gives"
	id, epoch := c.Context.WorkspaceID, c.Context.WorkspaceEpoch
	switch {
	case id == nil || epoch == nil:
		missing := memberWorkspace
		if id != nil {
			missing = memberEpoch
		}
		return invalid("%s is missing", missing).WithHint("%s", again)
	case *id != c.workspace.ID:
		return fault.New(contract.WorkspaceMismatch, "workspaceId is that of another workspace").WithHint("%s", again)
	case *epoch != c.workspace.Epoch:
		return fault.New(contract.StaleWorkspace, "the workspace was opened anew since: by a restart or a switch").WithHint("%s", again)
	}
	return nil
}

// replay looks for the answer to a key that was used before.
func (c *call) replay(ctx context.Context, b contract.Bound) (json.RawMessage, error) {
	if b.Key == "" {
		return nil, nil
	}
	var err error
	if c.digest, err = contract.Digest(jsontext.Value(c.Args)); err != nil {
		return nil, fault.Wrap(contract.InvalidInput, err, "the arguments are not valid JSON").WithHint("give one JSON object")
	}
	c.key = &state.Key{Key: b.Key, Principal: c.principal.GrantID, Workspace: c.workspace.ID, Tool: c.Op}
	receipt, err := c.receipt(ctx)
	if errors.Is(err, contract.RecoveryRequired) && b.Outcome != nil {
		return c.learn(ctx, b, err)
	}
	return receipt, err
}

// receipt is the stored answer of the call's key; nil when there is none.
func (c *call) receipt(ctx context.Context) (json.RawMessage, error) {
	receipt, err := c.State.Receipt(ctx, *c.key, c.digest, c.retention())
	if err != nil || receipt == nil {
		return nil, err
	}
	return replayed(receipt)
}

// learn settles a key of which nobody noted how its call ended, by what the effect itself tells:
// the answer, or nil when the call may be made as if it were new. It fails with unknown where
// that does not tell either.
func (c *call) learn(ctx context.Context, b contract.Bound, unknown error) (receipt json.RawMessage, err error) {
	defer c.contain(&err)
	since, err := c.State.Reserved(ctx, *c.key)
	if err != nil {
		return nil, err
	}
	o, err := b.Outcome(ctx, contract.Call{Principal: c.principal, RequestID: c.id, Since: since})
	if err != nil || !o.Known {
		return nil, cmp.Or(err, unknown)
	}
	if o.Done != nil {
		if receipt, err = op.Encode(*o.Done); err != nil {
			return nil, fmt.Errorf("encode an answer: %w", err)
		}
	}
	if receipt, err = c.State.Settle(ctx, *c.key, c.digest, c.retention(), receipt); err != nil || receipt == nil {
		return nil, err
	}
	return replayed(receipt)
}

func (c *call) retention() time.Duration {
	return time.Duration(c.Limits().IdempotencyRetentionMs) * time.Millisecond
}

// replayed says in a stored answer that it is one.
func replayed(receipt json.RawMessage) (json.RawMessage, error) {
	var data map[string]json.RawMessage
	if err := json.Unmarshal(receipt, &data); err != nil {
		return nil, fmt.Errorf("read a stored answer: %w", err)
	}
	data["replayed"] = json.RawMessage("true")
	return op.Encode(data)
}

// prepare reads and validates.
func (c *call) prepare(ctx context.Context, b contract.Bound) (p contract.Prepared, err error) {
	defer c.contain(&err)
	p, err = b.Prepare(ctx, contract.Call{Principal: c.principal, RequestID: c.id, Progress: c.Progress})
	if err == nil && p.Done == nil && p.Run == nil {
		err = errors.New("the operation prepared nothing and answered nothing")
	}
	return p, err
}

// contain turns a panic into a failure of this call.
func (c *call) contain(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic in %s: %v\n%s", c.Op, p, debug.Stack())
	}
}

// question is what the owner would be asked: everything the answer is bound to.
func (c *call) question(p contract.Prepared, s Standing) (state.Question, error) {
	detail, err := op.Encode(p.Preview)
	if err != nil {
		return state.Question{}, fmt.Errorf("encode a preview: %w", err)
	}
	var args any = map[string]any{}
	if len(c.Args) > 0 {
		args = jsontext.Value(c.Args)
	}
	digest, err := contract.Digest(map[string]any{"op": c.Op, "args": args, "preview": jsontext.Value(detail), "policy": s.Version})
	if err != nil {
		return state.Question{}, fmt.Errorf("digest of a call: %w", err)
	}
	return state.Question{
		Workspace: c.workspace.ID, Epoch: c.workspace.Epoch, Principal: c.principal.GrantID,
		Tool: c.Op, Digest: digest, Summary: p.Summary, Detail: detail,
	}, nil
}

// approve uses the owner's approval of this very call, or asks for it.
func (c *call) approve(ctx context.Context, p contract.Prepared, s Standing) error {
	if policy.Decide(c.op.Class, s.Trust) == policy.Allow {
		return nil
	}
	q, err := c.question(p, s)
	if err != nil {
		return err
	}
	a, used, err := c.State.Consume(ctx, q, time.Duration(c.Limits().ApprovalExpiryMs)*time.Millisecond)
	if err != nil || used {
		return err
	}
	c.ref = a.ID
	return fault.New(contract.ApprovalRequired, "the owner must approve this call on this machine").
		WithHint("ask the owner to run: dodo approve %s. Then make the same call again; approval_status tells whether they did", a.ID).
		With("approvalId", a.ID).With("summary", a.Summary).Retry()
}

// act waits for the turn, holds everything that may have changed meanwhile, and does it.
func (c *call) act(ctx context.Context, act contract.Prepared) (contract.Result, error) {
	var none contract.Result
	done := func() {}
	if !act.NoTurn {
		release, err := c.workspace.Turns.Take(ctx)
		if err != nil {
			return none, err
		}
		done = sync.OnceFunc(release)
		defer done()
	}
	p, err := c.Authority.Principal(ctx, c.Caller)
	if err != nil {
		return none, err
	}
	c.principal = p
	standing, err := c.authorize(ctx)
	if err != nil {
		return none, err
	}
	if c.key != nil { // the same call may have been the one that was waited for
		if receipt, err := c.receipt(ctx); err != nil || receipt != nil {
			return contract.Result{Data: receipt}, err
		}
	}
	if err := c.approve(ctx, act, standing); err != nil {
		return none, err
	}
	if c.key == nil {
		c.done = true
		return c.effect(ctx, act, nil, done)
	}
	reserved, receipt, err := c.State.Reserve(ctx, *c.key, c.digest, c.retention())
	if err != nil {
		return none, err
	}
	if receipt != nil {
		receipt, err = replayed(receipt)
		return contract.Result{Data: receipt}, err
	}
	c.done = true
	result, err := c.effect(ctx, act, reserved, done)
	return result, c.settle(context.WithoutCancel(ctx), reserved, result, err)
}

// effect does it, and gives the turn back before what follows. Who repeats the call meanwhile
// learns what came of it so far.
func (c *call) effect(ctx context.Context, p contract.Prepared, reserved *state.Reservation, done func()) (r contract.Result, err error) {
	defer c.contain(&err)
	if r, err = p.Run(ctx); err != nil || p.Follow == nil {
		return r, err
	}
	c.ref = r.Ref
	if reserved != nil {
		receipt, err := c.encode(r.Data)
		if err == nil {
			err = reserved.Begun(ctx, receipt)
		}
		if err != nil {
			c.Log.Error("a first receipt could not be kept", "op", c.Op, "request", c.id, "cause", err)
		}
	}
	done()
	return p.Follow(ctx, r)
}

// encode writes an answer, which an operation's own types may fail at.
func (c *call) encode(v any) (text json.RawMessage, err error) {
	defer c.contain(&err)
	return op.Encode(v)
}

// settle keeps the answer of an effect, or gives its key back when nothing happened.
func (c *call) settle(ctx context.Context, reserved *state.Reservation, r contract.Result, err error) error {
	var receipt json.RawMessage
	var lost error
	if err == nil {
		receipt, err = c.encode(r.Data)
	}
	if err == nil {
		lost = reserved.Complete(ctx, receipt)
	} else {
		switch known(err).Code {
		case contract.RecoveryRequired, contract.PartialRecoveryRequired, contract.InternalError:
			lost = reserved.Keep(ctx) // what happened is not known
		default:
			lost = reserved.Release(ctx)
		}
	}
	if lost != nil {
		c.Log.Error("a receipt could not be kept", "op", c.Op, "request", c.id, "cause", lost)
	}
	return err
}

package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/policy"
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
}

func (c *call) release() {
	if c.leased != nil {
		c.leased()
	}
}

// run is the road, in the order of spec dodo-behaviour 1.11.
func (c *call) run(ctx context.Context) (contract.Result, error) {
	var none contract.Result
	p, err := c.Authority.Principal(ctx, c.Caller)
	if err != nil {
		return none, err
	}
	c.principal = p
	if err := c.reach(ctx); err != nil {
		return none, err
	}
	standing, err := c.authorize(ctx)
	if err != nil {
		return none, err
	}
	if err := c.context(); err != nil {
		return none, err
	}
	if max := c.Limits().RequestBodyBytes; len(c.Args) > max {
		return none, fault.New(contract.ResourceLimit, "the arguments have %d bytes, more than the %d allowed", len(c.Args), max).
			WithHint("Send less at once, or let the owner choose a larger profile: dodo limits --profile large.")
	}
	if c.Malformed != nil {
		return none, c.Malformed
	}
	bound, err := c.op.Bind(c.Args)
	if err != nil {
		return none, err
	}
	attempt, receipt, err := c.replay(ctx, bound.Key)
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
	ask, err := c.question(prepared, standing)
	if err != nil {
		return none, err
	}
	if policy.Decide(c.op.Class, standing.Trust) == policy.Ask {
		if _, err := c.approved(ctx, ask); err != nil {
			return none, err
		}
	}
	return c.act(ctx, prepared, attempt)
}

// reach finds the workspace and the operation.
func (c *call) reach(ctx context.Context) error {
	project := ""
	if t := c.Context.TargetProjectID; t != nil {
		if !contract.IsProjectID(*t) {
			return invalid("targetProjectId is not the id of a project").WithHint("project_overview lists the projects and their ids.")
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
			WithHint("dodo_discover finds operations by what they do.")
	}
	c.op = o
	return nil
}

// unfederated refuses a call that names two places at once.
func (c *call) unfederated() error {
	err := members(c.Args, func(name string, _ []byte, _ jsontext.Value) error {
		if name == "projectId" || name == "projectIds" {
			return invalid("targetProjectId and %s cannot be used together", name).
				WithHint("targetProjectId moves the whole call to another project; %s only reads from one.", name)
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
			WithHint("The owner can grant it on this machine: dodo access set CLIENT --scopes dodo:read.")
	}
	if !s.Scopes.Has(c.op.Scope) {
		return s, fault.New(contract.Forbidden, "%s needs the scope %s", c.op.Name, c.op.Scope).
			WithHint("Connect again and ask for that scope, or let the owner grant it.").With("requiredScope", string(c.op.Scope))
	}
	c.shownID, c.shownEpoch = c.workspace.ID, c.workspace.Epoch
	return s, nil
}

// context holds what the caller believes about the workspace against what is.
func (c *call) context() error {
	if c.Op == overview {
		return nil
	}
	again := "Call project_overview and use the workspaceId and workspaceEpoch it gives."
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
func (c *call) replay(ctx context.Context, key string) (*Attempt, json.RawMessage, error) {
	if key == "" {
		return nil, nil, nil
	}
	digest, err := contract.Digest(jsontext.Value(c.Args))
	if err != nil {
		return nil, nil, fault.Wrap(contract.InvalidInput, err, "the arguments are not valid JSON")
	}
	a := &Attempt{Key: key, Workspace: c.workspace.ID, Principal: c.principal.GrantID, Op: c.Op, Digest: digest}
	receipt, found, err := c.Receipts.Lookup(ctx, *a)
	if err != nil || !found {
		return a, nil, err
	}
	receipt, err = replayed(receipt)
	return a, receipt, err
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
func (c *call) question(p contract.Prepared, s Standing) (Ask, error) {
	detail, err := op.Encode(p.Preview)
	if err != nil {
		return Ask{}, fmt.Errorf("encode a preview: %w", err)
	}
	var args any = map[string]any{}
	if len(c.Args) > 0 {
		args = jsontext.Value(c.Args)
	}
	digest, err := contract.Digest(map[string]any{"op": c.Op, "args": args, "preview": jsontext.Value(detail), "policy": s.Version})
	if err != nil {
		return Ask{}, fmt.Errorf("digest of a call: %w", err)
	}
	return Ask{
		Workspace: c.workspace.ID, Epoch: c.workspace.Epoch, Principal: c.principal,
		Op: c.Op, Digest: digest, Summary: p.Summary, Detail: detail,
	}, nil
}

// approved asks the owner, or finds that the owner has answered.
func (c *call) approved(ctx context.Context, a Ask) (id string, err error) {
	id, ok, err := c.Approvals.Approve(ctx, a)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", fault.New(contract.ApprovalRequired, "the owner must approve this call on this machine").
			WithHint("Ask the owner to run: dodo approve %s. Then make the same call again; approval_status tells whether they did.", id).
			With("approvalId", id).With("summary", a.Summary).Retry()
	}
	return id, nil
}

// act waits for the turn, holds everything that may have changed meanwhile, and does it.
func (c *call) act(ctx context.Context, p contract.Prepared, attempt *Attempt) (contract.Result, error) {
	var none contract.Result
	done, err := c.workspace.Turns.Take(ctx)
	if err != nil {
		return none, err
	}
	defer done()
	if c.principal, err = c.Authority.Principal(ctx, c.Caller); err != nil {
		return none, err
	}
	standing, err := c.authorize(ctx)
	if err != nil {
		return none, err
	}
	if policy.Decide(c.op.Class, standing.Trust) == policy.Ask {
		ask, err := c.question(p, standing)
		if err != nil {
			return none, err
		}
		id, err := c.approved(ctx, ask)
		if err != nil {
			return none, err
		}
		if err := c.Approvals.Use(ctx, id); err != nil {
			return none, err
		}
	}
	if attempt != nil {
		if err := c.Receipts.Reserve(ctx, *attempt); err != nil {
			return none, err
		}
	}
	c.done = true
	result, err := c.effect(ctx, p)
	if attempt != nil {
		err = c.settle(ctx, *attempt, result, err)
	}
	return result, err
}

func (c *call) effect(ctx context.Context, p contract.Prepared) (r contract.Result, err error) {
	defer c.contain(&err)
	return p.Run(ctx)
}

// settle keeps the answer of an effect, or gives its key back when nothing happened. It
// ends also for a caller that went away: the effect is there.
func (c *call) settle(ctx context.Context, a Attempt, r contract.Result, err error) error {
	ctx = context.WithoutCancel(ctx)
	if err == nil {
		receipt, err := op.Encode(r.Data)
		if err == nil {
			err = c.Receipts.Store(ctx, a, receipt)
		}
		if err != nil {
			c.Log.Error("a receipt could not be kept", "op", c.Op, "request", c.id, "cause", err)
		}
		return nil
	}
	switch known(err).Code {
	case contract.RecoveryRequired, contract.PartialRecoveryRequired, contract.InternalError:
		return err // what happened is not known: the key stays taken
	}
	if e := c.Receipts.Release(ctx, a); e != nil {
		c.Log.Error("a key could not be given back", "op", c.Op, "request", c.id, "cause", e)
	}
	return err
}

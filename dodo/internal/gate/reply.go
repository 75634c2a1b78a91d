package gate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/op"
	"localmcp/internal/safefile"
	"localmcp/internal/sqlitedb"
)

// longestMessage is how much of a sentence a caller is shown, in bytes.
const longestMessage = 600

// reply makes the envelope and holds it against what the operation says it answers. What
// has no code of the contract becomes INTERNAL_ERROR, its text for the log only.
func (c *call) reply(r contract.Result, err error) *contract.Reply {
	if err == nil {
		var reply *contract.Reply
		if reply, err = c.success(r); err == nil {
			return reply
		}
	}
	f := known(err)
	if f.Code == contract.InternalError && c.done && f.Hint == "" {
		f.Hint = afterEffect
	}
	if f.Code == contract.InternalError || f.Err != nil {
		c.Log.Warn("call failed", "op", clipped(c.Op), "request", c.id, "code", string(f.Code), "message", f.Msg, "cause", f.Err)
	}
	return contract.Failure(c.shownID, c.shownEpoch, f)
}

// afterEffect is what to do when the program failed behind the owner's rules.
const afterEffect = "what was asked for may have happened: look before you call again"

// success is the envelope of an answer that is what the operation says it answers.
func (c *call) success(r contract.Result) (reply *contract.Reply, err error) {
	defer c.contain(&err)
	reply = contract.Success(c.shownID, c.shownEpoch, r)
	reply.Most = c.Limits().ToolContentBytes
	encoded, err := reply.JSON()
	if err != nil {
		return nil, err
	}
	if err := c.op.Fits(encoded); err != nil {
		return nil, err
	}
	c.ref = r.Ref
	return reply, nil
}

// record writes the audit: the gateway the call came through, and the call.
func (c *call) record(reply *contract.Reply) error {
	e := state.Event{
		Request: c.id, Principal: c.principal.GrantID, Workspace: c.workspace.ID, Tool: clipped(c.Op),
		Input: inputDigest(c.Args), Ref: c.ref, Duration: c.Now().Sub(c.begun), Result: state.ResultOK,
	}
	if reply.Failed() {
		e.Result = string(reply.Error.Code)
	}
	ctx := context.Background()
	if c.Via != "" {
		outer := e
		outer.Tool = c.Via
		if err := c.State.Audit(ctx, outer); err != nil {
			return err
		}
	}
	return c.State.Audit(ctx, e)
}

// inputDigest tells calls apart in the audit without keeping their arguments.
func inputDigest(args json.RawMessage) string {
	return strings.TrimPrefix(contract.Hash(args), "sha256:")[:24]
}

// known gives an error a code of the contract.
func known(err error) *fault.Error {
	f := *fault.From(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && f.Code == fault.Internal:
		f = fault.Error{Code: contract.Timeout, Msg: "the call took too long", Retryable: true, Err: err}
	case errors.Is(err, context.Canceled) && f.Code == fault.Internal:
		f = fault.Error{Code: contract.Conflict, Msg: "the call was cancelled", Retryable: true, Err: err}
	case slices.ContainsFunc(contract.Codes, func(m contract.CodeMeaning) bool { return m.Code == f.Code }):
	case f.Code == op.InvalidArgument:
		f.Code = contract.InvalidInput
	case f.Code == op.UnknownOperation:
		f.Code = contract.NotFound
	case f.Code == sqlitedb.Busy:
		f.Code, f.Retryable = contract.Timeout, true
	case f.Code == sqlitedb.Full:
		f.Code = contract.ResourceLimit
	case f.Code == safefile.NotSupported:
		f.Code = contract.NotSupported
	default:
		f = fault.Error{Code: contract.InternalError, Msg: "something went wrong inside the program", Err: err}
	}
	if len(f.Msg) > longestMessage {
		cut := longestMessage
		for cut > 0 && !utf8.RuneStart(f.Msg[cut]) {
			cut--
		}
		f.Msg = f.Msg[:cut] + "…"
	}
	return &f
}

// quoted shows a name from outside.
func quoted(name string) string { return strconv.QuoteToASCII(clipped(name)) }

// clipped is the beginning of a name from outside: what is no operation's may be as long as
// a message.
func clipped(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut]
}

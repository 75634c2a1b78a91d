package contract

import (
	"encoding/json"

	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// Envelope is the one form of every answer (spec dodo-catalog 2).
type Envelope[T any] struct {
	OK             bool       `json:"ok" doc:"Whether the call did what it was asked to do."`
	WorkspaceID    *string    `json:"workspaceId" doc:"The workspace that answered; null before access was established."`
	WorkspaceEpoch *string    `json:"workspaceEpoch" doc:"Its epoch."`
	Data           *T         `json:"data" doc:"What the operation answers; null when it failed."`
	Error          *ErrorInfo `json:"error" doc:"Why it failed; null when it did not."`
	Warnings       []string   `json:"warnings"`
	Truncated      bool       `json:"truncated" doc:"There is more than is shown."`
	NextCursor     *string    `json:"nextCursor" doc:"Where to go on, as the argument cursor of the next call."`
}

// ErrorInfo is a failure as callers read it.
type ErrorInfo struct {
	Code      fault.Code     `json:"code"`
	Message   string         `json:"message"`
	Retryable bool           `json:"retryable" doc:"The same call may work later."`
	Recovery  string         `json:"recovery,omitempty" doc:"What to do next."`
	Detail    map[string]any `json:"detail,omitempty" doc:"Facts for programs."`
}

// Reply is an envelope as the doors take it: it knows whether it is a failure and what
// goes beside its text.
type Reply struct {
	Envelope[any]
	Attached []op.Block `json:"-"`
	Most     int        `json:"-"` // bytes of the text; 0 means any

	encoded json.RawMessage // what JSON returned
}

// JSON is the envelope as callers get it. It is encoded once: a reply that was shown does
// not change any more.
func (r *Reply) JSON() (json.RawMessage, error) {
	if r.encoded == nil {
		var err error
		if r.encoded, err = op.Encode(r.Envelope); err != nil {
			return nil, err
		}
	}
	return r.encoded, nil
}

// MarshalJSON is JSON.
func (r *Reply) MarshalJSON() ([]byte, error) { return r.JSON() }

// Failed reports whether the call failed.
func (r *Reply) Failed() bool { return !r.OK }

// Blocks are the pictures and sounds beside the text.
func (r *Reply) Blocks() []op.Block { return r.Attached }

// Success is the envelope of an answer.
func Success(workspace, epoch string, a Result) *Reply {
	r := &Reply{Envelope: Envelope[any]{OK: true, Data: &a.Data, Warnings: a.Warnings, Truncated: a.Truncated}, Attached: a.Blocks}
	r.context(workspace, epoch)
	if a.NextCursor != "" {
		r.NextCursor = &a.NextCursor
	}
	return r
}

// Failure is the envelope of an error. Its cause is left out: it is for the log.
func Failure(workspace, epoch string, f *fault.Error) *Reply {
	r := &Reply{Envelope: Envelope[any]{Error: &ErrorInfo{
		Code: f.Code, Message: f.Error(), Retryable: f.Retryable, Recovery: f.Hint, Detail: f.Detail,
	}}}
	r.context(workspace, epoch)
	return r
}

func (r *Reply) context(workspace, epoch string) {
	if workspace != "" {
		r.WorkspaceID, r.WorkspaceEpoch = &workspace, &epoch
	}
}

// Text is the envelope for readers who only see text: the same JSON, or, when that is
// longer than Most, a small one that points to the structured content (spec dodo-catalog 2).
func (r *Reply) Text() string {
	data, err := r.JSON()
	if err != nil {
		data = []byte(`{"ok":false}`) // what cannot be encoded never leaves the gate
	}
	if r.Most <= 0 || len(data) <= r.Most {
		return string(data)
	}
	short, _ := op.Encode(struct {
		OK             bool       `json:"ok"`
		WorkspaceID    *string    `json:"workspaceId"`
		WorkspaceEpoch *string    `json:"workspaceEpoch"`
		Error          *ErrorInfo `json:"error"`
		Truncated      bool       `json:"truncated"`
		Note           string     `json:"note"`
	}{r.OK, r.WorkspaceID, r.WorkspaceEpoch, r.Error, true, "The whole answer is in structuredContent; it is too long for text."})
	return string(short)
}

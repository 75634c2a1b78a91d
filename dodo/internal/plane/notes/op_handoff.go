package notes

import (
	"context"
	"encoding/json"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// largestHandoff is how large a note may be, in bytes of JSON.
const largestHandoff = 64 << 10

type handoff struct {
	Goal            string      `json:"goal" minLength:"1" maxLength:"2000" doc:"What the work is for."`
	ObservedChanges []string    `json:"observedChanges" maxItems:"50" maxLength:"1000" default:"[]" doc:"What was changed."`
	Tests           []string    `json:"tests" maxItems:"50" maxLength:"1000" default:"[]" doc:"What was tested, and how it came out."`
	Blockers        []string    `json:"blockers" maxItems:"50" maxLength:"1000" default:"[]"`
	NextSteps       []string    `json:"nextSteps" maxItems:"50" maxLength:"1000" default:"[]"`
	References      []reference `json:"references" maxItems:"50" default:"[]"`
}

type reference struct {
	Kind string `json:"kind" enum:"changeset|job|plan|path|other"`
	ID   string `json:"id" maxLength:"256"`
}

type handoffWriteIn struct {
	Handoff handoff `json:"handoff"`
}

type handoffWriteOut struct {
	HandoffID string `json:"handoffId"`
	SavedAt   string `json:"savedAt"`
}

func (s *Service) handoffWrite() contract.Op {
	return contract.Read(contract.Def{
		Name: "handoff_write", Title: "Write a handoff", Gateway: "dodo_write",
		Doc: "Leaves a note for the session that goes on with this work: goal, what was changed and tested, what is in the way, " +
			"what comes next. No file changes. The last 200 of a workspace are kept.",
		Scope: contract.ScopeWrite, Class: contract.ClassPlan,
	}, func(ctx context.Context, c contract.Call, in handoffWriteIn) (a contract.Answer[handoffWriteOut], err error) {
		texts := []*string{&in.Handoff.Goal}
		for _, list := range [][]string{in.Handoff.ObservedChanges, in.Handoff.Tests, in.Handoff.Blockers, in.Handoff.NextSteps} {
			for i := range list {
				texts = append(texts, &list[i])
			}
		}
		a.Warnings = hide(texts...)
		content, err := op.Encode(in.Handoff)
		if err != nil {
			return a, err
		}
		if len(content) > largestHandoff {
			return a, fault.New(contract.ResourceLimit, "the handoff has %d bytes, more than the %d allowed", len(content), largestHandoff).
				WithHint("shorten it: name files and changesets instead of quoting them")
		}
		h, err := s.store.AddHandoff(ctx, s.workspace, c.Principal.GrantID, content)
		if err != nil {
			return a, err
		}
		a.Data, a.Ref = handoffWriteOut{HandoffID: h.ID, SavedAt: stamp(h.Created)}, h.ID
		return a, nil
	})
}

type handoffReadIn struct {
	HandoffID string `json:"handoffId,omitempty" maxLength:"128" doc:"Id of the one to read; the newest when absent."`
	List      bool   `json:"list" default:"false" doc:"List them instead."`
	Limit     int    `json:"limit" min:"1" max:"50" default:"10" doc:"How many to list."`
}

type handoffReadOut struct {
	Handoffs  []listed        `json:"handoffs,omitempty"`
	HandoffID string          `json:"handoffId,omitempty"`
	CreatedAt string          `json:"createdAt,omitempty"`
	Handoff   json.RawMessage `json:"handoff" type:"object" doc:"As it was written; null when there is none, or when they were listed."`
	Note      string          `json:"note,omitempty"`
}

type listed struct {
	HandoffID string `json:"handoffId"`
	CreatedAt string `json:"createdAt"`
}

func (s *Service) handoffRead() contract.Op {
	return contract.Read(contract.Def{
		Name: "handoff_read", Title: "Read a handoff", Gateway: "dodo_read",
		Doc:   "Reads the note that an earlier session left for the next, the newest unless you name one; or lists them.",
		Scope: contract.ScopeRead, Class: contract.ClassRead, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, _ contract.Call, in handoffReadIn) (a contract.Answer[handoffReadOut], err error) {
		if in.List && in.HandoffID != "" {
			return a, fault.New(contract.InvalidInput, "list and handoffId cannot be used together").WithHint("leave one of them out")
		}
		id := in.HandoffID
		if id == "" {
			limit := 1
			if in.List {
				limit = in.Limit
			}
			list, err := s.store.Handoffs(ctx, s.workspace, limit)
			if err != nil {
				return a, err
			}
			if in.List {
				for _, h := range list {
					a.Data.Handoffs = append(a.Data.Handoffs, listed{h.ID, stamp(h.Created)})
				}
				return a, nil
			}
			if len(list) == 0 {
				a.Data.Note = "No handoff has been written in this workspace."
				return a, nil
			}
			id = list[0].ID
		}
		h, err := s.store.Handoff(ctx, s.workspace, id)
		if err != nil {
			return a, err
		}
		a.Data = handoffReadOut{HandoffID: h.ID, CreatedAt: stamp(h.Created), Handoff: h.Content, Note: untrusted}
		return a, nil
	})
}

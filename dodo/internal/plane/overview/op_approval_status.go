package overview

import (
	"context"
	"time"

	"localmcp/dodo/internal/contract"
)

type approvalIn struct {
	ApprovalID string `json:"approvalId" minLength:"1" maxLength:"128" doc:"From the detail of APPROVAL_REQUIRED."`
}

type approvalOut struct {
	ApprovalID string `json:"approvalId"`
	Status     string `json:"status" enum:"pending|approved|denied|consumed|expired"`
	Tool       string `json:"tool" doc:"The operation the owner was asked about."`
	Summary    string `json:"summary"`
	CreatedAt  string `json:"createdAt"`
	ExpiresAt  string `json:"expiresAt"`
}

func (s *Service) approvalStatus() contract.Op {
	return contract.Read(contract.Def{
		Name: "approval_status", Title: "Check an approval", Gateway: "dodo_read",
		Doc: "Tells whether the owner answered a question that one of your calls put. " +
			"When it is approved, make that same call again, with the same arguments.",
		Scope: contract.ScopeRead, Class: contract.ClassRead, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, c contract.Call, in approvalIn) (a contract.Answer[approvalOut], err error) {
		asked, err := s.Store.Approval(ctx, s.Workspace, c.Principal.GrantID, in.ApprovalID)
		if err != nil {
			return a, err
		}
		a.Data = approvalOut{
			ApprovalID: asked.ID, Status: string(asked.Status), Tool: asked.Tool, Summary: asked.Summary,
			CreatedAt: stamp(asked.Created), ExpiresAt: stamp(asked.Expires),
		}
		return a, nil
	})
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

package schedule

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
)

type proposeIn struct {
	Name      string `json:"name" minLength:"1" maxLength:"120" doc:"What the owner calls it by."`
	Command   string `json:"command" minLength:"1" maxLength:"65536" doc:"The shell command, without input."`
	Cwd       string `json:"cwd" minLength:"1" maxLength:"1024" default:"." doc:"Directory of the workspace it runs in."`
	Cron      string `json:"cron" minLength:"9" maxLength:"128" doc:"Five fields: minute, hour, day of month, month, day of week."`
	Timezone  string `json:"timezone" minLength:"1" maxLength:"100" default:"UTC" doc:"IANA name. A local time that the clock jumps over is skipped; one it shows twice counts once when a single hour is named."`
	ExpiresAt int64  `json:"expiresAt" min:"1" doc:"When it ends, in milliseconds since 1970: at most 30 days ahead."`
	TimeoutMs int64  `json:"timeoutMs" min:"1000" max:"1800000" default:"300000" doc:"How long one run may take."`
	Sandbox   bool   `json:"sandbox" default:"true" doc:"Run it in the sandbox."`
	Network   bool   `json:"network" default:"false" doc:"Let it reach the network."`
}

type proposeOut struct {
	ID        string `json:"id"`
	Digest    string `json:"digest" doc:"Of all that the owner approves."`
	Status    string `json:"status" enum:"pending|approved|revoked|paused|expired"`
	Spec      Spec   `json:"spec"`
	Root      string `json:"root"`
	Dev       string `json:"dev" doc:"With ino: the directory that root is. Both in decimal."`
	Ino       string `json:"ino"`
	Policy    string `json:"policy" doc:"Digest of the owner's rules as they are."`
	ClientID  string `json:"clientId"`
	GrantID   string `json:"grantId"`
	NextAt    *int64 `json:"nextAt" doc:"When it would be due first, in milliseconds since 1970; null for never."`
	ExpiresAt int64  `json:"expiresAt"`
	Warning   string `json:"warning"`
}

// warning is what a client must not forget.
const warning = "Nothing runs before the owner approves this digest on this machine, and each run needs the workspace's saved trust to be trusted. " +
	"A run uses the files as they are then; times that are missed are not made up for."

func (s *Service) propose() contract.Op {
	return contract.Propose(contract.Def{
		Name: "schedule_propose", Title: "Propose a schedule", Gateway: "dodo_schedule",
		Doc: "Proposes a command for the clock to run. Nothing is run or allowed by this: it waits until the owner approves it, exactly as " +
			"proposed, with `dodo schedule approve`. At most 64 are open in a workspace, and 8 of one client wait.",
		Scope: contract.ScopeExec, Class: contract.ClassExec,
	}, func(ctx context.Context, c contract.Call, in proposeIn) (a contract.Answer[proposeOut], err error) {
		x, p, err := s.Add(ctx, c.Principal, false, Spec(in))
		if err != nil {
			return a, err
		}
		a.Ref = x.ID
		a.Data = shown(x, p)
		return a, nil
	})
}

func shown(x state.Schedule, p Payload) proposeOut {
	o := proposeOut{
		ID: x.ID, Digest: x.Digest, Status: string(x.Status), Spec: p.Spec, Root: p.Root, Dev: p.Dev, Ino: p.Ino, Policy: p.Policy,
		ClientID: p.Client, GrantID: p.Grant, ExpiresAt: x.Expires.UnixMilli(), Warning: warning,
	}
	if !x.Next.IsZero() {
		ms := x.Next.UnixMilli()
		o.NextAt = &ms
	}
	return o
}

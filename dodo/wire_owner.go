package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/owner"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
)

// ownerDoor opens the owner's sockets of a server. stop ends the server.
func (s *served) ownerDoor(ctx context.Context, transport string, stop context.CancelFunc, more map[string]owner.Command) (*owner.Server, error) {
	begun := time.Now().UTC().Truncate(time.Second)
	commands := s.ownerCommands()
	maps.Copy(commands, more)
	workspace := ""
	if active := s.host.Active(); active != nil {
		workspace = active.ID
	}
	return owner.Listen(ctx, owner.Options{
		Dir: s.dir, Workspace: workspace, Stop: stop, Log: s.log, Commands: commands,
		Status: func() owner.Status {
			st := owner.Status{PID: os.Getpid(), Version: version, Transport: transport, Surface: string(s.surface), Started: begun}
			if active := s.host.Active(); active != nil {
				st.Root, st.WorkspaceID, st.Epoch = active.Tree.Root(), active.ID, active.Epoch
			}
			return st
		},
	})
}

// The commands of the owner's socket that are no more than a question to the state.
const (
	cmdPending = "approvals.pending"
	cmdApprove = "approvals.approve"
	cmdDeny    = "approvals.deny"
)

// approvalOut is a question to the owner as the owner sees it.
type approvalOut struct {
	ID        string               `json:"approvalId"`
	Workspace string               `json:"workspaceId"`
	Root      string               `json:"root,omitempty"`
	Client    string               `json:"principal"`
	Tool      string               `json:"tool"`
	Summary   string               `json:"summary"`
	Preview   json.RawMessage      `json:"preview,omitempty"`
	Status    state.ApprovalStatus `json:"status"`
	Created   time.Time            `json:"createdAt"`
	Expires   time.Time            `json:"expiresAt"`
}

// shownApproval leaves the preview out: it may be longer than a message. Who shows it reads
// it from the state.
func shownApproval(a state.Approval) approvalOut {
	return approvalOut{
		ID: a.ID, Workspace: a.Workspace, Client: a.Principal, Tool: a.Tool, Summary: a.Summary,
		Status: a.Status, Created: a.Created, Expires: a.Expires,
	}
}

type approvalArgs struct {
	ID string `json:"id"`
}

// ownerCommands are what the owner may ask a server for.
func (s *served) ownerCommands() map[string]owner.Command {
	all := ownerQuestions(s.store)
	all[cmdCancelJob] = s.cancelCommand
	return all
}

func ownerQuestions(store *state.Store) map[string]owner.Command {
	decide := func(approve bool) owner.Command {
		return withID(func(ctx context.Context, id string) (any, error) {
			a, err := store.Asked(ctx, id)
			if err != nil {
				return nil, err
			}
			if a, err = store.Decide(ctx, a.Workspace, a.ID, approve); err != nil {
				return nil, err
			}
			return shownApproval(a), nil
		})
	}
	return map[string]owner.Command{
		cmdApprove: decide(true),
		cmdDeny:    decide(false),
		cmdPending: func(ctx context.Context, _ json.RawMessage) (any, error) {
			list, err := store.PendingApprovals(ctx)
			if err != nil {
				return nil, err
			}
			out := make([]approvalOut, len(list))
			for i, a := range list {
				out[i] = shownApproval(a)
			}
			return out, nil
		},
	}
}

// withID is a command whose argument is an id.
func withID(f func(ctx context.Context, id string) (any, error)) owner.Command {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var args approvalArgs
		if err := jsonv2.Unmarshal(raw, &args, jsonv2.RejectUnknownMembers(true)); err != nil {
			return nil, fault.Wrap(contract.InvalidInput, err, "an id is needed, and nothing else")
		}
		return f(ctx, args.ID)
	}
}

// mirrorAccess brings the access mode of the configuration into the state, where every
// running server looks. The file cannot change meanwhile: a start must not widen what the
// owner is just narrowing.
func mirrorAccess(ctx context.Context, dir string, store *state.Store) error {
	return config.Hold(ctx, dir, func(c config.Config) error { return store.SetAccessMode(ctx, c.AccessMode) })
}

package main

import (
	"context"
	"errors"
	_ "time/tzdata" // schedules name IANA zones, and a machine may have no list of them

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/plane/schedule"
)

// scheduling opens the schedules of a workspace for the owner, without a server.
func (in *installation) scheduling(w state.Workspace, f func(*schedule.Service) error) error {
	tree, _, err := in.tree(w.Root, true) // the owner opened it before
	if err != nil {
		return err
	}
	s := schedule.New(schedule.Config{
		Tree: tree, State: in.store, Workspace: w.ID,
		Policy: func(ctx context.Context) (string, error) { return in.rulesDigest(ctx, w.ID) },
	})
	return errors.Join(f(s), tree.Close())
}

// rulesDigest names the owner's rules for commands in a workspace: the settings that bear on
// what one may do, and how often trust was changed. A schedule runs only under those it was
// approved under.
func (in *installation) rulesDigest(ctx context.Context, workspace string) (string, error) {
	now, err := in.store.Authority(ctx, workspace, "")
	if err != nil {
		return "", err
	}
	return contract.Digest(map[string]any{
		"secretDeny": in.config.SecretDeny, "secretAllow": in.config.SecretAllow, "policyVersion": now.PolicyVersion,
	})
}

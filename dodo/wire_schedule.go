package main

import (
	"context"
	"errors"
	_ "time/tzdata" // schedules name IANA zones, and a machine may have no list of them

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/dodo/internal/plane/schedule"
)

// scheduling opens the schedules of a workspace for the owner, without a server.
func (in *installation) scheduling(w state.Workspace, f func(*schedule.Service) error) error {
	tree, _, _, err := in.tree(w.Root, true) // the owner opened it before
	if err != nil {
		return err
	}
	return errors.Join(f(in.schedules(tree, w.ID)), tree.Close())
}

// schedules are those of a workspace. They are proposed and decided on here; only a server
// that clients reach over the network starts what is due.
func (in *installation) schedules(tree *workspace.Tree, id string) *schedule.Service {
	return schedule.New(schedule.Config{
		Tree: tree, State: in.store, Workspace: id,
		Policy:  func(ctx context.Context) (string, error) { return in.rulesDigest(ctx, id) },
		Unboxed: sandbox.Mode(in.config.CommandSandbox) == sandbox.Off,
	})
}

// rulesDigest names the owner's rules for commands in a workspace: the settings that bear on
// what one may do, and how often trust was changed. A schedule runs only under those it was
// approved under.
func (in *installation) rulesDigest(ctx context.Context, workspace string) (string, error) {
	now, err := in.store.Authority(ctx, workspace, "")
	if err != nil {
		return "", err
	}
	c := in.config
	return contract.Digest(map[string]any{
		"secretDeny": c.SecretDeny, "secretAllow": c.SecretAllow, "policyVersion": now.PolicyVersion,
		"commandSandbox": c.CommandSandbox, "jobNetwork": c.JobNetwork, "envAllowlist": c.EnvAllowlist, "sandboxReadPaths": c.SandboxReadPaths,
		"egressAllow": c.EgressAllow, "egressDeny": c.EgressDeny,
	})
}

package main

import (
	"context"
	"errors"
	_ "time/tzdata" // schedules name IANA zones, and a machine may have no list of them

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/job"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/dodo/internal/plane/schedule"
	"localmcp/internal/fault"
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
		Grants:  grants{in.store},
		Limits:  in.limits(),
		Ready:   in.walls.ready,
		Now:     in.now(),
		Unboxed: sandbox.Mode(in.saved.CommandSandbox) == sandbox.Off,
	})
}

// rulesDigest names the owner's rules for commands in a workspace: the settings that bear on
// what one may do, and how often trust was changed. A schedule runs only under those it was
// approved under. The file counts, which the owner may have changed since this process
// began; a server that goes by others than those runs nothing.
func (in *installation) rulesDigest(ctx context.Context, workspace string) (string, error) {
	now, err := in.store.Authority(ctx, workspace, "")
	if err != nil {
		return "", err
	}
	c, err := config.Load(in.dir)
	if err != nil {
		return "", err
	}
	digest, err1 := rulesOf(c, now.PolicyVersion)
	own, err2 := rulesOf(in.saved, now.PolicyVersion)
	if err1 == nil && err2 == nil && digest != own {
		return "", fault.New(contract.Conflict, "the owner's settings were changed: the server must be restarted to take them").
			WithHint("the owner ends it with `dodo stop`, and resumes what was paused with `dodo schedule resume`")
	}
	return digest, errors.Join(err1, err2)
}

// rulesOf is the digest of the settings that bear on what commands may do.
func rulesOf(c config.Config, version int) (string, error) {
	return contract.Digest(map[string]any{
		"secretDeny": c.SecretDeny, "secretAllow": c.SecretAllow, "policyVersion": version,
		"commandSandbox": c.CommandSandbox, "jobNetwork": c.JobNetwork, "envAllowlist": c.EnvAllowlist, "sandboxReadPaths": c.SandboxReadPaths,
		"egressAllow": c.EgressAllow, "egressDeny": c.EgressDeny,
	})
}

// launches starts what is due as jobs.
type launches struct{ jobs *job.Service }

var _ schedule.Launcher = launches{}

func (l launches) Launch(ctx context.Context, x schedule.Launch) (string, error) {
	return l.jobs.Launch(ctx, job.Launch{
		Principal: x.Grant, Command: x.Command, Cwd: x.Cwd, Timeout: x.Timeout, Sandbox: x.Sandbox, Network: x.Network, Check: x.Check,
	})
}

func (l launches) Running(id string) bool { return l.jobs.Running(id) }
func (l launches) Cancel(id string) error { return l.jobs.End(id) }

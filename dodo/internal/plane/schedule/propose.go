package schedule

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// Add keeps a new schedule, pending until the owner approves it. owner says that the owner
// made it, at a terminal.
func (s *Service) Add(ctx context.Context, by contract.Principal, owner bool, spec Spec) (state.Schedule, Payload, error) {
	p, next, err := s.draft(ctx, by, owner, spec)
	if err != nil {
		return state.Schedule{}, p, err
	}
	raw, digest, err := p.encode()
	if err != nil {
		return state.Schedule{}, p, err
	}
	x := state.Schedule{
		ID: p.ID, Workspace: p.Workspace, Payload: raw, Digest: digest, Status: state.SchedulePending,
		Created: s.Now().Truncate(time.Millisecond).UTC(), Expires: time.UnixMilli(spec.ExpiresAt).UTC(),
	}
	if err := s.State.AddSchedule(ctx, x, p.room); err != nil {
		return state.Schedule{}, p, err
	}
	x.Next = next // when it would be due: nothing is stored before it is approved
	return x, p, nil
}

// room says that there is none beside the schedules that a workspace has: one client takes a
// part of it at most, so that others, and the owner, have some.
func (p Payload) room(open []state.Schedule) error {
	if len(open) >= MostOpen {
		return fault.New(contract.ResourceLimit, "the workspace has %d open schedules, which is the most", len(open)).
			WithHint("let the owner revoke some: dodo schedule list, then dodo schedule revoke ID")
	}
	mine := 0
	for _, x := range open {
		if x.Status != state.SchedulePending {
			continue
		}
		if by, err := Read(x); err == nil && by.Client == p.Client {
			mine++
		}
	}
	if p.Grant != state.PrincipalOwner && mine >= MostPending {
		return fault.New(contract.ResourceLimit, "%d schedules that this client proposed wait for the owner, which is the most", mine).
			WithHint("let the owner decide on them: dodo schedule list, then dodo schedule approve ID or revoke ID")
	}
	return nil
}

// draft holds a spec against its bounds and binds it to the workspace as it is.
func (s *Service) draft(ctx context.Context, by contract.Principal, owner bool, spec Spec) (p Payload, next time.Time, err error) {
	if err := s.sound(ctx, spec, owner); err != nil {
		return p, next, err
	}
	clock, err := spec.clock()
	if err != nil {
		return p, next, err
	}
	now, expires := s.Now(), time.UnixMilli(spec.ExpiresAt)
	switch {
	case !expires.After(now):
		return p, next, fault.New(contract.InvalidInput, "the expiry is not in the future").WithHint("give a time within the next 30 days")
	case expires.Sub(now) > LongestLife:
		return p, next, fault.New(contract.InvalidInput, "the expiry is more than 30 days ahead").WithHint("give a time within the next 30 days; a new schedule can follow")
	}
	if next = spec.next(clock, now); next.IsZero() {
		return p, next, fault.New(contract.InvalidInput, "there is no occurrence before it expires").
			WithHint("give a later expiry, or another expression; `dodo schedule preview` shows when one is due")
	}
	if err := s.Tree.Check(); err != nil {
		return p, next, err
	}
	policy, err := s.Policy(ctx)
	if err != nil {
		return p, next, err
	}
	p = Payload{
		ID: contract.NewID(contract.PrefixSchedule, 0), Workspace: s.Workspace, Spec: spec, Root: s.Tree.Root(),
		Policy: policy, Client: by.ClientID, Grant: by.GrantID,
	}
	if owner {
		p.Client, p.Grant = state.PrincipalOwner, state.PrincipalOwner
	}
	p.Dev, p.Ino = s.identity()
	return p, next, nil
}

// sound holds what does not depend on the time.
func (s *Service) sound(ctx context.Context, spec Spec, owner bool) error {
	timeout, n := time.Duration(spec.TimeoutMs)*time.Millisecond, utf8.RuneCountInString(spec.Name)
	switch {
	case n < 1 || n > mostName || !utf8.ValidString(spec.Name):
		return fault.New(contract.InvalidInput, "the name must have 1 to %d characters", mostName).WithHint("give it a name to tell it by")
	case !utf8.ValidString(spec.Command):
		return fault.New(contract.InvalidInput, "the command is not UTF-8").WithHint("put it into a script of the workspace and run that")
	case timeout < leastTimeout || timeout > mostTimeout:
		return fault.New(contract.InvalidInput, "the timeout must be %v to %v", leastTimeout, mostTimeout).WithHint("let the command do less at a time")
	case timeout > time.Duration(s.Limits.JobWallTimeoutMaxMs)*time.Millisecond:
		return fault.New(contract.InvalidInput, "the timeout is above the owner's limit jobWallTimeoutMaxMs of %d", s.Limits.JobWallTimeoutMaxMs).
			WithHint("ask for at most %d ms", s.Limits.JobWallTimeoutMaxMs)
	case strings.TrimSpace(spec.Command) == "":
		return fault.New(contract.InvalidInput, "the command is empty").WithHint("give the command to run")
	case strings.IndexByte(spec.Command, 0) >= 0:
		return fault.New(contract.InvalidInput, "the command has a NUL byte").WithHint("no program can be given one")
	case len(spec.Command) > min(mostCommand, s.Limits.CommandBytes):
		return fault.New(contract.ResourceLimit, "the command has %d bytes, more than the %d allowed", len(spec.Command), min(mostCommand, s.Limits.CommandBytes)).
			WithHint("put it into a script of the workspace and run that")
	case !spec.Sandbox && !s.Unboxed:
		f := fault.New(contract.Forbidden, "commands run in the sandbox here, by the owner's setting commandSandbox")
		if owner {
			return f.WithHint("leave out --no-sandbox, or switch the sandbox off for all commands: dodo config set commandSandbox off")
		}
		return f.WithHint("leave out sandbox; only the owner can switch it off")
	}
	if spec.Sandbox && s.Ready != nil {
		if err := s.Ready(ctx); err != nil {
			return err
		}
	}
	path, err := workspace.ParsePath(spec.Cwd)
	if err != nil {
		return err
	}
	in, err := s.Tree.Stat(path)
	if err == nil && in.Type != safefile.Directory {
		err = fault.New(contract.PathDenied, "cwd is no directory").WithHint("name a directory of the workspace; . is its root").With("path", path.Shown())
	}
	return err
}

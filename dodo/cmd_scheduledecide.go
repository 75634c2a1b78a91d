package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/plane/schedule"
)

func (p *program) scheduleApproveCommand() *cobra.Command {
	var asJSON bool
	var digest string
	c := &cobra.Command{
		Use:   "approve ID",
		Short: "Let a schedule run, exactly as it is shown",
		Long: "Approve shows all that a schedule says and asks whether it may run. With --digest, the digest that\n" +
			"`dodo schedule show` prints, it does not ask. The workspace's saved trust must be trusted. When your rules\n" +
			"for the workspace change, or its directory does, the schedule is paused.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, x, w, err := p.scheduleOf(c.Context(), args[0])
			if err != nil {
				return err
			}
			defer in.close(nil)
			if w.Trust != contract.TrustTrusted {
				return state.NotTrusted(w.Trust)
			}
			if digest == "" {
				o := whole(x)
				p.streams.Notef("%s", strings.TrimRight(o.Text(), "\n"))
				if err := p.confirm(c.Context(), "Let this command run at these times, without asking?", "--digest "+x.Digest); err != nil {
					return err
				}
				digest = x.Digest
			}
			return p.decided(asJSON, in, w, func(s *schedule.Service) (state.Schedule, error) { return s.Approve(c.Context(), x.ID, digest) })
		},
	}
	c.Flags().StringVar(&digest, "digest", "", "approve what has this digest, without being asked")
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

func (p *program) scheduleResumeCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "resume ID", Short: "Let a paused schedule go on, under the rules as they are now", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, x, w, err := p.scheduleOf(c.Context(), args[0])
			if err != nil {
				return err
			}
			defer in.close(nil)
			return p.decided(asJSON, in, w, func(s *schedule.Service) (state.Schedule, error) { return s.Resume(c.Context(), x.ID) })
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

// scheduleOf opens what is there and finds a schedule with its workspace.
func (p *program) scheduleOf(ctx context.Context, id string) (in *installation, x state.Schedule, w state.Workspace, err error) {
	if in, err = p.existing(ctx); err != nil {
		return nil, x, w, err
	}
	if x, err = in.store.Schedule(ctx, id); err == nil {
		w, err = in.store.Workspace(ctx, x.Workspace)
	}
	if err != nil {
		in.close(nil)
		return nil, x, w, err
	}
	return in, x, w, nil
}

// decided does it and shows what came of it.
func (p *program) decided(asJSON bool, in *installation, w state.Workspace, do func(*schedule.Service) (state.Schedule, error)) error {
	var x state.Schedule
	if err := in.scheduling(w, func(s *schedule.Service) (err error) {
		x, err = do(s)
		return err
	}); err != nil {
		return err
	}
	return p.output(asJSON, whole(x))
}

func (p *program) schedulePauseCommand() *cobra.Command {
	return p.scheduleEndCommand("pause", "Stop a schedule until you resume it; what runs goes on", (*state.Store).PauseSchedule)
}

func (p *program) scheduleRevokeCommand() *cobra.Command {
	return p.scheduleEndCommand("revoke", "End a schedule for good, and what it runs now", (*state.Store).RevokeSchedule)
}

// scheduleEndCommand needs no workspace: its directory may be gone.
func (p *program) scheduleEndCommand(use, short string, end func(*state.Store, context.Context, string) (state.Schedule, error)) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: use + " ID", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			x, err := end(in.store, c.Context(), args[0])
			if err != nil {
				return err
			}
			return p.output(asJSON, whole(x))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

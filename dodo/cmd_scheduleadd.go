package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/plane/schedule"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

func (p *program) scheduleAddCommand() *cobra.Command {
	var asJSON, network, unboxed bool
	var root, expires string
	var timeout time.Duration
	var spec schedule.Spec
	c := &cobra.Command{
		Use:     "add",
		Aliases: []string{"create"},
		Short:   "Add a schedule of your own",
		Long: "Add makes a schedule that waits for your approval, which is a step of its own. It runs in the sandbox and\n" +
			"without network unless you say otherwise. `dodo schedule preview` shows when an expression is due.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			until, err := expiry(expires, time.Now())
			if err != nil {
				return err
			}
			spec.ExpiresAt, spec.TimeoutMs = until.UnixMilli(), timeout.Milliseconds()
			spec.Sandbox, spec.Network = !unboxed, network
			out, err := p.addSchedule(c.Context(), root, spec)
			if err != nil {
				return err
			}
			return p.output(asJSON, out)
		},
	}
	c.Flags().StringVar(&spec.Name, "name", "", "what you call it by")
	c.Flags().StringVar(&spec.Command, "command", "", "the shell command")
	c.Flags().StringVar(&spec.Cwd, "cwd", ".", "the directory it runs in, from the workspace's root")
	c.Flags().StringVar(&spec.Cron, "cron", "", "five fields: minute, hour, day of month, month, day of week")
	c.Flags().StringVar(&spec.Timezone, "timezone", "UTC", "the IANA name of the zone whose clock counts")
	c.Flags().StringVar(&expires, "expires", "", "when it ends: a time such as 2026-12-01T00:00:00Z, or from now on, such as 12h or 7d; at most 30d")
	c.Flags().DurationVar(&timeout, "timeout", schedule.DefaultTimeout, "how long one run may take")
	c.Flags().BoolVar(&network, "network", false, "let it reach the network")
	c.Flags().BoolVar(&unboxed, "no-sandbox", false, "run it as commandSandbox says, which must be off; without --network it is still walled in where that is possible")
	c.Flags().StringVar(&root, "root", "", "the workspace's directory (the current one)")
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

// expiry reads a time, or how long from now.
func expiry(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 10_000 {
			return now.Add(time.Duration(n) * 24 * time.Hour), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), nil
	}
	return time.Time{}, fault.New(cli.Usage, "--expires must be a time such as 2026-12-01T00:00:00Z, or how long from now, such as 12h or 7d")
}

func (p *program) addSchedule(ctx context.Context, flag string, spec schedule.Spec) (o scheduleOut, err error) {
	begun := time.Now()
	root, err := p.rootOf(flag)
	if err != nil {
		return o, err
	}
	in, err := p.install(ctx)
	if err != nil {
		return o, err
	}
	defer in.close(nil)
	w, err := in.workspaceAt(ctx, root, true)
	if err != nil {
		return o, err
	}
	var x state.Schedule
	err = in.scheduling(w, func(s *schedule.Service) (err error) {
		x, _, err = s.Add(ctx, contract.Principal{}, true, spec)
		return err
	})
	if err := in.byOwner(ctx, "owner.schedule.add", w.ID, x.ID, begun, err); err != nil {
		return o, err
	}
	x.Next = time.Time{} // it is due at no time before it is approved
	return whole(x), nil
}

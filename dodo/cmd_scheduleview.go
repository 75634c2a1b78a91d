package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/cron"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

// historyOut is what became of the times that schedules were due.
type historyOut struct {
	Runs []runOut `json:"runs"`
}

type runOut struct {
	Schedule string          `json:"scheduleId"`
	Due      time.Time       `json:"dueAt"`
	Status   state.RunStatus `json:"status"`
	Reason   string          `json:"reason,omitempty"`
	Job      string          `json:"jobId,omitempty"`
	Taken    time.Time       `json:"takenAt"`
	Ended    *time.Time      `json:"endedAt"`
}

// Text is the list in words.
func (o historyOut) Text() string {
	if len(o.Runs) == 0 {
		return "Nothing was due yet.\n"
	}
	var b strings.Builder
	for _, r := range o.Runs {
		fmt.Fprintf(&b, "%s  %s  %-9s %s  %s\n", r.Due.Local().Format("2006-01-02 15:04"), r.Schedule, r.Status, orDash(line(r.Job)), line(r.Reason))
	}
	return b.String()
}

const mostHistory = 1000

func (p *program) scheduleHistoryCommand() *cobra.Command {
	var asJSON bool
	var limit int
	var root string
	c := &cobra.Command{
		Use:   "history [ID]",
		Short: "Show what became of the times that schedules were due",
		Long: "History shows the times at which a schedule, or those of a workspace, were due, the newest first: what was\n" +
			"launched, skipped or failed, and why. A run that is uncertain was begun by a server that ended: it is never\n" +
			"begun again.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 1 || limit > mostHistory {
				return fault.New(cli.Usage, "--limit must be 1 to %d", mostHistory)
			}
			show := func(in *installation, workspace, id string) error {
				list, err := in.store.Runs(c.Context(), workspace, id, limit)
				if err != nil {
					return err
				}
				out := historyOut{Runs: []runOut{}}
				for _, r := range list {
					out.Runs = append(out.Runs, runOut{r.Schedule, r.Due, r.Status, r.Reason, r.Job, r.Taken, orNil(r.Ended)})
				}
				return p.output(asJSON, out)
			}
			if len(args) == 0 {
				return p.scheduled(c.Context(), root, func(in *installation, w state.Workspace) error { return show(in, w.ID, "") })
			}
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			x, err := in.store.Schedule(c.Context(), args[0])
			if err != nil {
				return err
			}
			return show(in, x.Workspace, x.ID)
		},
	}
	c.Flags().IntVar(&limit, "limit", 50, "how many times")
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	c.Flags().StringVar(&root, "root", "", "the workspace's directory (the current one)")
	return c
}

// previewOut is when an expression is due.
type previewOut struct{ cron.Preview }

// Text is that in words.
func (o previewOut) Text() string {
	var b strings.Builder
	runs := map[time.Time]bool{}
	for _, r := range o.Runs {
		runs[r.At] = true
		fmt.Fprintf(&b, "%s  (%s)\n", r.Local.Format(time.RFC3339), r.At.Format(time.RFC3339))
	}
	for _, s := range o.Skipped {
		fmt.Fprintf(&b, "skipped: %s, which the clock jumps over\n", s.Local)
	}
	for _, d := range o.Doubled {
		again := "it does not run again"
		if runs[d.At] {
			again = "it runs both times"
		}
		fmt.Fprintf(&b, "doubled: %s, which the clock shows again at %s; %s\n", d.Local, d.At.Format(time.RFC3339), again)
	}
	return b.String()
}

// mostPreview is how many runs may be asked for.
const mostPreview = 1000

func (p *program) schedulePreviewCommand() *cobra.Command {
	var asJSON bool
	var expr, zone, from string
	var count int
	c := &cobra.Command{
		Use:   "preview",
		Short: "Show when an expression is due",
		Long: "Preview shows the next times that five fields are due on the clock of a zone: minute, hour, day of month,\n" +
			"month, day of week. A local time that the clock jumps over is skipped. One that the clock shows twice runs\n" +
			"once when the expression names a single hour, and both times when it names several. When day of month and\n" +
			"day of week are both given, either is enough.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			at := time.Now()
			if from != "" {
				var err error
				if at, err = time.Parse(time.RFC3339, from); err != nil {
					return fault.New(cli.Usage, "--from must be a time such as 2026-12-01T00:00:00Z")
				}
			}
			switch {
			case expr == "":
				return fault.New(cli.Usage, "--cron is needed")
			case count < 1 || count > mostPreview:
				return fault.New(cli.Usage, "--count must be 1 to %d", mostPreview)
			}
			s, err := cron.Parse(expr, zone)
			if err != nil {
				return err
			}
			out := previewOut{s.Preview(at, count)}
			if len(out.Runs) == 0 {
				return fault.New(contract.InvalidInput, "there is no occurrence: such a date never comes").WithHint("look at the day of month and the month")
			}
			return p.output(asJSON, out)
		},
	}
	c.Flags().StringVar(&expr, "cron", "", "the five fields")
	c.Flags().StringVar(&zone, "timezone", "UTC", "the IANA name of the zone whose clock counts")
	c.Flags().StringVar(&from, "from", "", "the first moment, such as 2026-12-01T00:00:00Z (now)")
	c.Flags().IntVar(&count, "count", 10, "how many runs")
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

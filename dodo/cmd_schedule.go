package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/ground/cron"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/plane/schedule"
	"localmcp/internal/fault"
)

func (p *program) scheduleCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "schedule",
		Aliases: []string{"cron"},
		Short:   "Commands that the clock starts, once you have approved each",
		Long: "A schedule is one command, when it runs, and until when. Clients may propose some and you may add your\n" +
			"own; none runs before you approve exactly what it says. Each run needs the workspace's saved trust to be\n" +
			"trusted, and uses the files as they are then. Times that are missed are skipped, never made up for. Servers\n" +
			"on stdio start none; the one that will is not in this version.",
	}
	c.AddCommand(p.scheduleListCommand(), p.scheduleShowCommand(), p.scheduleAddCommand(), p.scheduleApproveCommand(), p.scheduleRevokeCommand(),
		p.schedulePauseCommand(), p.scheduleResumeCommand(), p.scheduleHistoryCommand(), p.schedulePreviewCommand())
	return c
}

// scheduleOut is one schedule.
type scheduleOut struct {
	ID        string               `json:"id"`
	Digest    string               `json:"digest"`
	Status    state.ScheduleStatus `json:"status"`
	Reason    string               `json:"reason,omitempty"`
	Workspace string               `json:"workspaceId"`
	Origin    string               `json:"origin,omitempty"`
	Created   time.Time            `json:"createdAt"`
	Expires   time.Time            `json:"expiresAt"`
	Next      *time.Time           `json:"nextAt"`
	Approved  *time.Time           `json:"approvedAt"`
	Payload   json.RawMessage      `json:"payload"` // what the digest is of
	NextRuns  []cron.Run           `json:"nextRuns,omitempty"`
	Problem   string               `json:"problem,omitempty"` // why it is not shown

	said schedule.Payload
}

// shownSchedule has a problem instead of what it says when that was changed behind its back.
func shownSchedule(x state.Schedule) scheduleOut {
	o := scheduleOut{
		ID: x.ID, Digest: x.Digest, Status: x.Status, Reason: x.Reason, Workspace: x.Workspace, Created: x.Created, Expires: x.Expires,
		Next: orNil(x.Next), Approved: orNil(x.Approved), Payload: x.Payload,
	}
	said, err := schedule.Read(x)
	if err != nil {
		o.Payload, o.Problem = json.RawMessage("null"), fault.From(err).Msg
		return o
	}
	o.said, o.Origin = said, said.Origin()
	return o
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// brief is the schedule on one line.
func (o scheduleOut) brief() string {
	next := "-"
	if o.Next != nil {
		next = o.Next.Local().Format("2006-01-02 15:04")
	}
	what := line(o.said.Spec.Name)
	if o.Problem != "" {
		what = "(" + o.Problem + ")"
	}
	s := fmt.Sprintf("%s  %-8s next %-16s  %s\n", o.ID, o.Status, next, what)
	if o.Reason != "" {
		s += "    " + line(o.Reason) + "\n"
	}
	return s
}

// Text is all that an approval is about.
func (o scheduleOut) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", o.ID, o.Status, line(o.said.Spec.Name))
	if o.Reason != "" {
		fmt.Fprintf(&b, "because  %s\n", line(o.Reason))
	}
	if o.Problem != "" {
		fmt.Fprintf(&b, "%s\n", o.Problem)
		return b.String()
	}
	c := o.said.Spec
	walls, network := "in the sandbox", "without network"
	if !c.Sandbox {
		walls = "AS commandSandbox SAYS, which may be WITHOUT A SANDBOX"
	}
	if c.Network {
		network = "WITH NETWORK"
	}
	fmt.Fprintf(&b, "made by  %s, %s\n", line(o.Origin), o.Created.Local().Format("2006-01-02 15:04:05"))
	fmt.Fprintf(&b, "in       %s\n", line(filepath.Join(o.said.Root, c.Cwd)))
	fmt.Fprintf(&b, "when     %s (%s), until %s\n", line(c.Cron), line(c.Timezone), o.Expires.Local().Format(time.RFC3339))
	fmt.Fprintf(&b, "how      %s, %s, for at most %v\n", walls, network, time.Duration(c.TimeoutMs)*time.Millisecond)
	fmt.Fprintf(&b, "command:\n%s", block(c.Command))
	fmt.Fprintf(&b, "digest   %s\n", o.Digest)
	for i, r := range o.NextRuns {
		label := ""
		if i == 0 {
			label = "next"
		}
		fmt.Fprintf(&b, "%-8s %s\n", label, r.Local.Format(time.RFC3339))
	}
	if o.Status == state.SchedulePending {
		fmt.Fprintf(&b, "It waits for you: `dodo schedule approve %s` or `dodo schedule revoke %s`.\n", o.ID, o.ID)
	}
	return b.String()
}

// shownRuns is how many of the next runs are shown.
const shownRuns = 5

// whole adds when it would run next.
func whole(x state.Schedule) scheduleOut {
	o := shownSchedule(x)
	if o.Problem == "" && x.Status != state.ScheduleRevoked && x.Status != state.ScheduleExpired {
		o.NextRuns, _ = o.said.Spec.Runs(time.Now(), shownRuns) // a zone that this machine lost has none
	}
	return o
}

// schedulesOut is a list of them.
type schedulesOut struct {
	Schedules []scheduleOut `json:"schedules"`
}

// Text is the list in words.
func (o schedulesOut) Text() string {
	if len(o.Schedules) == 0 {
		return "There are no schedules in this workspace.\n"
	}
	var b strings.Builder
	for _, x := range o.Schedules {
		b.WriteString(x.brief())
	}
	return b.String()
}

func (p *program) scheduleListCommand() *cobra.Command {
	var asJSON, all bool
	var root string
	c := &cobra.Command{
		Use: "list", Short: "List the schedules of a workspace", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.scheduled(c.Context(), root, func(in *installation, w state.Workspace) error {
				list, err := in.store.Schedules(c.Context(), w.ID, all)
				if err != nil {
					return err
				}
				out := schedulesOut{Schedules: []scheduleOut{}}
				for _, x := range list {
					out.Schedules = append(out.Schedules, shownSchedule(x))
				}
				return p.output(asJSON, out)
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also those that were revoked or expired")
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	c.Flags().StringVar(&root, "root", "", "the workspace's directory (the current one)")
	return c
}

// scheduled opens what is there and finds the workspace of a root.
func (p *program) scheduled(ctx context.Context, root string, f func(*installation, state.Workspace) error) error {
	in, err := p.existing(ctx)
	if err != nil {
		return err
	}
	defer in.close(nil)
	if root, err = p.rootOf(root); err != nil {
		return err
	}
	w, err := in.workspaceAt(ctx, root, false)
	if err != nil {
		return err
	}
	return f(in, w)
}

func (p *program) scheduleShowCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show ID", Short: "Show all that a schedule says, and when it runs next", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			x, err := in.store.Schedule(c.Context(), args[0])
			if err != nil {
				return err
			}
			return p.output(asJSON, whole(x))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/door/owner"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

// statusOut is what status prints.
type statusOut struct {
	Servers []owner.Status `json:"servers"`
	Silent  []silentOut    `json:"silent"`
}

// silentOut is a socket whose server did not answer as one must.
type silentOut struct {
	Socket  string `json:"socket"`
	Problem string `json:"problem"`
}

// Text is the list in words.
func (o statusOut) Text() string {
	var b strings.Builder
	for _, s := range o.Servers {
		fmt.Fprintf(&b, "%d  %s, %s, since %s, dodo %s\n    %s  %s\n", s.PID, line(s.Transport), orDash(line(s.Surface)),
			s.Started.Local().Format("2006-01-02 15:04:05"), line(s.Version), orDash(line(s.Root)), orDash(line(s.WorkspaceID)))
	}
	for _, s := range o.Silent {
		fmt.Fprintf(&b, "?  %s: %s\n", line(s.Socket), line(s.Problem))
	}
	return b.String()
}

func (p *program) statusCommand() *cobra.Command {
	var asJSON bool
	var root string
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the servers of this installation that run",
		Long:  "Status asks every running server of this installation, wherever it was started.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			live, silent, err := p.servers(c.Context(), root)
			if err != nil {
				return err
			}
			var out statusOut
			for _, l := range live {
				out.Servers = append(out.Servers, l.Status)
			}
			for _, s := range silent {
				out.Silent = append(out.Silent, silentOut{s.Socket, s.Err.Error()})
			}
			if asJSON || len(live)+len(silent) > 0 {
				if err := p.output(asJSON, out); err != nil {
					return err
				}
			}
			if len(live) == 0 {
				if asJSON || len(silent) > 0 {
					return cli.Status(exitNotReady)
				}
				return fault.New(notRunning, "no server is running").WithHint("`dodo start` serves clients over HTTP; `dodo connect --help` registers dodo with clients that start it themselves")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	c.Flags().StringVar(&root, "root", "", "only servers of this workspace")
	return c
}

// stopOut is what stop prints.
type stopOut struct {
	Stopped []int     `json:"stopped"`
	Failed  []failOut `json:"failed"`
}

type failOut struct {
	PID     int    `json:"pid"`
	Problem string `json:"problem"`
}

// Text says it in words.
func (o stopOut) Text() string {
	var b strings.Builder
	for _, pid := range o.Stopped {
		fmt.Fprintf(&b, "stopped %d\n", pid)
	}
	for _, f := range o.Failed {
		fmt.Fprintf(&b, "%d: %s\n", f.PID, line(f.Problem))
	}
	return b.String()
}

func (p *program) stopCommand() *cobra.Command {
	var asJSON bool
	var root string
	var seconds int
	c := &cobra.Command{
		Use:   "stop",
		Short: "Stop the servers of this installation",
		Long: "Stop asks every running server of this installation to end, wherever it was started, and waits until\n" +
			"it has. Nothing is killed. Logins, grants, trust and the history of changes stay. A client may start\n" +
			"its server again.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if seconds < 1 || seconds > 120 {
				return fault.New(cli.Usage, "--timeout must be 1 to 120")
			}
			live, err := p.running(c.Context(), root)
			if err != nil {
				return err
			}
			out := stopAll(c.Context(), live, time.Duration(seconds)*time.Second)
			if err := p.output(asJSON, out); err != nil {
				return err
			}
			if len(out.Failed) > 0 {
				return cli.Status(1)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	c.Flags().StringVar(&root, "root", "", "only servers of this workspace")
	c.Flags().IntVar(&seconds, "timeout", 30, "how many `seconds` to wait, 1 to 120")
	return c
}

func stopAll(ctx context.Context, live []owner.Live, wait time.Duration) stopOut {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	errs := make([]error, len(live))
	var all sync.WaitGroup
	for i, l := range live {
		all.Go(func() { errs[i] = l.Stop(ctx) })
	}
	all.Wait()
	var out stopOut
	for i, l := range live {
		if errs[i] != nil && !errors.Is(errs[i], owner.ErrEnded) {
			out.Failed = append(out.Failed, failOut{l.PID, errs[i].Error()})
			continue
		}
		out.Stopped = append(out.Stopped, l.PID)
	}
	return out
}

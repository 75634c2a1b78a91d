package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

// auditOut is what audit prints.
type auditOut struct {
	Events []eventOut `json:"events"`
}

type eventOut struct {
	ID         int64     `json:"id"`
	At         time.Time `json:"at"`
	Request    string    `json:"requestId,omitempty"`
	Principal  string    `json:"principal"`
	Workspace  string    `json:"workspaceId,omitempty"`
	Tool       string    `json:"tool"`
	Input      string    `json:"inputDigest,omitempty"`
	Ref        string    `json:"ref,omitempty"`
	DurationMs float64   `json:"durationMs"`
	Result     string    `json:"result"`
	Hash       string    `json:"hash"`
}

// Text is the list in words, the newest row first.
func (o auditOut) Text() string {
	var b strings.Builder
	for _, e := range o.Events {
		fmt.Fprintf(&b, "%7d  %s  %-12s %-26s %-24s %8.1f ms  %s\n", e.ID, e.At.Local().Format("2006-01-02 15:04:05"),
			line(e.Principal), line(e.Tool), line(e.Result), e.DurationMs, orDash(line(e.Ref)))
	}
	return b.String()
}

func (p *program) auditCommand() *cobra.Command {
	var asJSON bool
	var limit int
	var root string
	c := &cobra.Command{
		Use:   "audit",
		Short: "Show what clients did",
		Long: "Audit shows the last calls of clients and acts of yours, the newest first: who, what, when, how it ended,\n" +
			"and never the arguments. Rows are chained by their hashes: `dodo audit verify` holds the chain.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 || limit > 100_000 {
				return fault.New(cli.Usage, "--limit must be 1 to 100000")
			}
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			id := ""
			if root != "" {
				at, err := p.rootOf(root)
				if err != nil {
					return err
				}
				w, err := in.workspaceAt(c.Context(), at, false)
				if err != nil {
					return err
				}
				id = w.ID
			}
			list, err := in.store.Events(c.Context(), id, limit)
			if err != nil {
				return err
			}
			return p.output(asJSON, shownEvents(list))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	c.Flags().IntVar(&limit, "limit", 50, "how many rows")
	c.Flags().StringVar(&root, "root", "", "only of this workspace")
	c.AddCommand(p.auditVerifyCommand())
	return c
}

func shownEvents(list []state.Event) auditOut {
	var out auditOut
	for _, e := range list {
		out.Events = append(out.Events, eventOut{
			ID: e.ID, At: e.At, Request: e.Request, Principal: e.Principal, Workspace: e.Workspace, Tool: e.Tool, Input: e.Input,
			Ref: e.Ref, DurationMs: float64(e.Duration.Microseconds()) / 1000, Result: e.Result, Hash: e.Hash,
		})
	}
	return out
}

// verifyOut is what audit verify prints.
type verifyOut struct {
	OK      bool   `json:"ok"`
	Rows    int    `json:"rows"`
	First   int64  `json:"first"`
	Last    int64  `json:"last"`
	Head    string `json:"head"`
	Broken  int64  `json:"brokenRow,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Text says it in words.
func (o verifyOut) Text() string {
	switch {
	case !o.OK:
		return fmt.Sprintf("The audit is broken at row %d: %s. %d rows before it hold.\n", o.Broken, o.Problem, o.Rows)
	case o.Rows == 0:
		return "The audit is whole: it has no rows now.\n"
	}
	return fmt.Sprintf("The audit is whole: rows %d to %d.\nThe newest hash is %s; note it elsewhere to notice a chain that was made anew.\n", o.First, o.Last, o.Head)
}

func (p *program) auditVerifyCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check that no row of the audit was changed, removed or added",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			v, err := in.store.Verify(c.Context())
			if err != nil {
				return err
			}
			out := verifyOut{OK: v.Broken == nil, Rows: v.Rows, First: v.First, Last: v.Last, Head: v.Head}
			if v.Broken != nil {
				out.Broken, out.Problem = v.Broken.ID, v.Broken.Why
			}
			if err := p.output(asJSON, out); err != nil || out.OK {
				return err
			}
			return cli.Status(1)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

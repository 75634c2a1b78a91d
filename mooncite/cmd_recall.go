package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"localmcp/internal/cli"
	"localmcp/internal/op"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
)

// answer prints an engine's answer, as data or in words.
func (p *program) answer(asJSON bool, out op.Texter) error {
	if asJSON {
		return p.streams.JSON(out)
	}
	return p.streams.Text(out.Text())
}

// conclude is answer with the exit status that tells a certain answer from an uncertain one.
func (p *program) conclude(asJSON bool, out op.Texter, conclusive bool) error {
	if err := p.answer(asJSON, out); err != nil || conclusive {
		return err
	}
	return cli.Status(exitInconclusive)
}

func (p *program) recallCommand() *cobra.Command {
	var in engine.RecallIn
	var asJSON bool
	c := &cobra.Command{
		Use:   "recall QUERY...",
		Short: "Find text of past conversations by words",
		Long: "Recall finds text that holds the query's words. Quote a phrase twice to find it as it stands:\n" +
			"  mooncite recall '\"retry with backoff\"'",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in.Query = strings.TrimSpace(strings.Join(args, " "))
			if err := given(c); err != nil {
				return err
			}
			if err := check("recall", engine.ToolRecall, in); err != nil {
				return err
			}
			if why := in.Wrong(); why != "" {
				return wrong("recall", why)
			}
			e, err := p.openReady(c)
			if err != nil {
				return err
			}
			defer e.Close()
			out, err := e.Recall(c.Context(), in)
			if err != nil {
				return err
			}
			if why := out.Wrong(); why != "" {
				return wrong("recall", why)
			}
			return p.conclude(asJSON, out, out.Conclusive)
		},
	}
	f := c.Flags()
	f.IntVar(&in.Limit, "limit", 5, "how many candidates, 1 to 20")
	f.StringVar(&in.Project, "project", "", "only this project (project:...)")
	f.StringVar(&in.SessionID, "session", "", "only this session")
	f.StringVar(&in.After, "after", "", "only at or after this time, such as 2026-03-01T00:00:00Z")
	f.StringVar(&in.Before, "before", "", "only at or before this time")
	f.StringVar(&in.Role, "role", "", "only this speaker: "+evidence.Names(evidence.Roles()))
	f.StringVar(&in.SourceOrigin, "origin", "", "only this product: "+evidence.Names(evidence.Origins()))
	f.StringVar(&in.Order, "order", "relevance", "relevance, newest or oldest")
	f.StringVar(&in.Cursor, "cursor", "", "go on behind an earlier answer")
	f.BoolVar(&in.DebugTiming, "timing", false, "report how long it took")
	f.BoolVar(&asJSON, "json", false, "print the answer as JSON")
	return c
}

// patience is how long a command, which a person started and can stop, waits for newer
// text once more before it answers without it.
const patience = time.Minute

// openReady opens the engine and reads what is new before it returns, with progress
// on a terminal. What cannot be read is for the answer to say: what was read before is
// still good for one.
func (p *program) openReady(c *cobra.Command) (*engine.Engine, error) {
	limitMemory()
	e, _, err := p.open(c.Context(), engine.Options{Patience: patience})
	if err != nil {
		return nil, err
	}
	bar := p.streams.Progress("reading histories")
	err = e.Refresh(c.Context(), bar.Report)
	bar.Done()
	if err != nil && c.Context().Err() != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

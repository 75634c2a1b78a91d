package main

import (
	"github.com/spf13/cobra"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/evidence"
)

func (p *program) forgetCommand() *cobra.Command {
	var session, span string
	var yes, asJSON bool
	c := &cobra.Command{
		Use:   "forget --session ID | --evidence ID",
		Short: "Take text out of the index for good",
		Long: "Forget takes a session or one span out of the index and keeps it out, also after a rebuild.\n" +
			"The history itself is not touched: delete there what must not be on the machine at all.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := given(c); err != nil {
				return err
			}
			if (session == "") == (span == "") {
				return fault.New(evidence.CodeUsage, "give either --session or --evidence").WithHint("see `mooncite forget --help`")
			}
			if span != "" {
				if err := citation(span); err != nil {
					return err
				}
			}
			e, err := p.openReady(c)
			if err != nil {
				return err
			}
			defer e.Close()
			plan, err := e.PlanForget(c.Context(), session, span)
			if err != nil {
				return err
			}
			if !yes {
				if err := p.confirm(c.Context(), plan.Text()); err != nil {
					return err
				}
			}
			out, err := e.Forget(c.Context(), plan)
			if err != nil {
				return err
			}
			if err := p.answer(asJSON, out); err != nil {
				return err
			}
			p.noteResting(c.Context(), e, out)
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&session, "session", "", "the session, as an answer names it (origin:digest:id)")
	f.StringVar(&span, "evidence", "", "the evidence id or URI of one span")
	f.BoolVar(&yes, "yes", false, "do not ask")
	f.BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

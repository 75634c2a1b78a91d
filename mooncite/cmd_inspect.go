package main

import (
	"errors"

	"github.com/spf13/cobra"

	"localmcp/internal/fault"
	"localmcp/internal/op"
	"localmcp/mooncite/internal/engine"
)

func (p *program) inspectCommand() *cobra.Command {
	var in engine.InspectIn
	var window int
	var asJSON bool
	c := &cobra.Command{
		Use:   "inspect EVIDENCE-ID",
		Short: "Re-read the source of a citation and show it with its neighbours",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in.EvidenceID, in.Window = args[0], &window
			if err := citation(in.EvidenceID); err != nil {
				return err
			}
			if err := check("inspect", engine.ToolInspect, in); err != nil {
				return err
			}
			e, err := p.openReady(c)
			if err != nil {
				return err
			}
			defer e.Close()
			out, err := e.Inspect(c.Context(), in)
			if errors.Is(err, op.InvalidArgument) {
				return wrong("inspect", fault.From(err).Msg)
			}
			if err != nil {
				return err
			}
			return p.conclude(asJSON, out, out.Conclusive)
		},
	}
	f := c.Flags()
	f.IntVar(&window, "window", 2, "spans before and after to show, 0 to 10")
	f.IntVar(&in.TextOffset, "offset", 0, "where in the cited text to begin, in bytes")
	f.BoolVar(&asJSON, "json", false, "print the answer as JSON")
	return c
}

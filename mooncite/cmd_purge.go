package main

import (
	"github.com/spf13/cobra"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/source"
)

func (p *program) purgeCommand() *cobra.Command {
	var yes, asJSON bool
	c := &cobra.Command{
		Use:   "purge",
		Short: "Remove everything that mooncite keeps about your histories, for good",
		Long: "Purge removes the state directory: the index with the text of history files that are gone, the\n" +
			"list of what you told it to forget, and learned memory. Histories, the registered sources and the\n" +
			"installed program stay. It is refused while a client runs that uses mooncite.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			places, err := source.PlacesOf(p.env)
			if err != nil {
				return err
			}
			plan, err := engine.PlanPurge(places)
			if err != nil {
				return err
			}
			if len(plan.Files) > 0 && !yes {
				if !p.streams.InTerminal {
					return fault.New(evidence.CodeConfirm, "%s", plan.Text()).WithHint("add --yes to do it; it cannot be undone")
				}
				answer, err := p.streams.Ask(c.Context(), plan.Text()+"\nIt cannot be undone. Type yes to do it:")
				if err != nil {
					return err
				}
				if answer != "yes" {
					return fault.New(evidence.CodeConfirm, "nothing was changed")
				}
			}
			out, err := engine.Purge(places)
			if err != nil {
				return err
			}
			return p.answer(asJSON, out)
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

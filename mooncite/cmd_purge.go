package main

import (
	"github.com/spf13/cobra"

	"localmcp/mooncite/internal/engine"
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
				if err := p.confirm(c.Context(), plan.Text()); err != nil {
					return err
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

package main

import (
	"github.com/spf13/cobra"

	"localmcp/mooncite/internal/engine"
)

func (p *program) rebuildCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "rebuild",
		Short: "Read all histories anew into a new index",
		Long: "Rebuild makes a new index beside the one in use and puts it in its place when it is complete.\n" +
			"Text of source files that are gone is not in the new one. Histories are not changed.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			limitMemory()
			e, _, err := p.open(c.Context(), engine.Options{})
			if err != nil {
				return err
			}
			defer e.Close()
			bar := p.streams.Progress("reading histories")
			out, err := e.Rebuild(c.Context(), bar.Report)
			bar.Done()
			if err != nil {
				return err
			}
			if err := p.answer(asJSON, out); err != nil {
				return err
			}
			return statusExit(out.Outcome)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

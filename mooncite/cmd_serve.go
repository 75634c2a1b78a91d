package main

import (
	"github.com/spf13/cobra"

	"localmcp/mooncite/internal/engine"
)

func (p *program) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve the tools to an AI client over MCP on standard input and output",
		Long: "Serve speaks MCP on standard input and output until the input ends. Clients start it; several\n" +
			"may run at once. The first start reads the histories in the background.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			limitMemory()
			e, err := p.open(c.Context(), engine.Options{Background: true})
			if err != nil {
				return err
			}
			defer e.Close()
			m, err := p.memory(e)
			if err != nil {
				return err
			}
			if m != nil {
				defer m.Close()
			}
			return server(e, m).ServeStdio(c.Context())
		},
	}
}

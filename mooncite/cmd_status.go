package main

import (
	"github.com/spf13/cobra"

	"localmcp/internal/cli"
	"localmcp/mooncite/internal/engine"
)

func (p *program) statusCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Say what is indexed, how fresh it is, and what cannot be read",
		Long: "Status looks for changes and says what is indexed, how fresh it is, and what cannot be read. It also\n" +
			"asks Pi, OMP, Codex and Claude Code, by their own commands, whether they start the installed\n" +
			"mooncite; servers repeat that answer, with its time, and start no client themselves.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := p.probe(c.Context()); err != nil {
				return err
			}
			limitMemory()
			e, err := p.openReady(c)
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
			out, err := e.Status(c.Context())
			if err != nil {
				return err
			}
			if err := p.answer(asJSON, out); err != nil {
				return err
			}
			return statusExit(out.Outcome)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the answer as JSON")
	return c
}

// statusExit is the exit status of what status says.
func statusExit(outcome string) error {
	switch outcome {
	case engine.Degraded:
		return cli.Status(exitDegraded)
	case engine.Unavailable:
		return cli.Status(exitInconclusive)
	}
	return nil
}

//go:build mooncite_probe

package main

import (
	"runtime"
	"sync"

	"github.com/spf13/cobra"

	"localmcp/internal/confine"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/testdata/attempts"
)

// probeOut is what probe prints.
type probeOut struct {
	Confinement engine.Confinement
	Attempts    []confine.Attempt // of all threads together
	Report      attempts.Report
	Recall      engine.RecallOut
}

// probes are commands that only a build for tests has.
func (p *program) probes() []*cobra.Command {
	var file string
	c := &cobra.Command{
		Use:    "probe",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			e, g, err := p.open(c.Context(), engine.Options{Patience: patience})
			if err != nil {
				return err
			}
			defer e.Close()
			out := probeOut{Confinement: g.report()}
			if out.Recall, err = e.Recall(c.Context(), engine.RecallIn{Query: "ECONNRESET", Limit: 5}); err != nil {
				return err
			}
			var mu sync.Mutex
			var wait sync.WaitGroup
			for range 16 {
				wait.Go(func() {
					runtime.LockOSThread()
					list := confine.Try(g.trial(p.env["HOME"]))
					mu.Lock()
					defer mu.Unlock()
					out.Attempts = append(out.Attempts, list...)
				})
			}
			wait.Wait()
			r := &out.Report
			r.Network, r.Programs, r.Sources = attempts.Network(), attempts.Programs(), attempts.Sources(file)
			r.SQLite = attempts.SQLite(g.places.StateDir)
			r.Look()
			return p.streams.JSON(out)
		},
	}
	c.Flags().StringVar(&file, "file", "", "a file of a root")
	return []*cobra.Command{c}
}

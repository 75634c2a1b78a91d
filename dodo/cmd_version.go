package main

import (
	"runtime"

	"github.com/spf13/cobra"
)

// version is set at build time.
var version = "dev"

// versionOut is what version prints.
type versionOut struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

func (p *program) versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versionOut{version, runtime.Version()}
			if asJSON {
				return p.streams.JSON(v)
			}
			p.streams.Printf("dodo %s (%s)\n", v.Version, v.Go)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

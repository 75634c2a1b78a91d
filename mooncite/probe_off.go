//go:build !mooncite_probe

package main

import "github.com/spf13/cobra"

// probes are commands that only a build for tests has.
func (p *program) probes() []*cobra.Command { return nil }

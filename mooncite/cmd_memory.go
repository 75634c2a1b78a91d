package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"localmcp/internal/cli"
	"localmcp/internal/fault"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/memory"
	"localmcp/mooncite/internal/source"
)

func (p *program) memoryCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "memory",
		Short: "Switch learned memory on and off, see how it stands, and remove it",
		Long: "Learned memory is what agents write down on purpose: interpretations, kept apart from evidence in\n" +
			"a database of their own. It is off until you enable it; then clients see four more tools.",
	}
	c.AddCommand(p.memoryEnableCommand(), p.memoryDisableCommand(), p.memoryStatusCommand(), p.memoryPurgeCommand())
	return c
}

// memorySetting is how the switch stands.
type memorySetting struct {
	Kind             string `json:"kind"`
	Version          int    `json:"version"`
	Enabled          bool   `json:"enabled"`
	Configured       bool   `json:"configured"`
	DatabaseRetained bool   `json:"databaseRetained"`
	ReloadRequired   bool   `json:"reloadRequired"`
}

// Text is the setting in words.
func (s memorySetting) Text() string {
	var b strings.Builder
	switch {
	case s.Enabled:
		b.WriteString("Learned memory is on.\n")
	case s.Configured:
		b.WriteString("Learned memory is off.\n")
	default:
		b.WriteString("Learned memory is off; it was never switched on.\n")
	}
	switch {
	case s.ReloadRequired && s.Enabled:
		b.WriteString("Clients see the tools at the latest when they start mooncite the next time.\n")
	case s.ReloadRequired:
		b.WriteString("Running servers refuse the tools at once and drop them from the list at their next start.\n")
	}
	if s.DatabaseRetained && !s.Enabled {
		b.WriteString("What was kept is still there; `mooncite memory purge` removes it.\n")
	}
	return b.String()
}

func (p *program) memoryEnableCommand() *cobra.Command {
	return p.memorySwitch("enable", true, "Let agents keep learned memory",
		"Enable offers agents four tools more, with which they keep, find and delete interpretations of their\n"+
			"own. Clients see them at the latest when they start mooncite the next time. Evidence is not affected.")
}

func (p *program) memoryDisableCommand() *cobra.Command {
	return p.memorySwitch("disable", false, "Stop agents from using learned memory",
		"Disable takes the four tools away: running servers refuse them at once and drop them from the list at\n"+
			"their next start. What was kept stays and is there again after enable; purge removes it.")
}

func (p *program) memorySwitch(use string, on bool, short, long string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			places, err := source.PlacesOf(p.env)
			if err != nil {
				return err
			}
			if err := memory.WriteSetting(places.ConfigDir, on); err != nil {
				return err
			}
			kept, err := memory.Present(places.StateDir)
			if err != nil {
				return err
			}
			return p.answer(asJSON, memorySetting{"derived_memory_config", 1, on, true, len(kept) > 0, true})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

func (p *program) memoryStatusCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Say whether learned memory is on, what it holds and what is wrong with it",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			places, err := source.PlacesOf(p.env)
			if err != nil {
				return err
			}
			on, err := memory.ReadSetting(places.ConfigDir)
			if err != nil {
				return err
			}
			if !on.Enabled {
				kept, err := memory.Present(places.StateDir)
				if err != nil {
					return err
				}
				return p.answer(asJSON, memorySetting{"derived_memory_config", 1, false, on.Configured, len(kept) > 0, false})
			}
			if err := ownState(places); err != nil {
				return err
			}
			m := memory.New(places.StateDir, version, nil, nil) // counting asks for no evidence
			defer m.Close()
			out := m.Status(c.Context())
			if err := p.answer(asJSON, out); err != nil {
				return err
			}
			if out.Outcome != engine.Ready {
				return cli.Status(exitInconclusive)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the answer as JSON")
	return c
}

// memoryPurged says what was removed.
type memoryPurged struct {
	Kind    string   `json:"kind"`
	Outcome string   `json:"outcome"`
	Files   []string `json:"files"`
}

// Text is the result in words.
func (o memoryPurged) Text() string {
	if len(o.Files) == 0 {
		return "There is no learned memory to remove.\n"
	}
	return "Removed: " + strings.Join(o.Files, ", ") + "\n"
}

func (p *program) memoryPurgeCommand() *cobra.Command {
	var yes, asJSON bool
	c := &cobra.Command{
		Use:   "purge",
		Short: "Remove everything that learned memory holds, for good",
		Long: "Purge removes the database of learned memory, also a damaged one. Evidence, histories and the\n" +
			"switch stay as they are. It is refused while a client runs that uses it.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			places, err := source.PlacesOf(p.env)
			if err != nil {
				return err
			}
			if err := ownState(places); err != nil { // what another program learned is not ours to remove
				return err
			}
			kept, err := memory.Present(places.StateDir)
			if err != nil {
				return err
			}
			if len(kept) > 0 && !yes {
				if err := p.confirm(c.Context(), "This removes all learned memory ("+strings.Join(kept, ", ")+")"); err != nil {
					return err
				}
			}
			if err := memory.Purge(places.StateDir); err != nil {
				return err
			}
			return p.answer(asJSON, memoryPurged{"derived_memory_purge", "purged", slices.Clone(kept)})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// confirm asks for a yes to what cannot be undone.
func (p *program) confirm(ctx context.Context, what string) error {
	if !p.streams.InTerminal {
		return fault.New(evidence.CodeConfirm, "%s", what).WithHint("add --yes to do it; it cannot be undone")
	}
	answer, err := p.streams.Ask(ctx, what+"\nIt cannot be undone. Type yes to do it:")
	if err != nil {
		return err
	}
	if answer != "yes" {
		return fault.New(evidence.CodeConfirm, "nothing was changed")
	}
	return nil
}

// resting says in words how something rests on forgotten text.
var resting = map[string]string{
	memory.RestsNow:     "hidden from recall now",
	memory.RestedBefore: "recalled still: only an older revision rests on it",
	memory.RestsDerived: "recalled still: derived from one that does",
	memory.RestsSkill:   "a proposed skill, made from one that does",
}

// noteResting tells the owner, beside the answer, what of learned memory rests on text that
// was forgotten, and what of it recall still finds: what agents wrote stays.
func (p *program) noteResting(ctx context.Context, e *engine.Engine, out engine.ForgetOut) {
	places, err := source.PlacesOf(p.env)
	if err != nil {
		return // it was good enough to forget with
	}
	m := memory.New(places.StateDir, version, e, nil)
	defer m.Close()
	list, err := m.RestingOn(ctx, out.SessionID, out.Evidence)
	if err != nil {
		p.streams.Notef("Whether learned memory rests on it could not be looked up: %s", fault.From(err).Error())
		return
	}
	if len(list) == 0 {
		return
	}
	lines := []string{fmt.Sprintf("Learned memory rests on it (%d). What agents wrote of it stays until an agent deletes it, in this order:", len(list))}
	for _, r := range list {
		lines = append(lines, r.ID+"  "+resting[r.How])
	}
	p.streams.Notef("%s", strings.Join(lines, "\n  "))
}

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/ground/change"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

// recoveredOut is what recover did.
type recoveredOut struct {
	changeOut
	Saved []string `json:"saved"`
}

// Text is that in words.
func (o recoveredOut) Text() string {
	var b strings.Builder
	b.WriteString(o.changeOut.Text())
	for _, path := range o.Saved {
		fmt.Fprintf(&b, "kept beside its place, because nothing else has these bytes: %s\n", line(path))
	}
	return b.String()
}

func (p *program) recoverCommand() *cobra.Command {
	var asJSON bool
	ways := map[change.Way]*bool{change.Forward: new(bool), change.Back: new(bool), change.Resolve: new(bool)}
	c := &cobra.Command{
		Use:   "recover [ID]",
		Short: "Show and end changes that were interrupted and that dodo cannot end by itself",
		Long: "A change that was interrupted is completed or taken back when dodo starts the next time. Where a file is\n" +
			"neither as before nor as after, dodo leaves it to you, and changes nothing more in that workspace. Without\n" +
			"an id, recover lists such changes. With one, --forward does what is left of it, --back takes back what\n" +
			"was done, and --resolve leaves the files as they are.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var way change.Way
			for w, set := range ways {
				if *set && way != "" {
					return fault.New(cli.Usage, "--forward, --back and --resolve exclude each other")
				}
				if *set {
					way = w
				}
			}
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			switch {
			case len(args) == 1 && args[0] != "list" && way == "":
				return fault.New(cli.Usage, "say how: --forward, --back or --resolve").WithHint("`dodo recover` lists what waits")
			case way != "" && (len(args) == 0 || args[0] == "list"):
				return fault.New(cli.Usage, "name the change").WithHint("`dodo recover` lists what waits")
			case way == "":
				return p.recoverList(c.Context(), in, asJSON)
			}
			return p.recover(c.Context(), in, args[0], way, asJSON)
		},
	}
	f := c.Flags()
	f.BoolVar(&asJSON, "json", false, "print it as JSON")
	f.BoolVar(ways[change.Forward], "forward", false, "do what is left of it")
	f.BoolVar(ways[change.Back], "back", false, "take back what was done of it")
	f.BoolVar(ways[change.Resolve], "resolve", false, "leave the files as they are")
	return c
}

func (p *program) recoverList(ctx context.Context, in *installation, asJSON bool) error {
	list, err := change.Everywhere(ctx, in.store, "")
	if err != nil {
		return err
	}
	out := changesOut{Changes: []changeOut{}, none: "No change waits for you."}
	for _, e := range list {
		w, err := in.store.Workspace(ctx, e.Workspace)
		if err != nil {
			return err
		}
		out.Changes = append(out.Changes, shownChange(w.ID, w.Root, e.Changeset))
	}
	return p.output(asJSON, out)
}

func (p *program) recover(ctx context.Context, in *installation, id string, way change.Way, asJSON bool) error {
	begun := time.Now()
	w, err := in.located(ctx, id)
	if err != nil {
		return err
	}
	out := recoveredOut{Saved: []string{}}
	err = in.changing(ctx, w, func(s *change.Service) error {
		done, err := s.Recover(ctx, id, way)
		out.changeOut = shownChange(w.ID, w.Root, done.Changeset)
		out.Saved = append(out.Saved, done.Saved...)
		return err
	})
	if err := in.byOwner(ctx, "owner.recover."+string(way), w.ID, id, begun, err); err != nil {
		return err
	}
	return p.output(asJSON, out)
}

package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/source"
)

func (p *program) sourceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "source",
		Short: "List, add and remove the roots that histories are read from",
	}
	c.AddCommand(p.sourceListCommand(), p.sourceAddCommand(), p.sourceRemoveCommand())
	return c
}

// rootOut is one root as the owner's terminal shows it, with its real path.
type rootOut struct {
	Origin     string `json:"origin"`
	Root       string `json:"root"`
	Registered bool   `json:"registered"`
	State      string `json:"state"`
	Problem    string `json:"problem,omitempty"`
	Remedy     string `json:"remedy,omitempty"`
}

type sourcesOut struct {
	Sources []rootOut `json:"sources"`
	Problem string    `json:"problem,omitempty"`
	Remedy  string    `json:"remedy,omitempty"`
}

var stateNames = map[source.State]string{source.Usable: "ok", source.Missing: "missing", source.Refused: "refused", source.Covered: "covered"}

// tryRoot looks into a root that should be usable.
func tryRoot(ctx context.Context, set source.Set, i int) (state, problem, remedy string) {
	state = stateNames[source.Usable]
	tree, err := set.Open(i, source.Rules{})
	if err != nil {
		f := fault.From(err)
		return stateNames[source.Refused], f.Msg, f.Hint
	}
	defer tree.Close()
	w := source.NewWatch(tree, nil, nil)
	if _, err := w.Changes(ctx); err != nil {
		return state, "", ""
	}
	for _, x := range w.Report().Failures {
		if x.Rel == "." {
			return stateNames[source.Refused], x.Fault.Msg, x.Fault.Hint
		}
		problem, remedy = x.Fault.Msg, x.Fault.Hint
	}
	return state, problem, remedy
}

func (p *program) sourceListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the roots and say which can be read",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			places, err := source.PlacesOf(p.env)
			if err != nil {
				return err
			}
			if _, err := p.guard(places, false); err != nil {
				return err
			}
			set := places.Resolve()
			out := sourcesOut{Sources: []rootOut{}}
			for i, r := range set.Roots {
				o := rootOut{Origin: string(r.Origin), Root: evidence.Visible(r.Dir), Registered: r.Registered, State: stateNames[r.State], Remedy: evidence.Visible(r.Remedy)}
				if r.Problem != nil {
					o.Problem = r.Problem.Msg
				}
				if r.State == source.Usable {
					o.State, o.Problem, o.Remedy = tryRoot(c.Context(), set, i)
				}
				out.Sources = append(out.Sources, o)
			}
			if set.Problem != nil {
				out.Problem, out.Remedy = set.Problem.Msg, set.Problem.Hint
			}
			if asJSON {
				return p.streams.JSON(out)
			}
			for _, o := range out.Sources {
				by := "automatic"
				if o.Registered {
					by = "registered"
				}
				p.streams.Printf("%-12s %-10s %-8s %s\n", o.Origin, by, o.State, o.Root)
				if o.Problem != "" {
					p.streams.Printf("    %s\n", o.Problem)
				}
				if o.Remedy != "" {
					p.streams.Printf("    %s\n", o.Remedy)
				}
			}
			if out.Problem != "" {
				p.streams.Printf("\n%s; the other roots work.\n    %s\n", out.Problem, out.Remedy)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print them as JSON")
	return c
}

type sourceChange struct {
	Changed bool   `json:"changed"`
	Origin  string `json:"origin"`
	Root    string `json:"root"`
}

// registration reads the arguments of add and remove.
func registration(args []string) (source.Registration, error) {
	o, ok := evidence.ParseOrigin(args[0])
	if !ok || o == evidence.Pi || o == evidence.OMP {
		return source.Registration{}, fault.New(evidence.CodeUsage, "%q is not an origin that can be registered", args[0]).
			WithHint("give claude-code, codex or chatgpt; Pi and OMP are found by themselves")
	}
	if !filepath.IsAbs(args[1]) {
		return source.Registration{}, fault.New(evidence.CodeUsage, "%q is not an absolute path", args[1]).WithHint("give the directory's whole path, beginning with /")
	}
	return source.Registration{Origin: o, Dir: filepath.Clean(args[1])}, nil
}

func (p *program) sourceAddCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "add ORIGIN DIRECTORY",
		Short: "Authorize one more root to be read",
		Long: "Add lets mooncite read the histories below a directory. ORIGIN is claude-code, codex or chatgpt.\n" +
			"Running servers see it at their next request.",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := registration(args)
			if err != nil {
				return err
			}
			places, err := source.PlacesOf(p.env)
			if err != nil {
				return err
			}
			before, err := places.Registered()
			if err != nil {
				return err
			}
			if err := places.Register(c.Context(), r); err != nil {
				return err
			}
			added := true
			for _, b := range before {
				added = added && b != r
			}
			return p.changed(asJSON, sourceChange{added, string(r.Origin), evidence.Visible(r.Dir)}, "added", "was registered already")
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

func (p *program) sourceRemoveCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "remove ORIGIN DIRECTORY",
		Short: "Take back an authorization that add gave",
		Long:  "Remove ends the authorization of a registered root. Its text leaves the index at the next request;\nthe files themselves are not touched.",
		Args:  cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := registration(args)
			if err != nil {
				return err
			}
			places, err := source.PlacesOf(p.env)
			if err != nil {
				return err
			}
			removed, err := places.Unregister(c.Context(), r)
			if err != nil {
				return err
			}
			return p.changed(asJSON, sourceChange{removed, string(r.Origin), evidence.Visible(r.Dir)}, "removed", "is not registered; automatic roots are switched off with MOONCITE_AUTO_SOURCES=0")
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

func (p *program) changed(asJSON bool, o sourceChange, did, not string) error {
	if asJSON {
		return p.streams.JSON(o)
	}
	if !o.Changed {
		did = not
	}
	p.streams.Printf("%s\n", fmt.Sprintf("%s %s %s", o.Origin, o.Root, did))
	return nil
}

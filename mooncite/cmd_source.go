package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/engine"
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

// Text is the list in words.
func (o sourcesOut) Text() string {
	var b strings.Builder
	for _, r := range o.Sources {
		by := "automatic"
		if r.Registered {
			by = "registered"
		}
		fmt.Fprintf(&b, "%-12s %-10s %-8s %s\n", r.Origin, by, r.State, oneLine(r.Root))
		for _, more := range []string{r.Problem, r.Remedy} {
			if more != "" {
				fmt.Fprintf(&b, "    %s\n", oneLine(more))
			}
		}
	}
	if o.Problem != "" {
		fmt.Fprintf(&b, "\n%s; the other roots work.\n    %s\n", o.Problem, o.Remedy)
	}
	return b.String()
}

// oneLine keeps a name with a line feed from looking like more than one.
func oneLine(visible string) string { return strings.ReplaceAll(visible, "\n", `\u{a}`) }

// outcome is what status would make of the roots: degraded when one cannot be read as it
// stands.
func (o sourcesOut) outcome() string {
	if o.Problem != "" || slices.ContainsFunc(o.Sources, func(r rootOut) bool { return r.Problem != "" }) {
		return engine.Degraded
	}
	return engine.Ready
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
			if err := p.answer(asJSON, out); err != nil {
				return err
			}
			return statusExit(out.outcome())
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
	r := source.Registration{Origin: evidence.Origin(args[0]), Dir: args[1]}
	if filepath.IsAbs(r.Dir) {
		r.Dir = filepath.Clean(r.Dir)
	}
	if why := r.Wrong(); why != "" {
		return r, fault.New(evidence.CodeUsage, "%s", why).
			WithHint("give %s and the directory's whole path, beginning with /; Pi and OMP are found by themselves", source.Registrable())
	}
	return r, nil
}

func (p *program) sourceAddCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "add ORIGIN DIRECTORY",
		Short: "Authorize one more root to be read",
		Long: "Add lets mooncite read the histories below a directory. ORIGIN is " + source.Registrable() + ".\n" +
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
			added, err := places.Register(c.Context(), r)
			if err != nil {
				return err
			}
			did := "added"
			if !added {
				did = "was registered already"
			}
			return p.changed(asJSON, sourceChange{added, string(r.Origin), evidence.Visible(r.Dir)}, did)
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
			if err := places.Unregister(c.Context(), r); err != nil {
				return err
			}
			return p.changed(asJSON, sourceChange{true, string(r.Origin), evidence.Visible(r.Dir)}, "removed")
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

func (p *program) changed(asJSON bool, o sourceChange, did string) error {
	if asJSON {
		return p.streams.JSON(o)
	}
	p.streams.Printf("%s %s %s\n", o.Origin, oneLine(o.Root), did)
	return nil
}

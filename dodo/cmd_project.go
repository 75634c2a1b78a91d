package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

func (p *program) projectCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "project",
		Short: "Register, list and remove the projects that clients may be pointed at",
		Long: "A project is a directory that you register once. Clients may name it in their calls, as far as they were\n" +
			"let in. No tool can register one.",
	}
	c.AddCommand(p.projectAddCommand(), p.projectListCommand(), p.projectInfoCommand(), p.projectRemoveCommand())
	return c
}

// projectOut is one project.
type projectOut struct {
	ID          string          `json:"projectId"`
	Name        string          `json:"name"`
	Root        string          `json:"root"`
	WorkspaceID string          `json:"workspaceId"`
	State       state.Readiness `json:"state"`
	Created     time.Time       `json:"createdAt"`
	Updated     time.Time       `json:"updatedAt"`
}

func shownProject(p state.Project) projectOut {
	return projectOut{ID: p.ID, Name: p.Name, Root: p.Root, WorkspaceID: p.Workspace, State: p.Readiness(), Created: p.Created, Updated: p.Updated}
}

// Text is the project in words.
func (o projectOut) Text() string {
	return fmt.Sprintf("%s  %-12s %s\n    %s\n", o.ID, o.State, line(o.Name), line(o.Root))
}

// projectsOut is what project list prints.
type projectsOut struct {
	Projects []projectOut `json:"projects"`
}

// Text is the list in words.
func (o projectsOut) Text() string {
	var b strings.Builder
	for _, p := range o.Projects {
		b.WriteString(p.Text())
	}
	return b.String()
}

const maxProjectName = 100

func (p *program) projectAddCommand() *cobra.Command {
	var asJSON bool
	var name string
	c := &cobra.Command{
		Use:   "add DIRECTORY",
		Short: "Register a directory",
		Long: "Add registers a directory. One that was registered elsewhere and was moved keeps its project id and gets a\n" +
			"new workspace: what was granted for the old place does not travel. A directory as broad as your home is\n" +
			"refused.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if line(name) != name || len(name) > maxProjectName {
				return fault.New(cli.Usage, "--name must be plain text of at most %d bytes", maxProjectName)
			}
			root, err := p.rootOf(args[0])
			if err != nil {
				return err
			}
			in, err := p.install(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			out, err := in.register(c.Context(), root, name)
			if err != nil {
				return err
			}
			return p.output(asJSON, shownProject(out))
		},
	}
	c.Flags().StringVar(&name, "name", "", "what people call it (the directory's name)")
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

// register is the owner's registration of a root, under the root policy without exception.
func (in *installation) register(ctx context.Context, root, name string) (state.Project, error) {
	tree, err := workspace.Open(root, workspace.Options{Hidden: []string{in.dir}, Home: in.home})
	if err != nil {
		return state.Project{}, err
	}
	defer tree.Close()
	d, err := state.Locate(tree.Root())
	if err != nil {
		return state.Project{}, err
	}
	known, err := in.store.Projects(ctx, false)
	if err != nil {
		return state.Project{}, err
	}
	if name == "" {
		name = line(filepath.Base(tree.Root()))
		for _, k := range known {
			if k.Directory == d {
				name = "" // it keeps the name it has
			}
		}
	}
	return in.store.AddProject(ctx, tree.Root(), name, d)
}

func (p *program) projectListCommand() *cobra.Command {
	var asJSON, all bool
	c := &cobra.Command{
		Use: "list", Short: "List the projects", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			list, err := in.store.Projects(c.Context(), all)
			if err != nil {
				return err
			}
			var out projectsOut
			for _, project := range list {
				out.Projects = append(out.Projects, shownProject(project))
			}
			return p.output(asJSON, out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	c.Flags().BoolVar(&all, "all", false, "also those that were removed")
	return c
}

func (p *program) projectInfoCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "info ID", Short: "Show a project", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			project, err := in.store.Project(c.Context(), args[0])
			if err != nil {
				return err
			}
			return p.output(asJSON, shownProject(project))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

func (p *program) projectRemoveCommand() *cobra.Command {
	var asJSON, yes bool
	c := &cobra.Command{
		Use: "remove ID", Short: "End the registration of a project; no file is touched", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			project, err := in.store.Project(c.Context(), args[0])
			if err != nil {
				return err
			}
			if !yes {
				if err := p.confirm(c.Context(), "End the registration of "+line(project.Root)+"?", "--yes"); err != nil {
					return err
				}
			}
			if project, err = in.store.RemoveProject(c.Context(), args[0]); err != nil {
				return err
			}
			if project, err = in.store.Project(c.Context(), args[0]); err != nil {
				return err
			}
			return p.output(asJSON, shownProject(project))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

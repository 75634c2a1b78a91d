package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/change"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

// changeOut is one change of files.
type changeOut struct {
	ID        string        `json:"changesetId"`
	Workspace string        `json:"workspaceId"`
	Root      string        `json:"root,omitempty"`
	Kind      change.Kind   `json:"kind"`
	Status    change.Status `json:"status"`
	Principal string        `json:"principal"`
	Summary   string        `json:"summary"`
	Undoes    string        `json:"undoes,omitempty"`
	Error     string        `json:"error,omitempty"`
	Created   time.Time     `json:"createdAt"`
	Files     []changedOut  `json:"files"`
}

type changedOut struct {
	Action     change.Action `json:"action"`
	Path       string        `json:"path"`
	Dest       string        `json:"destPath,omitempty"`
	BeforeHash string        `json:"beforeHash,omitempty"`
	AfterHash  string        `json:"afterHash,omitempty"`
}

func shownChange(workspace, root string, c change.Changeset) changeOut {
	o := changeOut{
		ID: c.ID, Workspace: workspace, Root: root, Kind: c.Kind, Status: c.Status, Principal: c.Principal,
		Summary: c.Summary, Undoes: c.Undoes, Error: c.Error, Created: c.Created, Files: []changedOut{},
	}
	for _, f := range c.Files {
		o.Files = append(o.Files, changedOut{f.Action, f.Path, f.Dest, f.BeforeHash, f.AfterHash})
	}
	return o
}

// Text is the change in words.
func (o changeOut) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %-8s %-17s %-12s %s\n", o.ID, o.Created.Local().Format("2006-01-02 15:04:05"), o.Kind, o.Status, line(o.Principal), line(o.Summary))
	for _, f := range o.Files {
		fmt.Fprintf(&b, "    %-8s %s", f.Action, line(f.Path))
		if f.Dest != "" {
			fmt.Fprintf(&b, " -> %s", line(f.Dest))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// changesOut is a list of changes.
type changesOut struct {
	Changes []changeOut `json:"changes"`

	none string // what to say when there are none
}

// Text is the list in words.
func (o changesOut) Text() string {
	if len(o.Changes) == 0 {
		return o.none + "\n"
	}
	var b strings.Builder
	for _, c := range o.Changes {
		b.WriteString(c.Text())
	}
	return b.String()
}

const mostChanges = 1000

func (p *program) changesCommand() *cobra.Command {
	var asJSON bool
	var limit int
	var root string
	c := &cobra.Command{
		Use:   "changes",
		Short: "Show what was changed in a workspace",
		Long: "Changes shows the changes of files that clients made in a workspace, and rollbacks, the newest first.\n" +
			"`dodo rollback ID` takes one back.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 || limit > mostChanges {
				return fault.New(cli.Usage, "--limit must be 1 to %d", mostChanges)
			}
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			if root, err = p.rootOf(root); err != nil {
				return err
			}
			w, err := in.workspaceAt(c.Context(), root, false)
			if err != nil {
				return err
			}
			out := changesOut{Changes: []changeOut{}, none: "Nothing was changed in this workspace."}
			err = in.changing(c.Context(), w, func(s *change.Service) error {
				list, err := s.History(c.Context(), "", limit)
				for _, e := range list {
					out.Changes = append(out.Changes, shownChange(w.ID, w.Root, e))
				}
				return err
			})
			if err != nil {
				return err
			}
			return p.output(asJSON, out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	c.Flags().IntVar(&limit, "limit", 20, "how many changes")
	c.Flags().StringVar(&root, "root", "", "the workspace's directory (the current one)")
	return c
}

// changing opens the changes of a workspace for the owner, without a server.
func (in *installation) changing(ctx context.Context, w state.Workspace, f func(*change.Service) error) error {
	tree, _, _, err := in.tree(w.Root, true) // the owner opened it before
	if err != nil {
		return err
	}
	defer tree.Close()
	if id := tree.Identity(); id.Dev != w.Dev || id.Ino != w.Ino {
		return fault.New(contract.Conflict, "another directory is at the workspace's root now").
			WithHint("what was changed there was changed in the directory before; nothing of it is taken back here")
	}
	s, err := change.New(change.Config{
		Tree: tree, State: in.store, WorkspaceID: w.ID, Epoch: w.LastEpoch, Limits: in.config.Limits,
	})
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

// located finds a change and its workspace.
func (in *installation) located(ctx context.Context, id string) (state.Workspace, error) {
	list, err := change.Everywhere(ctx, in.store, id)
	if err != nil {
		return state.Workspace{}, err
	}
	if id == "" || len(list) == 0 {
		return state.Workspace{}, fault.New(contract.NotFound, "no change has this id").WithHint("`dodo changes` lists those of a workspace")
	}
	return in.store.Workspace(ctx, list[0].Workspace)
}

// byOwner notes in the audit what the owner did.
func (in *installation) byOwner(ctx context.Context, tool, workspace, ref string, begun time.Time, failed error) error {
	e := state.Event{Principal: state.PrincipalOwner, Workspace: workspace, Tool: tool, Ref: ref, Duration: time.Since(begun), Result: state.ResultOK}
	if failed != nil {
		e.Result = string(fault.From(failed).Code)
	}
	return errors.Join(named(failed), in.store.Audit(context.WithoutCancel(ctx), e))
}

// named adds to a failure the paths it is about: the owner has nothing else to see them by.
func named(err error) error {
	list := change.Conflicts(err)
	if len(list) == 0 {
		return err
	}
	f := *fault.From(err)
	for _, c := range list {
		f.Msg += "\n    " + line(c.Path) + ": " + line(c.Reason)
	}
	return &f
}

// rollbackOut is what rollback did.
type rollbackOut struct {
	ID       string   `json:"changesetId"`
	Undoes   string   `json:"undoes"`
	Restored []string `json:"restored"`
	Notes    []string `json:"notes"`
}

// Text is that in words.
func (o rollbackOut) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s was taken back by %s:\n", o.Undoes, o.ID)
	for _, path := range o.Restored {
		fmt.Fprintf(&b, "    %s\n", line(path))
	}
	for _, n := range o.Notes {
		fmt.Fprintf(&b, "%s\n", line(n))
	}
	return b.String()
}

func (p *program) rollbackCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "rollback ID",
		Short: "Take a change of files back",
		Long: "Rollback gives every file that a change wrote the bytes and the mode it had before, if all of them are\n" +
			"still as that change left them; otherwise nothing is touched. It is a change itself and can be taken back.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, begun := c.Context(), time.Now()
			in, err := p.existing(ctx)
			if err != nil {
				return err
			}
			defer in.close(nil)
			w, err := in.located(ctx, args[0])
			if err != nil {
				return err
			}
			out := rollbackOut{Undoes: args[0], Restored: []string{}, Notes: []string{}}
			err = in.changing(ctx, w, func(s *change.Service) error {
				done, err := s.Rollback(ctx, contract.Principal{GrantID: state.PrincipalOwner, Owner: true}, args[0])
				out.ID = done.ChangesetID
				out.Restored, out.Notes = append(out.Restored, done.Restored...), append(out.Notes, done.Notes...)
				return err
			})
			if err := in.byOwner(ctx, "owner.rollback", w.ID, args[0], begun, err); err != nil {
				return err
			}
			return p.output(asJSON, out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

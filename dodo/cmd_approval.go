package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// pendingOut is what pending prints.
type pendingOut struct {
	Approvals []approvalOut `json:"approvals"`

	whole bool // nothing of the previews is left out
}

// Text is the list in words, with all that an answer is about.
func (o pendingOut) Text() string {
	if len(o.Approvals) == 0 {
		return "Nothing waits for you.\n"
	}
	var b strings.Builder
	for _, a := range o.Approvals {
		fmt.Fprintf(&b, "%s  %s, asked by %s, until %s\n    %s\n    in %s\n", a.ID, line(a.Tool), line(a.Client), a.Expires.Local().Format("15:04:05"),
			line(a.Summary), orDash(line(a.Root)))
		if len(a.Preview) == 0 || string(a.Preview) == "null" {
			continue
		}
		shown := block(readable(a.Preview))
		if !o.whole {
			shown = beginning(shown, a.ID)
		}
		b.WriteString(shown)
		for _, path := range partly(a.Preview) {
			fmt.Fprintf(&b, "    NOT ALL IS SHOWN of what changes in %s: the difference is too long.\n", line(path))
		}
	}
	b.WriteString("Answer with `dodo approve ID` or `dodo deny ID`.\n")
	return b.String()
}

// How much of a preview is shown in words: lines, and characters of each.
const (
	previewLines = 200
	previewWidth = 2000
)

// beginning cuts a long preview and says so.
func beginning(s, id string) string {
	var b strings.Builder
	shown, more, cut := 0, 0, false
	for l := range strings.Lines(s) {
		if shown == previewLines {
			more++
			continue
		}
		shown++
		if r := []rune(strings.TrimSuffix(l, "\n")); len(r) > previewWidth {
			l, cut = string(r[:previewWidth])+" …\n", true
		}
		b.WriteString(l)
	}
	switch {
	case more > 0:
		fmt.Fprintf(&b, "    and %d more lines: `dodo pending %s` shows them\n", more, id)
	case cut:
		fmt.Fprintf(&b, "    with longer lines than are shown: `dodo pending %s` shows them whole\n", id)
	}
	return b.String()
}

// partly names the files of a preview whose difference is not whole.
func partly(preview json.RawMessage) (paths []string) {
	var files []struct {
		Path          string `json:"path"`
		DiffTruncated bool   `json:"diffTruncated"`
	}
	if json.Unmarshal(preview, &files) != nil {
		return nil // a preview of another kind has no such files
	}
	for _, f := range files {
		if f.DiffTruncated {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// readable writes JSON for reading: a line for each value, and texts of several lines as they
// are, indented.
func readable(raw json.RawMessage) string {
	var b strings.Builder
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := readableValue(&b, d, ""); err != nil {
		return string(raw)
	}
	return strings.TrimLeft(b.String(), "\n ")
}

// readableValue writes the next value behind what names it.
func readableValue(b *strings.Builder, d *json.Decoder, indent string) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	deeper := indent + "  "
	switch v := t.(type) {
	case json.Delim:
		for d.More() {
			name := "-"
			if v == '{' {
				if t, err = d.Token(); err != nil {
					return err
				}
				name = line(t.(string)) + ":"
			}
			b.WriteString("\n" + indent + name)
			if err := readableValue(b, d, deeper); err != nil {
				return err
			}
		}
		_, err = d.Token()
		return err
	case string:
		if strings.Contains(v, "\n") {
			v = "\n" + indent + strings.ReplaceAll(strings.TrimSuffix(v, "\n"), "\n", "\n"+indent)
		} else {
			v = " " + v
		}
		b.WriteString(v)
	default:
		fmt.Fprintf(b, " %v", v)
	}
	return nil
}

func (p *program) pendingCommand() *cobra.Command {
	var asJSON bool
	var root string
	c := &cobra.Command{
		Use:   "pending [ID]",
		Short: "Show what waits for your approval",
		Long: "Pending shows the calls that wait for your word, of every running server of this installation, with\n" +
			"what each would do. Long ones are shown in part; with an ID, that one is shown whole.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			live, err := p.running(c.Context(), root)
			if err != nil {
				return err
			}
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			out := pendingOut{whole: len(args) > 0}
			var failed error
			answered := false
			for _, l := range live {
				var list []approvalOut
				err := l.Call(c.Context(), cmdPending, nil, &list)
				if errors.Is(err, contract.NotFound) {
					continue // it ended meanwhile, and its questions with it
				}
				if err != nil { // such as one of an older version; it must not hide what others ask
					p.streams.Notef("dodo: the server %d does not say what waits: %v", l.PID, err)
					failed = err
					continue
				}
				answered = true
				for _, a := range list {
					if len(args) > 0 && a.ID != args[0] {
						continue
					}
					full, err := in.store.Approval(c.Context(), a.Workspace, "", a.ID)
					if err != nil {
						return err
					}
					w, err := in.store.Workspace(c.Context(), a.Workspace)
					if err != nil {
						return err
					}
					a.Preview, a.Root = full.Detail, w.Root
					out.Approvals = append(out.Approvals, a)
				}
			}
			if failed != nil && (!answered || len(args) > 0 && len(out.Approvals) == 0) {
				return failed
			}
			if len(args) > 0 && len(out.Approvals) == 0 {
				return notWaiting()
			}
			return p.output(asJSON, out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	c.Flags().StringVar(&root, "root", "", "only servers of this workspace")
	return c
}

// Text says what was decided.
func (a approvalOut) Text() string {
	if a.Status == "approved" {
		return fmt.Sprintf("%s is approved: the client's same call works once, until %s.\n", a.ID, a.Expires.Local().Format(time.TimeOnly))
	}
	return fmt.Sprintf("%s is denied.\n", a.ID)
}

func (p *program) approveCommand() *cobra.Command {
	return p.decisionCommand("approve", "Approve a call that waits", cmdApprove,
		"Approve lets the very call that was shown happen once: the same tool, the same arguments, the same\n"+
			"client. To stop being asked for a whole class of calls, see `dodo trust --help`.")
}

func (p *program) denyCommand() *cobra.Command {
	return p.decisionCommand("deny", "Deny a call that waits", cmdDeny, "Deny refuses a call. The client may ask again.")
}

func (p *program) decisionCommand(use, short, cmd, long string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: use + " ID", Short: short, Long: long,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := p.decide(c.Context(), cmd, args[0])
			if err != nil {
				return err
			}
			return p.output(asJSON, a)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

// decide asks the servers one after the other: only the one that asked knows the id, and one
// that fails is not in the way of the others.
func (p *program) decide(ctx context.Context, cmd, id string) (a approvalOut, err error) {
	live, err := p.running(ctx, "")
	if err != nil {
		return a, err
	}
	var failed error
	for _, l := range live {
		err := l.Call(ctx, cmd, approvalArgs{ID: id}, &a)
		switch {
		case err == nil, errors.Is(err, contract.ApprovalExpired), errors.Is(err, contract.Conflict):
			return a, err // it is this one's
		case !errors.Is(err, contract.NotFound) && failed == nil:
			failed = err
		}
	}
	if failed != nil {
		return a, failed
	}
	return a, notWaiting()
}

func notWaiting() error {
	return fault.New(contract.NotFound, "no running server waits for an approval of that id").WithHint("`dodo pending` lists what waits")
}

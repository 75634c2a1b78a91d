package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/owner"
	"localmcp/dodo/internal/ground/job"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

// jobOut is one command that a client ran.
type jobOut struct {
	ID          string     `json:"jobId"`
	Status      string     `json:"status"`
	Principal   string     `json:"principal"`
	Program     string     `json:"program"`
	Args        []string   `json:"args"`
	ArgsCut     bool       `json:"argsTruncated"`
	Cwd         string     `json:"cwd"`
	Task        string     `json:"taskId,omitempty"`
	ExitCode    *int       `json:"exitCode"`
	Signal      string     `json:"signal,omitempty"`
	Isolation   string     `json:"isolation"`
	Notes       []string   `json:"notes"`
	Created     time.Time  `json:"createdAt"`
	Ended       *time.Time `json:"endedAt"`
	StdoutBytes int64      `json:"stdoutBytes"`
	StderrBytes int64      `json:"stderrBytes"`
}

func shownJob(j job.Job) jobOut {
	o := jobOut{
		ID: j.ID, Status: string(j.Status), Principal: j.Principal, Program: j.Program, Args: j.Args, ArgsCut: j.ArgsCut, Cwd: j.Cwd, Task: j.TaskID,
		ExitCode: j.ExitCode, Signal: j.Signal, Isolation: string(j.Isolation), Notes: j.Notes, Created: j.Created, StdoutBytes: j.StdoutBytes, StderrBytes: j.StderrBytes,
	}
	if !j.Ended.IsZero() {
		o.Ended = &j.Ended
	}
	if o.Args == nil {
		o.Args = []string{}
	}
	if o.Notes == nil {
		o.Notes = []string{}
	}
	return o
}

// Text is the job in words.
func (o jobOut) Text() string {
	how := o.Status
	switch {
	case o.Signal != "":
		how += " " + o.Signal
	case o.ExitCode != nil:
		how += " " + strconv.Itoa(*o.ExitCode)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %-22s %-8s %-12s %s\n", o.ID, o.Created.Local().Format("2006-01-02 15:04:05"), how, orDash(o.Isolation), line(o.Principal), o.command())
	for _, n := range o.Notes {
		b.WriteString(block(n))
	}
	return b.String()
}

// commandMost is how many characters of a command a line of the list has.
const commandMost = 160

// command is the beginning of what ran, on one line.
func (o jobOut) command() string {
	all := strings.Join(append([]string{o.Program}, o.Args...), " ")
	var b strings.Builder
	room := commandMost
	for all != "" {
		_, n := utf8.DecodeRuneInString(all)
		shown := line(all[:n])
		if room -= utf8.RuneCountInString(shown); room < 0 {
			return b.String() + " ..."
		}
		b.WriteString(shown)
		all = all[n:]
	}
	if o.ArgsCut {
		b.WriteString(" ...")
	}
	return b.String()
}

// jobsOut is a list of jobs.
type jobsOut struct {
	Jobs []jobOut `json:"jobs"`
}

// Text is the list in words.
func (o jobsOut) Text() string {
	if len(o.Jobs) == 0 {
		return "No command was run in this workspace.\n"
	}
	var b strings.Builder
	for _, j := range o.Jobs {
		b.WriteString(j.Text())
	}
	return b.String()
}

const mostJobs = 1000

func (p *program) jobsCommand() *cobra.Command {
	var asJSON bool
	var limit int
	var root string
	c := &cobra.Command{
		Use:   "jobs",
		Short: "Show the commands that clients ran in a workspace",
		Long: "Jobs shows the commands of a workspace, the newest first: those that run, and those that ended and are\n" +
			"still kept. Of a long command a line has the beginning; --json has up to 4 KiB of it. `dodo jobs output ID`\n" +
			"prints what one wrote; `dodo jobs cancel ID` ends one.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 || limit > mostJobs {
				return fault.New(cli.Usage, "--limit must be 1 to %d", mostJobs)
			}
			out := jobsOut{Jobs: []jobOut{}}
			err := p.withJobs(c.Context(), root, func(_ *installation, s *job.Service) error {
				list, err := s.List(c.Context(), limit)
				for _, j := range list {
					out.Jobs = append(out.Jobs, shownJob(j))
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
	c.Flags().IntVar(&limit, "limit", 20, "how many jobs")
	c.Flags().StringVar(&root, "root", "", "the workspace's directory (the current one)")
	c.AddCommand(p.jobsOutputCommand(), p.jobsCancelCommand())
	return c
}

// withJobs opens the jobs of a workspace for the owner, without a server.
func (p *program) withJobs(ctx context.Context, root string, f func(*installation, *job.Service) error) error {
	in, err := p.existing(ctx)
	if err != nil {
		return err
	}
	defer in.close(nil)
	if root, err = p.rootOf(root); err != nil {
		return err
	}
	w, err := in.workspaceAt(ctx, root, false)
	if err != nil {
		return err
	}
	return in.jobsOf(ctx, w, func(s *job.Service) error { return f(in, s) })
}

// jobsOf opens the jobs of a workspace to look at them; none can be started.
func (in *installation) jobsOf(ctx context.Context, w state.Workspace, f func(*job.Service) error) error {
	s, err := job.New(ctx, job.Config{State: in.store, WorkspaceID: w.ID, Limits: in.limits()})
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

func (p *program) jobsOutputCommand() *cobra.Command {
	var raw, stderr bool
	var root string
	c := &cobra.Command{
		Use:   "output ID",
		Short: "Print what a command wrote",
		Long: "Output prints what is kept of a command's standard output: what a terminal would show of it, without\n" +
			"control sequences and with keys masked. --raw prints the bytes as they are, which a terminal may obey.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			of := job.Stdout
			if stderr {
				of = job.Stderr
			}
			return p.withJobs(c.Context(), root, func(in *installation, s *job.Service) error {
				err := p.printOutput(c.Context(), s, args[0], of, raw)
				if errors.Is(err, contract.JobNotFound) {
					err = in.notThere(c.Context(), s, args[0])
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&raw, "raw", false, "print the bytes as they are")
	c.Flags().BoolVar(&stderr, "stderr", false, "print standard error instead")
	c.Flags().StringVar(&root, "root", "", "the workspace's directory (the current one)")
	return c
}

// notThere is the fault of a job that the workspace does not have.
func (in *installation) notThere(ctx context.Context, s *job.Service, id string) error {
	at, err := s.Workspace(ctx, id)
	if errors.Is(err, contract.JobNotFound) {
		return fault.New(contract.JobNotFound, "no workspace has a job of that id").WithHint("`dodo jobs --root DIRECTORY` lists those of a workspace; they are forgotten after some days")
	}
	if err != nil {
		return err
	}
	w, err := in.store.Workspace(ctx, at)
	if err != nil {
		return err
	}
	return fault.New(contract.JobNotFound, "the job belongs to another workspace").WithHint("add %s", quoted([]string{"--root", w.Root}))
}

// outputPiece is how much of a stream is read at once.
const outputPiece = 256 << 10

func (p *program) printOutput(ctx context.Context, s *job.Service, id string, of job.Stream, raw bool) error {
	for offset := int64(0); ; {
		piece, err := s.Output(ctx, id, of, offset, outputPiece, raw)
		if err != nil {
			return err
		}
		if offset < piece.TruncatedBefore && piece.TruncatedBefore <= piece.NextOffset { // over the gap, behind the beginning that is kept
			p.streams.Notef("dodo: bytes %d to %d are not kept any more", offset, piece.TruncatedBefore)
		}
		if raw {
			_, err = p.streams.Out.Write(piece.Raw)
		} else {
			err = p.streams.Text(piece.Content)
		}
		if err != nil || piece.NextOffset <= offset {
			return err
		}
		offset = piece.NextOffset
	}
}

func (p *program) jobsCancelCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "cancel ID",
		Short: "End a command and everything it started",
		Long:  "Cancel asks a command and everything it started to end, and ends it five seconds later.",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			live, err := p.running(c.Context(), "")
			if err != nil {
				return err
			}
			out, err := cancelJob(c.Context(), live, args[0])
			if err != nil {
				return err
			}
			return p.output(asJSON, out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

// cancelJob asks every server, of which at most one runs the job.
func cancelJob(ctx context.Context, live []owner.Live, id string) (out canceledOut, err error) {
	err = fault.New(contract.JobNotFound, "no running server has a job of that id").WithHint("`dodo jobs` lists those of a workspace; what has ended cannot be cancelled")
	for _, l := range live {
		switch e := l.Call(ctx, cmdCancelJob, jobArgs{ID: id}, &out); {
		case e == nil:
			return out, nil
		case errors.Is(e, contract.Conflict):
			err = fault.Wrap(contract.Conflict, e, "the server that runs the job does not answer").
				WithHint("try again, or end that process by its id: the job ends with it; `dodo status` shows the servers")
		case !errors.Is(e, contract.JobNotFound) && !errors.Is(e, owner.ErrEnded):
			err = e
		}
	}
	return out, err
}

// cmdCancelJob is the command of the owner's socket.
const cmdCancelJob = "jobs.cancel"

type jobArgs struct {
	ID string `json:"id"`
}

type canceledOut struct {
	ID     string `json:"jobId"`
	Status string `json:"status"`
}

// Text is what became of it.
func (o canceledOut) Text() string {
	if o.Status == "canceling" {
		return o.ID + " is being ended.\n"
	}
	return o.ID + " had ended already: " + o.Status + ".\n"
}

// cancelCommand is what a server does when the owner cancels a job.
func (s *served) cancelCommand(ctx context.Context, raw json.RawMessage) (any, error) {
	var args jobArgs
	if err := jsonv2.Unmarshal(raw, &args, jsonv2.RejectUnknownMembers(true)); err != nil {
		return nil, fault.Wrap(contract.InvalidInput, err, "the id of a job is needed")
	}
	begun := time.Now()
	workspace, status, err := s.host.Cancel(ctx, args.ID)
	if errors.Is(err, contract.JobNotFound) || errors.Is(err, contract.Conflict) {
		return nil, err // it is not this server's: who has it writes it down
	}
	if err := s.byOwner(ctx, "owner.job.cancel", workspace, args.ID, begun, err); err != nil {
		return nil, err
	}
	return canceledOut{ID: args.ID, Status: status}, nil
}

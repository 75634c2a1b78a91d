package job

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/text"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
	"localmcp/internal/keyshape"
	"localmcp/internal/safefile"
)

const (
	// shell runs commands that are text. Nothing more is assumed to be there.
	shell = "/bin/sh"
	// inlineBytes is the size of a text above which it runs from a file (ADR 023).
	inlineBytes = 16 << 10
	// elementBytes and argvBytes bound what a program is given.
	elementBytes = 64 << 10
	argvBytes    = 128 << 10
	// echoBytes is how much of its arguments a job remembers.
	echoBytes = 4 << 10
	// previewBytes is how much of a text the owner is shown before an answer.
	previewBytes = 256 << 10
)

// An order is a command that was looked at and can be started.
type order struct {
	tool, key string
	principal string
	kind      Kind
	task      Recipe // of a task

	args   []string       // the whole argv, the program as an absolute path; not of a text
	file   workspace.Path // the program, when it is one of the workspace
	hash   string         // of that file as it was looked at; empty for any other program
	source string         // the text for the shell
	dir    string         // absolute

	cwd      string // as it is shown
	mode     sandbox.Mode
	network  sandbox.Network
	terminal bool
	stdin    bool
	timeout  time.Duration
	warnings []string
}

// asked is what all that run a command let a caller choose.
type asked struct {
	cwd             string
	sandbox         *bool
	network         bool
	terminal, stdin bool
	timeoutMs       int
}

// draft makes an order of what does not depend on the command itself.
func (s *Service) draft(c contract.Call, tool, key string, a asked) (*order, error) {
	o := &order{tool: tool, key: key, principal: c.Principal.GrantID, kind: Exec, terminal: a.terminal, stdin: a.stdin}
	var err error
	if o.cwd, o.dir, err = s.directory(a.cwd); err != nil {
		return nil, err
	}
	if o.timeout, err = s.timeout(a.timeoutMs); err != nil {
		return nil, err
	}
	return o, s.confine(o, a)
}

// directory judges the one that a command starts in.
func (s *Service) directory(cwd string) (shown, dir string, err error) {
	p, err := workspace.ParsePath(cwd)
	if err != nil {
		return "", "", err
	}
	if p.IsRoot() {
		return ".", s.Tree.Root(), s.Tree.Check()
	}
	in, err := s.Tree.Stat(p)
	if err != nil {
		return "", "", err
	}
	if in.Type != safefile.Directory {
		return "", "", fault.New(contract.PathDenied, "cwd is no directory").WithHint("name the directory that the file is in").With("path", p.Shown())
	}
	return p.String(), filepath.Join(s.Tree.Root(), p.String()), nil
}

// timeout is how long a job may take.
func (s *Service) timeout(ms int) (time.Duration, error) {
	most := s.Limits.JobWallTimeoutMaxMs
	switch {
	case ms == 0:
		ms = min(s.Limits.JobWallTimeoutDefaultMs, most)
	case ms > most:
		return 0, fault.New(contract.InvalidInput, "timeoutMs is above the owner's limit of %d", most).WithHint("ask for at most %d", most)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// confine settles the walls: the caller may ask for more of them than the owner, never for
// fewer.
func (s *Service) confine(o *order, a asked) error {
	o.mode, o.network = s.Mode(), s.Network()
	switch {
	case a.sandbox == nil:
	case *a.sandbox && o.mode != sandbox.Require:
		o.mode = sandbox.Prefer
	case !*a.sandbox && o.mode != sandbox.Off:
		return fault.New(contract.Forbidden, "only the owner can let commands run without the sandbox").
			WithHint("leave sandbox out; the owner decides it with commandSandbox in the configuration")
	}
	switch {
	case !a.network:
		o.network = sandbox.NoNetwork
		if o.mode == sandbox.Off {
			o.mode = sandbox.Prefer // without walls nothing keeps a command from the network
		}
	case o.mode == sandbox.Off:
	case o.network == sandbox.NoNetwork:
		o.warnings = append(o.warnings, "The command has no network: the owner gives none to commands.")
	case o.network == sandbox.Proxy && s.Connect == nil:
		o.network = sandbox.NoNetwork
		o.warnings = append(o.warnings, "The command has no network: there is no proxy here.")
	}
	return nil
}

// text makes it a text for the shell.
func (o *order) text(source string, limits contract.Limits) error {
	switch {
	case strings.ContainsRune(source, 0):
		return nul("command")
	case len(source) > limits.CommandBytes:
		return fault.New(contract.ResourceLimit, "the command has %d bytes, more than the %d allowed", len(source), limits.CommandBytes).
			WithHint("write it to a file and run that, or let the owner choose a larger profile: dodo limits --profile large")
	}
	o.source = source
	return nil
}

// program makes it a program with arguments: one of the trusted path by its bare name, or a
// file of the workspace by its path from cwd on.
func (s *Service) program(ctx context.Context, o *order, name string, args []string) error {
	total := len(name)
	for i, a := range append([]string{name}, args...) {
		if strings.ContainsRune(a, 0) {
			if i == 0 {
				return nul("program")
			}
			return nul(fmt.Sprintf("args[%d]", i-1))
		}
		if len(a) > elementBytes {
			return tooLong("an argument has %d bytes, more than the %d allowed", len(a), elementBytes)
		}
		if i > 0 {
			total += len(a) + 1
		}
	}
	if total > argvBytes {
		return tooLong("the arguments have %d bytes together, more than the %d allowed", total, argvBytes)
	}
	if !strings.Contains(name, "/") {
		file, err := s.Place.Look(name)
		o.args = append([]string{file}, args...)
		return err
	}
	if !strings.HasPrefix(name, "/") {
		name = path.Join(o.cwd, name)
	}
	var err error
	if o.file, err = workspace.ParsePath(name); err != nil {
		return err
	}
	o.args = append([]string{filepath.Join(s.Tree.Root(), o.file.String())}, args...)
	o.hash, err = s.hash(ctx, o.file)
	return err
}

// hash is that of a program of the workspace as it is now.
func (s *Service) hash(ctx context.Context, p workspace.Path) (string, error) {
	f, err := s.Tree.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if f.Info.Mode&0o111 == 0 {
		return "", fault.New(contract.PathDenied, "the file cannot be run").
			WithHint("run it by its interpreter, such as program sh with the file as argument").With("path", p.Shown())
	}
	sum, buf := sha256.New(), make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		sum.Write(buf[:n])
		switch {
		case errors.Is(err, io.EOF):
			return contract.HashSum(sum.Sum(nil)), nil
		case err != nil:
			return "", fmt.Errorf("read a program: %w", err)
		case ctx.Err() != nil:
			return "", ctx.Err()
		}
	}
}

// changed is the fault of a program that is not any more what was looked at, and maybe approved.
func (o *order) changed() error {
	return fault.New(contract.FileChanged, "the program was changed since the call was looked at").
		WithHint("nothing was started; look at the file, then make the call again: the owner's rules are asked about what it is now").
		With("path", o.file.Shown()).Retry()
}

// unchanged holds right before the start that the program is the one that was looked at.
func (s *Service) unchanged(ctx context.Context, o *order) error {
	if o.hash == "" {
		return nil
	}
	now, err := s.hash(ctx, o.file)
	if err == nil && now != o.hash {
		err = o.changed()
	}
	return err
}

func nul(what string) error {
	return fault.New(contract.InvalidInput, "%s has a NUL character", what).WithHint("leave it out: no command can have one; printf makes one where it is needed")
}

func tooLong(format string, args ...any) error {
	return fault.New(contract.ResourceLimit, format, args...).WithHint("put it into a file and give the file's path")
}

// echo is what a job remembers of its command, keys masked.
func (o *order) echo() (program string, args []string, cut bool) {
	all := o.args
	if o.source != "" {
		all = []string{shell, "-c", o.source}
		if len(o.source) > inlineBytes {
			all = []string{shell, o.source}
		}
	}
	room := echoBytes
	args = []string{}
	for _, a := range all[1:] {
		part := clip(a, room)
		masked, _ := keyshape.Mask(a[:min(len(a), len(part)+around)], 0, len(part))
		args = append(args, strings.ToValidUTF8(masked, "\uFFFD"))
		if room -= len(part); len(part) < len(a) {
			cut = true
			break
		}
	}
	return all[0], args, cut
}

// A preview is what the owner is shown before an answer.
type preview struct {
	Command   string   `json:"command,omitempty"`
	Shown     int      `json:"shownBytes,omitempty"` // when it is not all
	Program   string   `json:"program,omitempty"`
	Hash      string   `json:"programHash,omitempty"` // of one of the workspace
	Args      []string `json:"args,omitempty"`
	TaskID    string   `json:"taskId,omitempty"`
	Source    string   `json:"source,omitempty"` // the file that describes the task
	Digest    string   `json:"recipeDigest,omitempty"`
	Bytes     int      `json:"bytes,omitempty"`
	Cwd       string   `json:"cwd"`
	Sandbox   string   `json:"sandbox"`
	Network   string   `json:"network"`
	TimeoutMs int64    `json:"timeoutMs"`
	Terminal  bool     `json:"terminal,omitempty"`
	Stdin     bool     `json:"stdin,omitempty"`
}

func (o *order) preview() preview {
	p := preview{
		Cwd: text.Visible(o.cwd), Sandbox: string(o.mode), Network: string(o.network), TimeoutMs: o.timeout.Milliseconds(),
		Terminal: o.terminal, Stdin: o.stdin, Hash: o.hash,
		TaskID: text.Visible(o.task.ID), Source: text.Visible(o.task.Source), Digest: o.task.RecipeDigest,
	}
	if o.mode == sandbox.Off {
		p.Network = string(sandbox.Host)
	}
	if o.source == "" {
		p.Program = text.Visible(o.args[0])
		for _, a := range o.args[1:] {
			p.Args = append(p.Args, text.Visible(a))
		}
		return p
	}
	part := clip(o.source, previewBytes)
	p.Command, p.Bytes = text.Visible(part), len(o.source)
	if len(part) < len(o.source) {
		p.Shown = len(part)
	}
	return p
}

// summary is one line for the owner, without text of the caller.
func (o *order) summary() string {
	what := fmt.Sprintf("run a shell command of %d bytes", len(o.source))
	switch {
	case o.kind == Task:
		what = "run a task of the workspace"
	case o.source == "":
		what = fmt.Sprintf("run a program with %d arguments", len(o.args)-1)
	}
	return what + o.where()
}

// where is how it runs, for a summary.
func (o *order) where() string {
	if o.mode == sandbox.Off {
		return ", without the sandbox"
	}
	return fmt.Sprintf(", sandbox %s, network %s", o.mode, o.network)
}

// startFault gives the error of a start its code.
func startFault(err error) error {
	if f := new(fault.Error); errors.As(err, &f) {
		return err
	}
	return fmt.Errorf("start a command: %w", err)
}

// room says early whether so many jobs can be started now.
func (s *Service) room(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roomFor(n)
}

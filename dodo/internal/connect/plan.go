package connect

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// The clients.
const (
	ClaudeCode = "claude-code"
	Codex      = "codex"
	Cursor     = "cursor"
)

// Clients are those that dodo can be registered with.
var Clients = []string{ClaudeCode, Codex, Cursor}

// Server is the entry to make.
type Server struct {
	Name    string
	Program string // absolute path
	Args    []string
	Env     map[string]string // what the client must add to the environment
}

// Plan is what registering with a client takes.
type Plan struct {
	Client string
	Argv   []string // the client's own command; nil for Cursor
	File   string   // Cursor's file
	Entry  string   // what goes into it, as JSON

	server Server
	env    map[string]string
}

// Make says what is to be done for a client. env is the user's environment. NOT_FOUND says
// that the client's command is not on the PATH; the plan is good to show even so.
func Make(client string, s Server, env map[string]string) (Plan, error) {
	p := Plan{Client: client, server: s, env: env}
	var program string
	switch client {
	case ClaudeCode:
		program = "claude"
		p.Argv = append(append([]string{program, "mcp", "add", s.Name, "--scope", "user"}, pairs("--env", s.Env)...), "--")
	case Codex:
		program = "codex"
		p.Argv = append(append([]string{program, "mcp", "add", s.Name}, pairs("--env", s.Env)...), "--")
	case Cursor:
		if !filepath.IsAbs(env["HOME"]) {
			return p, fault.New(contract.InvalidInput, "there is no HOME to find Cursor's file in").WithHint("set HOME")
		}
		p.File = filepath.Join(env["HOME"], ".cursor", "mcp.json")
		var err error
		p.Entry, err = entry(s)
		return p, err
	default:
		return p, fault.New(contract.InvalidInput, "the client must be one of %s", strings.Join(Clients, ", "))
	}
	p.Argv = append(append(p.Argv, s.Program), s.Args...)
	path, ok := Find(program, env["PATH"])
	if !ok {
		return p, fault.New(contract.NotFound, "the command %s is not on your PATH", program).WithHint("install the client, or run the command that is shown where it is")
	}
	p.Argv[0] = path
	return p, nil
}

// pairs are the variables as flags, in order.
func pairs(flag string, env map[string]string) (args []string) {
	for k, v := range env {
		args = append(args, k+"="+v)
	}
	slices.Sort(args)
	for i := len(args) - 1; i >= 0; i-- {
		args = slices.Insert(args, i, flag)
	}
	return args
}

// Find is where a program is on a PATH.
func Find(name, path string) (string, bool) {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if st, err := os.Stat(file); filepath.IsAbs(dir) && err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return file, true
		}
	}
	return "", false
}

// Bounds of a client's command.
const (
	commandTime = time.Minute
	maxSaid     = 64 << 10
)

// Do registers. What the client says goes to out. The faults are CONFLICT when there is an
// entry of the name already, and NOT_SUPPORTED for a file that cannot be changed safely.
func (p Plan) Do(ctx context.Context, out io.Writer) error {
	if p.Client == Cursor {
		return addToFile(p.File, p.server)
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	if _, err := p.run(ctx, p.Argv[0], "mcp", "get", p.server.Name); err == nil {
		return fault.New(contract.Conflict, "the client has a server of the name %s already; nothing was changed", p.server.Name).
			WithHint("see it with `%s mcp get %s`; remove it there, or give another --name", filepath.Base(p.Argv[0]), p.server.Name)
	} else if !errors.As(err, new(*exec.ExitError)) {
		return fault.Wrap(contract.NotSupported, err, "the client's command cannot be run").WithHint("run the command that is shown by hand")
	}
	said, err := p.run(ctx, p.Argv...)
	if _, e := out.Write(said); err == nil && e != nil {
		return e
	}
	if err != nil {
		return fault.Wrap(contract.Conflict, err, "the client refused to add the server").WithHint("it says why above")
	}
	return nil
}

// run runs a client's command and returns what it said.
func (p Plan) run(ctx context.Context, argv ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = "/" // no project, so no configuration of one
	for k, v := range p.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var said bytes.Buffer
	cmd.Stdout = &bounded{to: &said}
	cmd.Stderr = cmd.Stdout // one writer: the order stays
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	return said.Bytes(), err
}

// bounded keeps the beginning of what is written.
type bounded struct{ to *bytes.Buffer }

// Write keeps b as far as there is room.
func (w *bounded) Write(b []byte) (int, error) {
	w.to.Write(b[:min(len(b), maxSaid-w.to.Len())])
	return len(b), nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/connect"
	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/surface"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

// connectFlags are the flags of connect.
type connectFlags struct {
	root, tools, name string
	print, yes        bool
}

func (p *program) connectCommand() *cobra.Command {
	var f connectFlags
	c := &cobra.Command{
		Use:   "connect " + strings.Join(connect.Clients, "|"),
		Short: "Register dodo with an AI client on this machine",
		Long: "Connect shows what registers `dodo stdio` with a client, asks, and does it: by the client's own command\n" +
			"for Claude Code and Codex, and by an entry in ~/.cursor/mcp.json for Cursor. Other entries stay as they\n" +
			"are, and one of the same name is never replaced. Claude Code and Codex start dodo in the project they\n" +
			"work on; for Cursor, and wherever you want one directory always, name it with --root.",
		Args:      cobra.ExactArgs(1),
		ValidArgs: connect.Clients,
		RunE:      func(c *cobra.Command, args []string) error { return p.connect(c.Context(), args[0], f) },
	}
	c.Flags().StringVar(&f.root, "root", "", "always serve this directory (for Cursor: the current one)")
	c.Flags().StringVar(&f.tools, "tools", "", "what the client sees: full, compact or hybrid")
	c.Flags().StringVar(&f.name, "name", "dodo", "the server's name in the client")
	c.Flags().BoolVar(&f.print, "print", false, "only show what would be done")
	c.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	return c
}

func (p *program) connect(ctx context.Context, client string, f connectFlags) error {
	s, err := p.entry(client, f)
	if err != nil {
		return err
	}
	plan, err := connect.Make(client, s, p.env)
	absent := errors.Is(err, contract.NotFound) // what can be shown all the same
	if err != nil && !absent {
		return err
	}
	if plan.Argv != nil {
		p.streams.Printf("%s\n", quoted(plan.Argv))
	} else {
		p.streams.Printf("in %s, below \"mcpServers\":\n%s\n", line(plan.File), block(fmt.Sprintf("%q: %s", s.Name, plan.Entry)))
	}
	if f.print {
		return nil
	}
	if absent {
		return err
	}
	if f.root != "" || client == connect.Cursor {
		if err := p.servable(f.root); err != nil {
			return err
		}
	}
	if !f.yes {
		if err := p.confirm(ctx, "Do this?", "--yes"); err != nil {
			return err
		}
	}
	if err := plan.Do(ctx, p.streams.Err); err != nil {
		return err
	}
	p.streams.Notef("%s has dodo as %q. Start it anew, or open a new session.", client, s.Name)
	return nil
}

// serverName is what all clients take for a server's name.
var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// servable refuses a root that the registered server would refuse when the client starts it.
func (p *program) servable(flag string) error {
	root, err := p.rootOf(flag)
	if err != nil {
		return err
	}
	dir, err := config.Dir(p.env)
	if err != nil {
		return err
	}
	tree, err := workspace.Open(root, workspace.Options{Hidden: []string{dir}, Home: p.env["HOME"]})
	if err != nil {
		return fault.From(err).WithHint("name the directory of one project with --root; nothing was registered")
	}
	return tree.Close()
}

// entry is the server as the client will start it. Clients give a server little of the
// environment: where the installation is not at its usual place, that is said too.
func (p *program) entry(client string, f connectFlags) (s connect.Server, err error) {
	if !serverName.MatchString(f.name) {
		return s, fault.New(cli.Usage, "--name must be 1 to 64 letters of ASCII, digits, - and _, and begin with a letter or digit")
	}
	s = connect.Server{Name: f.name, Args: []string{"stdio"}}
	if s.Program, err = p.self(); err != nil {
		return s, err
	}
	if f.root != "" || client == connect.Cursor {
		root, err := p.rootOf(f.root)
		if err != nil {
			return s, err
		}
		s.Args = append(s.Args, "--root", filepath.Clean(root))
	}
	if f.tools != "" {
		if _, ok := surface.ParseKind(f.tools); !ok {
			return s, fault.New(cli.Usage, "--tools must be full, compact or hybrid")
		}
		s.Args = append(s.Args, "--tools", f.tools)
	}
	dir, err := config.Dir(p.env)
	if err != nil {
		return s, err
	}
	if usual, err := config.Dir(map[string]string{"HOME": p.env["HOME"]}); err != nil || usual != dir {
		s.Env = map[string]string{config.DirVariable: dir}
	}
	return s, nil
}

// self is the path of this program: as it stands on the PATH, if it does, so that a link that
// is set to a newer version later is followed then.
func (p *program) self() (string, error) {
	real, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if found, ok := connect.Find("dodo", p.env["PATH"]); ok {
		a, err1 := os.Stat(real)
		b, err2 := os.Stat(found)
		if err1 == nil && err2 == nil && os.SameFile(a, b) {
			return found, nil
		}
	}
	return real, nil
}

// quoted is a command as one types it.
func quoted(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		if words[i] = line(w); w == "" || strings.ContainsAny(w, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
			words[i] = "'" + strings.ReplaceAll(words[i], "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

package main

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/owner"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/text"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

// What the owner's commands have in common.

// existing opens the installation for reading what is there, and makes nothing.
func (p *program) existing(ctx context.Context) (*installation, error) {
	dir, err := config.Dir(p.env)
	if err != nil {
		return nil, err
	}
	c, err := config.Load(dir)
	if err != nil {
		return nil, err
	}
	store, err := state.Open(ctx, dir, state.Options{Existing: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(notRunning, err, "dodo was not used in this installation yet").
			WithHint("register dodo with a client: `dodo connect --help`")
	}
	if err != nil {
		return nil, err
	}
	return &installation{dir: dir, home: p.env["HOME"], config: c, saved: c, store: store}, nil
}

// rootOf is the directory that a command is about: the flag's, or the current one.
func (p *program) rootOf(flag string) (string, error) {
	switch {
	case flag != "" && !filepath.IsAbs(flag):
		return filepath.Join(p.cwd, flag), nil
	case flag != "":
		return flag, nil
	case p.cwd == "":
		return "", noRoot()
	}
	return p.cwd, nil
}

// workspaceAt is the workspace of a root, which need not have been opened before: then it is
// as the next start would make it. When something is to be kept for it, it is noted.
func (in *installation) workspaceAt(ctx context.Context, root string, note bool) (w state.Workspace, err error) {
	tree, err := workspace.Open(root, workspace.Options{Hidden: []string{in.dir}, Home: in.home, AllowUnsafe: true})
	if err != nil {
		return w, err
	}
	defer tree.Close()
	dir, id := tree.Identity(), in.store.WorkspaceID(tree.Root())
	w, err = in.store.Workspace(ctx, id)
	switch {
	case err == nil && w.Dev == dir.Dev && w.Ino == dir.Ino:
		return w, nil
	case err != nil && !errors.Is(err, contract.NotFound):
		return w, err
	case note:
		w, _, err = in.store.OpenWorkspace(ctx, tree.Root(), dir.Dev, dir.Ino, contract.NewID(contract.PrefixBoot, 16))
		return w, err
	}
	return state.Workspace{ID: id, Root: tree.Root(), Dev: dir.Dev, Ino: dir.Ino, Trust: contract.TrustInspect}, nil
}

// servers are the running ones, or those of one root, and the sockets that did not answer.
func (p *program) servers(ctx context.Context, root string) (live []owner.Live, silent []owner.Silent, err error) {
	dir, err := config.Dir(p.env)
	if err != nil {
		return nil, nil, err
	}
	live, silent, err = owner.Discover(ctx, dir)
	if err != nil || root == "" {
		return live, silent, err
	}
	if root, err = p.rootOf(root); err != nil {
		return nil, nil, err
	}
	if real, err := filepath.EvalSymlinks(root); err == nil { // a root that is gone may still be served
		root = real
	}
	root = filepath.Clean(root)
	return slices.DeleteFunc(live, func(l owner.Live) bool { return l.Root != root }), silent, nil
}

// running is servers for a command that needs one.
func (p *program) running(ctx context.Context, root string) ([]owner.Live, error) {
	live, silent, err := p.servers(ctx, root)
	if err != nil {
		return nil, err
	}
	for _, s := range silent {
		p.streams.Notef("dodo: a server did not answer (%s): %v", s.Socket, s.Err)
	}
	if len(live) == 0 && len(silent) > 0 {
		return nil, fault.New(notRunning, "no server answered").
			WithHint("a process that is stopped or hangs cannot: let it go on, or end it by its id; `dodo status` shows what is known of it")
	}
	if len(live) == 0 {
		f := fault.New(notRunning, "no server is running")
		if root != "" {
			f = fault.New(notRunning, "no server is running on that root")
		}
		return nil, f.WithHint("`dodo start`, or a client that starts `dodo stdio`, runs one; `dodo status` shows which run")
	}
	return live, nil
}

// output prints data as JSON or in words.
func (p *program) output(asJSON bool, v interface{ Text() string }) error {
	if asJSON {
		return p.streams.JSON(v)
	}
	return p.streams.Text(v.Text())
}

// confirm asks before something is changed. Where nobody can answer, the flag must.
func (p *program) confirm(ctx context.Context, question, flag string) error {
	if !p.streams.InTerminal {
		return fault.New(cli.Usage, "this needs your word").WithHint("give it with %s", flag)
	}
	answer, err := p.streams.Ask(ctx, question+" [y/N]")
	if err != nil {
		return err
	}
	switch strings.ToLower(answer) {
	case "y", "yes":
		return nil
	}
	return fault.New(cli.Usage, "nothing was changed")
}

// line makes a text from outside one visible line.
func line(s string) string {
	return strings.NewReplacer("\n", `\u{a}`, "\t", `\u{9}`).Replace(text.Visible(s))
}

// block indents a text from outside, so that it cannot end its own block.
func block(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text.Visible(s), "\n"), "\n", "\n    ") + "\n"
}

// orDash stands for nothing in tables.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

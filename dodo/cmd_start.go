package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/httpd"
	"localmcp/dodo/internal/door/surface"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

// startFlags are the flags of start.
type startFlags struct {
	root, tools string
	port        int
	unsafe      bool
	allow, all  bool
	bypass      bool
	quiet       bool
}

func (p *program) startCommand() *cobra.Command {
	var f startFlags
	c := &cobra.Command{
		Use:   "start",
		Short: "Serve a workspace to the clients you let in, over HTTP",
		Long: "Start serves MCP over HTTP on this machine, until you stop it. Clients log in, and each waits until you say\n" +
			"`dodo auth approve`. The directory named with --root is remembered: the next start without one serves it\n" +
			"again. Without any, clients see the tools and can use none yet.\n\n" +
			"`dodo` without a command is the same. Clients elsewhere need an address of yours: set publicUrl.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.start(c.Context(), f, c.Flags().Changed("port")) },
	}
	f.add(c)
	return c
}

// add puts the flags on a command.
func (f *startFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.root, "root", "", "the workspace's `directory`, which is remembered (the remembered one)")
	c.Flags().IntVar(&f.port, "port", 0, "where to listen on this machine; 0: any free `port` (21730, or port of the configuration)")
	c.Flags().BoolVar(&f.unsafe, "allow-unsafe-root", false, "allow a workspace as broad as your home directory; it is not remembered")
	c.Flags().BoolVar(&f.allow, "allow", false, "with --all: clients are trusted in this run, and may fetch pages of the web")
	c.Flags().BoolVar(&f.all, "all", false, "see --allow")
	c.Flags().BoolVar(&f.bypass, "bypass", false, "as --allow --all, and commands of this run are not confined unless they ask for it")
	c.Flags().StringVar(&f.tools, "tools", "", "what clients see: full, compact or hybrid (compact, or toolSurface of the configuration)")
	c.Flags().BoolVar(&f.quiet, "quiet", false, "say nothing but what goes wrong")
}

// check holds the flags against each other.
func (f startFlags) check() (runMode, error) {
	switch {
	case f.allow != f.all:
		return runMode{}, fault.New(cli.Usage, "--allow and --all are given together")
	case f.port < 0 || f.port > 65535:
		return runMode{}, fault.New(cli.Usage, "--port must be 0 to 65535")
	}
	if f.tools != "" {
		if _, ok := surface.ParseKind(f.tools); !ok {
			return runMode{}, fault.New(cli.Usage, "--tools must be full, compact or hybrid")
		}
	}
	return runMode{trusted: f.allow, bypass: f.bypass}, nil
}

// start serves until it is told to end.
func (p *program) start(ctx context.Context, f startFlags, portGiven bool) error {
	mode, err := f.check()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: f.level()}))
	in, err := p.installFor(ctx, mode)
	if err != nil {
		return err
	}
	port := in.config.Port
	if portGiven {
		port = f.port
	}
	l, err := httpd.Listen(port) // first: a start that cannot serve remembers nothing
	if err != nil {
		in.close(log)
		return err
	}
	root, err := p.startRoot(ctx, in, f)
	if err != nil {
		err = errors.Join(err, l.Close())
		in.close(log)
		return err
	}
	kind := surface.Compact
	for _, word := range []string{in.config.ToolSurface, f.tools} {
		if k, ok := surface.ParseKind(word); ok {
			kind = k
		}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := in.serve(ctx, opening{root: root, unsafe: f.unsafe, remote: true, surface: kind, log: log})
	if err != nil {
		err = errors.Join(err, l.Close())
		in.close(log)
		return err
	}
	h, err := s.opened(ctx, l, stop)
	if err != nil {
		err = errors.Join(err, l.Close(), s.end(ctx))
		in.close(log)
		return err
	}
	if !f.quiet {
		p.streams.Notef("%s", h.banner())
	}
	return h.serveUntil(ctx)
}

func (f startFlags) level() slog.Level {
	if f.quiet {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// startRoot is the directory to serve: the one that is named, which is registered and
// remembered, or the remembered one when it can be used. Empty: none.
func (p *program) startRoot(ctx context.Context, in *installation, f startFlags) (string, error) {
	if f.root == "" {
		return p.rememberedRoot(ctx, in)
	}
	root, err := p.rootOf(f.root)
	if err != nil || f.unsafe {
		return root, err
	}
	project, err := in.register(ctx, root, "")
	if errors.Is(err, contract.NotSupported) {
		p.streams.Notef("dodo: the directory is served and not remembered: %v", err)
		return root, nil
	}
	if err != nil || in.saved.StartupProject == project.ID {
		return project.Root, err
	}
	_, err = config.Update(ctx, in.dir, func(c *config.Config) error {
		c.StartupProject = project.ID
		return nil
	})
	return project.Root, err
}

func (p *program) rememberedRoot(ctx context.Context, in *installation) (string, error) {
	id := in.saved.StartupProject
	if id == "" {
		return "", nil
	}
	project, err := in.store.Project(ctx, id)
	if err != nil && !errors.Is(err, contract.NotFound) {
		return "", err
	}
	if r := project.Readiness(); err != nil || r != state.Ready {
		p.streams.Notef("dodo: the remembered project cannot be served: %s. Name a directory with --root.", orDash(strings.TrimSpace(fmt.Sprint(r, " ", line(project.Root)))))
		return "", nil
	}
	return project.Root, nil
}

package main

import (
	"context"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"localmcp/internal/cli"
	"localmcp/internal/confine"
	"localmcp/internal/fault"
	"localmcp/internal/op"
	"localmcp/mooncite/internal/evidence"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt ends what does not listen
	status := run(ctx, os.Args[1:], os.Environ(), cli.Std(os.Getenv))
	stop()
	os.Exit(status)
}

// Exit statuses.
const (
	exitUsage        = 2
	exitDegraded     = 3
	exitInconclusive = 4
	exitConfinement  = 78
)

var codes = cli.Codes{
	Exit: map[fault.Code]int{
		evidence.CodeUsage:       exitUsage,
		evidence.CodeConfirm:     exitUsage,
		op.InvalidArgument:       exitUsage,
		evidence.CodeUnavailable: exitInconclusive,
		confine.Refused:          exitConfinement,
	},
	Help: []cli.Meaning{
		{Status: 0, Text: "done; for recall and inspect: a conclusive answer"},
		{Status: 1, Text: "an error: it could not be done"},
		{Status: exitUsage, Text: "a wrong call, a scope that cannot be used, or a confirmation is missing"},
		{Status: exitDegraded, Text: "works, but some sources cannot be read as they stand"},
		{Status: exitInconclusive, Text: "unavailable, nothing indexed has this id, or no conclusive answer"},
		{Status: exitConfinement, Text: "the kernel does not confine the program as it must; no history was read"},
	},
}

// A program is what every command is given.
type program struct {
	env     map[string]string
	streams *cli.Streams
	strict  bool // only full confinement will do
}

// run is main without the process: it returns the exit status.
func run(ctx context.Context, args, environ []string, streams *cli.Streams) int {
	p := &program{env: map[string]string{}, streams: streams}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			p.env[k] = v
		}
	}
	return cli.Run(ctx, p.root(), args, streams, codes)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "mooncite",
		Short: "Find and verify what was said in past AI conversations",
		Long: "Mooncite indexes the histories of Pi, OMP, Claude Code, Codex and ChatGPT exports on this\n" +
			"machine, finds text in them, and re-reads the source bytes before it calls a citation verified.\n" +
			"Histories are only ever read. Nothing is sent anywhere.",
	}
	root.PersistentFlags().BoolVar(&p.streams.Verbose, "verbose", false, "show the causes of failures")
	root.AddCommand(
		p.serveCommand(),
		p.recallCommand(),
		p.inspectCommand(),
		p.statusCommand(),
		p.rebuildCommand(),
		p.sourceCommand(),
		p.forgetCommand(),
		p.installCommand(),
		p.disableCommand(),
		p.uninstallCommand(),
		p.purgeCommand(),
		p.memoryCommand(),
		p.versionCommand(),
	)
	root.AddCommand(p.probes()...)
	return root
}

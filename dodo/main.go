package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt ends what does not listen
	status := run(ctx, os.Args[1:], os.Environ(), cli.Std(os.Getenv))
	stop()
	os.Exit(status)
}

// exitNotReady is the status for what needs a running server, or an installation, that is
// not there.
const exitNotReady = 2

// notRunning is the code of a command that needs a running server when there is none.
const notRunning fault.Code = "not_running"

var codes = cli.Codes{
	Exit:  map[fault.Code]int{notRunning: exitNotReady},
	Usage: 1,
	Help: []cli.Meaning{
		{Status: 0, Text: "done"},
		{Status: 1, Text: "refused, failed, or typed wrong"},
		{Status: exitNotReady, Text: "no running server, or not ready"},
	},
}

// A program is what every command is given.
type program struct {
	env     map[string]string
	cwd     string // where it was called, before anything else happened
	streams *cli.Streams
}

// run is main without the process: it returns the exit status.
func run(ctx context.Context, args, environ []string, streams *cli.Streams) int {
	p := &program{env: map[string]string{}, streams: streams}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			p.env[k] = v
		}
	}
	p.cwd, _ = os.Getwd() // without one, commands that need it ask for --root
	return cli.Run(ctx, p.root(), args, streams, codes)
}

// environ is the environment the program was given, NAME=value.
func (p *program) environ() (list []string) {
	for k, v := range p.env {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "dodo",
		Short: "Let AI clients work on a workspace of yours, under your rules",
		Long: "Dodo gives AI clients tools for one directory that you choose. Every change of a file is\n" +
			"journaled and can be taken back; what clients may do is up to you.",
	}
	root.PersistentFlags().BoolVar(&p.streams.Verbose, "verbose", false, "show the causes of failures")
	root.AddCommand(
		p.stdioCommand(),
		p.statusCommand(),
		p.stopCommand(),
		p.pendingCommand(),
		p.approveCommand(),
		p.denyCommand(),
		p.trustCommand(),
		p.accessModeCommand(),
		p.accessCommand(),
		p.auditCommand(),
		p.limitsCommand(),
		p.configCommand(),
		p.projectCommand(),
		p.connectCommand(),
		p.doctorCommand(),
		p.changesCommand(),
		p.rollbackCommand(),
		p.jobsCommand(),
		p.recoverCommand(),
		p.scheduleCommand(),
		p.versionCommand(),
	)
	return root
}

// noRoot says that the directory to work on is not known.
func noRoot() error {
	return fault.New(contract.NotFound, "the current directory cannot be found").WithHint("name the workspace with --root")
}

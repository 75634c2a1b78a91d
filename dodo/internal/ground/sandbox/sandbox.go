package sandbox

import (
	"net"
	"os"
)

// Isolation is how well a command is confined.
type Isolation string

// The levels, from the best on.
const (
	// Full: namespaces, an allow-list root, Landlock and a filter, all made by dodo.
	Full Isolation = "full"
	// Bwrap: the same walls, the namespaces made by bubblewrap.
	Bwrap Isolation = "bwrap"
	// Reduced: Landlock and a filter without namespaces: no network at all, and what the
	// system shows of other processes can be seen.
	Reduced Isolation = "reduced"
	// None: the command may do what the user may do.
	None Isolation = "none"
)

// Mode is what the owner, or a caller who wants more, asks of the sandbox.
type Mode string

// The modes.
const (
	Require Mode = "require" // full or bwrap, else NOT_SUPPORTED
	Prefer  Mode = "prefer"  // the best there is, never none
	Off     Mode = "off"     // none
)

// Network is what a command reaches.
type Network string

// The networks.
const (
	NoNetwork Network = "none"  // loopback of its own
	Proxy     Network = "proxy" // and a proxy on it, whose connections [Process.Proxy] accepts
	Host      Network = "host"  // what the machine reaches
)

// A Spec is one command.
type Spec struct {
	// Args are the program's path and its arguments. The path is absolute, and the same
	// inside and outside.
	Args []string
	// Dir is the absolute path of the directory it starts in.
	Dir string
	// Env is its whole environment, NAME=value. HOME, TMPDIR and the proxy variables are
	// set by the sandbox where it has its own, over what stands here.
	Env []string
	// Stdin, Stdout and Stderr are given to it; nil is /dev/null. The caller closes its
	// ends after Start.
	Stdin, Stdout, Stderr *os.File
	// Terminal, when set, gives it a terminal of its own instead, of that size;
	// [Process.Terminal] is the other end.
	Terminal *Size
	// Mode and Network are what it may have; zero values are Require and NoNetwork.
	Mode    Mode
	Network Network
	// ReadOnly lets it change nothing in the workspace.
	ReadOnly bool
	// Script, when set, is the absolute path of a private file outside of the workspace that it
	// can read and run. Full and Bwrap show it at [ScriptPath], so that nothing it says of itself
	// tells where it lies; in Args the path stands for that one.
	Script string
	// Read and Write are more files and directories that it sees, by absolute paths without
	// links and outside of the workspace: what is in Write it may change too, unless ReadOnly
	// is set. Who names them has made sure that the command may have them; what is not there
	// is left out.
	Read, Write []string

	skip string // a step to leave out, for the test that it is missed
}

// ScriptPath is where a command behind walls of its own finds its [Spec.Script], unless
// something that it sees of this machine is there.
const ScriptPath = "/run/dodo/script"

// Size is that of a terminal, in characters.
type Size struct{ Columns, Rows uint16 }

// An Exit is how a command ended.
type Exit struct {
	Code   int    // exit status; -1 when a signal ended it
	Signal string // "SIGKILL"; empty when it ended by itself
	// Notes are risks that are there now and were not before: control files, such as those
	// of git and editors, that the command changed.
	Notes []string
}

// A Process is a command that was started. Its methods may be called by several goroutines.
type Process struct {
	Isolation Isolation
	// Terminal is the caller's end of the terminal, to be closed by the caller; nil without.
	Terminal *os.File
	// Proxy accepts what the command connects to as its proxy, until the process has ended;
	// nil unless the network is Proxy.
	Proxy net.Listener
	// Notes are what the caller should be told of how it runs, such as a network that it
	// asked for and does not have. Without text from outside.
	Notes []string
	// Hidden is how many secret paths of the workspace look empty to it.
	Hidden int

	p process
}

// Pid is that of the outermost process in this machine's numbering, for the owner to see.
func (p *Process) Pid() int { return p.p.pid() }

// Ended is closed when the command and everything that it started is gone: what asks for its
// end then comes too late.
func (p *Process) Ended() <-chan struct{} { return p.p.ended() }

// Wait waits for that, and until it was looked what the command changed.
func (p *Process) Wait() Exit { return p.p.wait() }

// Terminate asks the command and everything that it started to end (SIGTERM).
func (p *Process) Terminate() { p.p.terminate() }

// Interrupt is what Ctrl-C is to a terminal (SIGINT).
func (p *Process) Interrupt() { p.p.interrupt() }

// Kill ends all of it at once.
func (p *Process) Kill() { p.p.kill() }

// process is what differs between the levels.
type process interface {
	pid() int
	ended() <-chan struct{}
	wait() Exit
	terminate()
	interrupt()
	kill()
}

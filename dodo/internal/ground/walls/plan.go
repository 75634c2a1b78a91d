package walls

import "strings"

// A Plan is what the first process is told: everything it needs to build the walls and to
// run one command in them. It travels in memory, not in arguments, which the command could
// read.
type Plan struct {
	Alone   bool     // there are no namespaces
	Wrapped bool     // bubblewrap made the namespaces and the root
	Args    []string // none: a trial, which ends when the walls stand
	Dir     string
	Env     []string
	Size    *Size // of a terminal to be made

	User, Group int // the numbers of the server, which the command keeps

	Loopback bool // bring it up: the network is a namespace of its own
	Proxy    bool // make a listener on it
	NoSetID  bool // the server is root

	Links   []Link
	Mounts  []Mount
	Covers  []Cover  // paths that are to look empty
	Run     []string // Landlock's rules, by paths inside
	Write   []string
	Devices []string

	Limits []Limit

	// Outside is what the server has: by the names of /proc/self/ns, and its root.
	Outside map[string]Identity

	// Skip names a step to leave out: for the test that it is missed.
	Skip string
}

// Size is that of a terminal, in characters.
type Size struct{ Columns, Rows uint16 }

// A Mount shows what is at From at To.
type Mount struct {
	From, To string
	Write    bool `json:",omitzero"`
	Device   bool `json:",omitzero"` // a device file, to be used as one
	Optional bool `json:",omitzero"` // what is not there, or may not be reached, is left out
	// ID, when set, is what must be at From. It is the workspace, or in it, where others
	// move things meanwhile: no link is followed on the way to it.
	ID Identity `json:",omitzero"`
}

// A Link is a symbolic link of the root.
type Link struct{ Name, To string }

// A Cover hides what is at a path, which must be what the server saw there.
type Cover struct {
	Path string
	ID   Identity
}

// A Limit is a bound on each process.
type Limit struct {
	What int
	Most uint64
}

// An Identity tells files and directories apart whatever their names are.
type Identity struct{ Dev, Ino uint64 }

// A Report is what the first process says: when the walls stand; when the command runs, or
// why it does not; how it ended.
type Report struct {
	// Ready comes before the command is run: what it does to the first process must not look
	// as if it had not been run.
	Ready   bool   `json:",omitempty"`
	Started bool   `json:",omitempty"`
	Ended   bool   `json:",omitempty"`
	Exit    int    `json:",omitempty"`
	Signal  int    `json:",omitempty"`
	Step    string `json:",omitempty"` // that failed
	Errno   int    `json:",omitempty"`
	Reason  string `json:",omitempty"`
}

// The steps that callers can do something about. Others are faults of the machine.
const (
	StepRun = "run"
	StepDir = "directory"
	// A secret path was moved while the walls were built.
	StepCover = "secret paths"
	// The workspace, or a repository in it, was moved meanwhile.
	StepMoved = "workspace"
)

const (
	HelperName = "dodo-sandbox"   // argv[0] of the first process
	InsideName = "/.dodo-sandbox" // the same, and its path, where bubblewrap started it
	ControlFD  = 3                // where it finds the socket to the server
	ExitFailed = 125              // its status when the walls could not be built

	LargestReport = 4 << 10
)

// Environment is all that the first process has of one. It has little to do at a time: with
// one thread that runs Go it is there sooner.
func Environment() []string { return []string{"GOMAXPROCS=1"} }

// The orders that the server gives on the socket. Its end is an order too: to end at once.
const (
	OrderBuild     = 'b' // with the plan: comes first, and once
	OrderTerminate = 't'
	OrderInterrupt = 'i'
)

// SetEnv sets a variable in an environment.
func SetEnv(env []string, name, value string) []string {
	out := env[:0:0]
	for _, kv := range env {
		if len(kv) <= len(name) || kv[:len(name)] != name || kv[len(name)] != '=' {
			out = append(out, kv)
		}
	}
	return append(out, name+"="+value)
}

// Within reports whether a path is dir or below it.
func Within(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

package sandbox

// A plan is what the helper is told: everything it needs to build the walls and to run one
// command in them. It travels in memory, not in arguments, which the command could read.
type plan struct {
	Level Isolation
	Args  []string // none: a trial, which ends when the walls stand
	Dir   string
	Env   []string
	Size  *Size // of a terminal to be made

	Loopback bool // bring it up: the network is a namespace of its own
	Proxy    bool // make a listener on it
	NoSetID  bool // the server is root

	Links   []link
	Mounts  []mount
	Covers  []cover  // paths that are to look empty
	Run     []string // Landlock's rules, by paths inside
	Write   []string
	Devices []string

	Limits []limit

	// Outside is what the server has: by the names of /proc/self/ns, and its root.
	Outside map[string]identity

	// Skip names a step to leave out: for the test that the helper sees so.
	Skip string

	empty   string // a file, which bubblewrap shows in the place of others
	emptied int    // how many of Covers are not for a secret

	group string // a directory of the cgroup tree to make a group in; empty is none
}

// A mount shows what is at From at To.
type mount struct {
	From, To string
	Write    bool
	Device   bool // a device file, to be used as one
	Optional bool // what is not there, or may not be reached, is left out
	// ID, when set, is what must be at From. It is the workspace, or in it, where others
	// move things meanwhile: no link is followed on the way to it.
	ID identity
}

// A link is a symbolic link of the root.
type link struct{ Name, To string }

// A limit is a bound on each process.
type limit struct {
	What int
	Most uint64
}

// A report is what the helper says: when the walls stand; when the command runs, or why it
// does not; how it ended.
type report struct {
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
	stepRun = "run"
	stepDir = "directory"
	// A secret path was moved while the walls were built.
	stepCover = "secret paths"
	// The workspace, or a repository in it, was moved meanwhile.
	stepMoved = "workspace"
)

const (
	helperName = "dodo-sandbox" // argv[0] of the helper
	controlFD  = 3              // where it finds the socket to the server
	planFD     = 4              // where it finds its plan
	exitFailed = 125            // its status when the walls could not be built

	largestReport = 4 << 10
)

// The orders that the server gives on the socket. Its end is an order too: to end at once.
const (
	orderTerminate = 't'
	orderInterrupt = 'i'
)

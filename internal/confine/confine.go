package confine

import "localmcp/internal/fault"

// Codes of this package.
const (
	// NotSupported is the code of what this system cannot do at all.
	NotSupported fault.Code = "NOT_SUPPORTED"
	// Refused is the code of a confinement that could not be made, or that did not hold
	// when it was tried.
	Refused fault.Code = "confinement"
	// Died is the code of a worker that was killed.
	Died fault.Code = "worker_died"
)

// A Policy says what the process may still do. Everything else that a program does to
// the world outside of it is denied: sockets, programs, other processes, mounts.
type Policy struct {
	// Read are directories that may be read with all below them, by absolute paths
	// without symbolic links. One that is not there, or has become a link, is left out.
	Read []string
	// Write are directories whose files may also be made, changed, renamed and removed.
	// They must be there.
	Write []string
	// System are files and directories to read that a system may lack; links are followed.
	System []string
	// Supervisor leaves what [Supervise] needs: the program may start itself again, and
	// reading is not restricted, because no worker can ever read more than its supervisor.
	Supervisor bool
}

// Level says how much of what [Self] asks for the kernel can enforce.
type Level string

// The levels. The filter is always complete; they differ in Landlock.
const (
	// Full: every access to files that Self restricts is known to the kernel, as are TCP,
	// device ioctls, abstract sockets and signals (Landlock ABI 6 and later).
	Full Level = "full"
	// Partial: Landlock is there and older than that.
	Partial Level = "partial-landlock"
	// None: there is no Landlock; files are protected by their permissions alone.
	None Level = "no-landlock"
)

// State is what [Self] achieved.
type State struct {
	Level       Level
	LandlockABI int // 0: no Landlock
	Seccomp     bool
	// Held are what [Policy.Read] and [Policy.System] named and rules stand for, by their
	// paths. A rule belongs to the directory that was there, not to its name.
	Held map[string]ID
}

// ID tells directories apart.
type ID struct{ Dev, Ino uint64 }

// Attempt is one thing that [Try] tried.
type Attempt struct {
	Name   string `json:"name"`
	Denied bool   `json:"denied"`
	Err    string `json:"error"` // what the kernel answered; "" when it let it happen
}

// Trial says what [Try] tries besides what no policy allows.
type Trial struct {
	Outside []string // files and directories that must not open for reading
	Sources []string // directories in which no file must be made
}

package job

import (
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// Status is how a job stands.
type Status string

// The statuses. All but the first are final.
const (
	Running       Status = "running"
	Exited        Status = "exited"
	Canceled      Status = "canceled"
	TimedOut      Status = "timed_out"
	FailedToStart Status = "failed_to_start"
	Interrupted   Status = "interrupted_on_restart"
)

// Kind is what a job was made from.
type Kind string

// The kinds.
const (
	Exec Kind = "exec" // a command of a caller
	Task Kind = "task" // a recipe of the workspace
)

// Stream is one of the two outputs of a job.
type Stream string

// The streams. A terminal has the first alone.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

const (
	// killAfter is how long a job that was asked to end has before it is killed.
	killAfter = 5 * time.Second
	// stopAfter is the same while the server ends, which must be quick.
	stopAfter = time.Second
	// stopWait bounds the end of all jobs then.
	stopWait = 3 * time.Second
	// stopLast is for noting how those ended that had to be killed then.
	stopLast = 150 * time.Millisecond
	// drain is how long output is waited for that something else than the job still holds open.
	drain = 2 * time.Second
	// reportEvery is how often a waiting caller hears of it.
	reportEvery = 5 * time.Second
	// lookEvery is how often the job of another process is looked at.
	lookEvery = 250 * time.Millisecond
)

// stamp is a time as answers show it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// stampOf is the same of a time that may not have come.
func stampOf(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

func notFound(id string) error {
	return fault.New(contract.JobNotFound, "there is no job with this id in the workspace").
		WithHint("list_jobs shows the jobs and their ids; they are forgotten after some days").With("jobId", clip(id, 128))
}

func notRunning(r *record) error {
	return fault.New(contract.JobNotRunning, "the job is over: %s", r.Status).WithHint("job_output shows what it wrote").With("jobId", r.ID)
}

// elsewhere is the fault of a job that another server of the workspace runs; also says what
// more there is to do than to let the owner end it.
func elsewhere(r *record, also string) error {
	return fault.New(contract.Conflict, "another dodo server runs the job, and it alone can reach it").
		WithHint("%sthe owner can end it: dodo jobs cancel %s", also, r.ID).With("jobId", r.ID)
}

func stopping() error {
	return fault.New(contract.Conflict, "dodo is shutting down and starts no more commands").WithHint("start it again, then make the call again")
}

// clip cuts a text to so many bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

func notYours(id string) error {
	return fault.New(contract.Forbidden, "this job was started by another client").WithHint("list_jobs shows your own").With("jobId", id)
}

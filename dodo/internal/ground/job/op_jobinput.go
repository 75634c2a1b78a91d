package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/text"
	"localmcp/internal/fault"
)

type jobInputIn struct {
	JobID      string `json:"jobId" maxLength:"128"`
	Data       string `json:"data" maxLength:"65536" doc:"Written as it is; a line needs its own line break."`
	CloseStdin bool   `json:"closeStdin" default:"false" doc:"Then there is no more input. A terminal gets the character that means it."`
}

type jobInputOut struct {
	BytesWritten int  `json:"bytesWritten" doc:"Less than was given when the command does not read."`
	StdinOpen    bool `json:"stdinOpen"`
}

// inputWait is how long a command has to take its input.
const inputWait = 2 * time.Second

// inputBytes is how much input one call has at most.
const inputBytes = 64 << 10

// endOfInput is what a terminal takes for the end of input, at the beginning of a line. In a line
// it ends that alone.
const endOfInput = "\x04"

// endsLine are the characters behind which a terminal's line is empty.
const endsLine = "\n\r\x03" + endOfInput

func (s *Service) jobInput() contract.Op {
	d := runs("job_input", "Write to a running command",
		"Writes to the standard input of a job that was started with stdin or terminal.")
	return contract.Do(d, func(ctx context.Context, c contract.Call, in jobInputIn) (contract.Act[jobInputOut], error) {
		var none contract.Act[jobInputOut]
		if len(in.Data) > inputBytes {
			return none, fault.New(contract.ResourceLimit, "the input has %d bytes, more than the %d allowed", len(in.Data), inputBytes).WithHint("send it in several calls")
		}
		if _, err := s.feedable(ctx, c.Principal, in.JobID); err != nil {
			return none, err
		}
		return contract.Act[jobInputOut]{
			Summary: fmt.Sprintf("write %d bytes to a running command", len(in.Data)),
			Preview: map[string]any{"jobId": in.JobID, "data": text.Visible(in.Data), "closeStdin": in.CloseStdin},
			NoTurn:  true,
			Run: func(ctx context.Context) (a contract.Answer[jobInputOut], err error) {
				j, err := s.feedable(ctx, c.Principal, in.JobID)
				if err != nil {
					return a, err
				}
				a.Data.BytesWritten, a.Data.StdinOpen = j.feed(in.Data, in.CloseStdin)
				if a.Data.BytesWritten < len(in.Data) {
					a.Warnings = []string{"The command did not take all of the input: it does not read, or has closed it."}
				}
				a.Ref = in.JobID
				return a, nil
			},
		}, nil
	})
}

// feedable gives a job that takes input from this caller.
func (s *Service) feedable(ctx context.Context, p contract.Principal, id string) (*live, error) {
	r, err := s.visible(ctx, p, id)
	if err != nil {
		return nil, err
	}
	if r.over() {
		return nil, notRunning(r)
	}
	j := s.running(id)
	if j == nil {
		return nil, elsewhere(r, "only the server that started it can write to it: use the client of that one; ")
	}
	begins := time.NewTimer(inputWait)
	defer begins.Stop()
	select {
	case <-j.started:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-begins.C:
		return nil, fault.New(contract.Conflict, "the job is being started and takes no input yet").WithHint("try again soon").With("jobId", id).Retry()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.row.over() {
		return nil, notRunning(&j.row)
	}
	if j.stdin == nil {
		return nil, fault.New(contract.Conflict, "the standard input of this job is closed").
			WithHint("start the command with stdin or terminal to write to it").With("jobId", id)
	}
	return j, nil
}

// feed writes input. A command that does not read does not hold the caller for long.
func (j *live) feed(data string, last bool) (n int, open bool) {
	j.feeding.Lock()
	defer j.feeding.Unlock()
	j.mu.Lock()
	f, terminal := j.stdin, j.proc.Terminal != nil
	j.mu.Unlock()
	if f == nil {
		return 0, false
	}
	whole := len(data)
	if last && terminal {
		if whole > 0 && !strings.Contains(endsLine, data[whole-1:]) || whole == 0 && j.partial {
			data += endOfInput
		}
		data += endOfInput
	}
	_ = f.SetWriteDeadline(time.Now().Add(inputWait)) // where it cannot be set, the job's end ends the write
	n, err := f.WriteString(data)
	if n > 0 {
		j.partial = !strings.Contains(endsLine, data[n-1:n])
	}
	n = min(n, whole)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || last && !terminal {
		j.closeInput()
		return n, false
	}
	return n, true
}

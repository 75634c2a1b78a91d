package job

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/internal/op"
	"localmcp/internal/sqlitedb"
)

// A record is a job as the database has it.
type record struct {
	ID, Workspace, Epoch, Process, Principal, Tool string

	Key       string // idempotency key of the call; empty without
	Kind      Kind
	Program   string
	Args      []string // the beginning of them
	ArgsCut   bool
	Cwd       string
	Recipe    string // id of the task; empty without
	Status    Status
	ExitCode  *int
	Signal    string
	Isolation sandbox.Isolation // empty when it never ran
	Notes     []string

	Created, Started, Ended time.Time
	Timeout                 time.Duration

	OutBytes, ErrBytes int64 // what it wrote
	Kept               int64 // bytes of its output on the disk
}

func (r *record) over() bool { return r.Status != Running }

// columns are those of scan, in its order.
const columns = `id, workspace, epoch, process, principal, tool, coalesce(call_key, ''), kind, program, args, args_cut, cwd, coalesce(recipe, ''), status,
	exit_code, coalesce(signal, ''), coalesce(isolation, ''), notes, created, coalesce(started, 0), coalesce(ended, 0), timeout, out_bytes, err_bytes, kept`

func scan(row func(...any) error) (*record, error) {
	var r record
	var args, notes string
	var created, started, ended, timeout int64
	err := row(&r.ID, &r.Workspace, &r.Epoch, &r.Process, &r.Principal, &r.Tool, &r.Key, &r.Kind, &r.Program, &args, &r.ArgsCut, &r.Cwd, &r.Recipe, &r.Status,
		&r.ExitCode, &r.Signal, &r.Isolation, &notes, &created, &started, &ended, &timeout, &r.OutBytes, &r.ErrBytes, &r.Kept)
	if err != nil {
		return nil, err
	}
	for text, list := range map[string]*[]string{args: &r.Args, notes: &r.Notes} {
		if err := json.Unmarshal([]byte(text), list); err != nil {
			return nil, fmt.Errorf("the row of a job cannot be read: %w", err)
		}
	}
	r.Created, r.Started, r.Ended = timeOf(created), timeOf(started), timeOf(ended)
	r.Timeout = time.Duration(timeout) * time.Millisecond
	return &r, nil
}

// timeOf is a time of the database; 0 is none.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// orNull is a value of a column that may be null.
func orNull[T comparable](v T) any {
	var none T
	if v == none {
		return nil
	}
	return v
}

// insert writes a job down before it is started.
func (s *Service) insert(ctx context.Context, r *record) error {
	args, err := op.Encode(r.Args)
	if err != nil {
		return err
	}
	return s.State.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO jobs (id, workspace, epoch, process, principal, tool, call_key, kind, program, args, args_cut, cwd, recipe,
			status, notes, created, timeout, out_bytes, err_bytes, kept) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '[]', ?, ?, 0, 0, 0)`,
			r.ID, r.Workspace, r.Epoch, r.Process, r.Principal, r.Tool, orNull(r.Key), r.Kind, r.Program, string(args), r.ArgsCut, r.Cwd, orNull(r.Recipe),
			r.Status, r.Created.UnixMilli(), r.Timeout.Milliseconds())
		return err
	})
}

// update writes what is known now. Only a row that runs is changed: a final status stays.
func (s *Service) update(ctx context.Context, r *record) error {
	notes, err := op.Encode(r.Notes)
	if err != nil {
		return err
	}
	var exit any
	if r.ExitCode != nil {
		exit = *r.ExitCode
	}
	ms := func(t time.Time) any {
		if t.IsZero() {
			return nil
		}
		return t.UnixMilli()
	}
	return s.State.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		_, err := c.Exec(ctx, `UPDATE jobs SET status = ?, exit_code = ?, signal = ?, isolation = ?, notes = ?, started = ?, ended = ?,
			out_bytes = ?, err_bytes = ?, kept = ? WHERE id = ? AND status = 'running'`,
			r.Status, exit, orNull(r.Signal), orNull(r.Isolation), string(notes), ms(r.Started), ms(r.Ended), r.OutBytes, r.ErrBytes, r.Kept, r.ID)
		return err
	})
}

// rows reads the jobs that a condition names.
func (s *Service) rows(ctx context.Context, where string, args ...any) (list []*record, err error) {
	err = s.State.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		return c.Each(ctx, "SELECT "+columns+" FROM jobs WHERE "+where, args, func(row func(...any) error) error {
			r, err := scan(row)
			list = append(list, r)
			return err
		})
	})
	return list, err
}

// find gives a job of this workspace as it stands now. A running one whose process is gone
// is marked.
func (s *Service) find(ctx context.Context, id string) (*record, error) {
	if r := s.own(id); r != nil {
		return r, nil
	}
	list, err := s.rows(ctx, "id = ? AND workspace = ?", id, s.WorkspaceID)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, notFound(id)
	}
	return s.settled(ctx, list[0])
}

// settled gives a row that is not running any more when its process is gone.
func (s *Service) settled(ctx context.Context, r *record) (*record, error) {
	if r.over() || r.Process == s.process {
		if own := s.own(r.ID); own != nil {
			return own, nil
		}
		return r, nil
	}
	runs, err := s.State.Lives(r.Process)
	if err != nil || runs {
		return r, err
	}
	// It may have written its end just before it went.
	list, err := s.rows(ctx, "id = ?", r.ID)
	if err != nil || len(list) == 0 || list[0].over() {
		if err == nil && len(list) > 0 {
			r = list[0]
		}
		return r, err
	}
	return r, s.interrupt(ctx, r)
}

// interrupt marks a job whose process is gone, and removes its script.
func (s *Service) interrupt(ctx context.Context, r *record) error {
	r.Status, r.Ended = Interrupted, s.Now()
	r.Notes = append(r.Notes, "The dodo process that ran it ended before it did. It was not run again.")
	switch r.Isolation {
	case "":
		r.Notes = append(r.Notes, "How it was confined was not noted: if it was started, it or what it started may still run.")
	case sandbox.None:
		r.Notes = append(r.Notes, "It ran without the sandbox: it, or what it started, may still run.")
	case sandbox.Reduced:
		r.Notes = append(r.Notes, "It ran without namespaces: what it detached from itself may still run.")
	}
	r.OutBytes, r.ErrBytes, r.Kept = s.spools.sizes(r.ID)
	s.spools.removeScript(r.ID)
	return s.update(ctx, r)
}

// visible gives a job that a caller may see.
func (s *Service) visible(ctx context.Context, p contract.Principal, id string) (*record, error) {
	r, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if !p.Owner && r.Principal != p.GrantID {
		return nil, notYours(id)
	}
	return r, nil
}

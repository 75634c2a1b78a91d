package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
	"localmcp/internal/sqlitedb"
)

const (
	plansName  = "plans"
	planSuffix = ".zst"
	// plansBytes bounds what the contents of all plans that can still be applied take.
	plansBytes = 256 << 20
	// planGrace is how long an expired plan is remembered, to say that it expired.
	planGrace = 24 * time.Hour
)

// plans keeps plans: what they say in the database, the contents they bring in one
// compressed file each beside it.
type plans struct {
	store  *state.Store
	packer *packer
	dir    *safefile.Root
	now    func() time.Time
}

func openPlans(store *state.Store, p *packer, now func() time.Time) (*plans, error) {
	dir, err := privdir.Create(filepath.Join(store.Dir(), plansName), "the directory of plans")
	if err != nil {
		return nil, state.Fault(err)
	}
	return &plans{store: store, packer: p, dir: dir, now: now}, nil
}

// save gives a plan its hash and keeps it until it expires.
func (s *plans) save(ctx context.Context, p *Plan) error {
	if err := s.sweep(ctx); err != nil {
		return err
	}
	var contents []byte
	for i := range p.Files {
		f := &p.Files[i]
		if f.AfterHash == "" || f.Action == Move {
			continue
		}
		part := s.packer.pack(f.after)
		f.body = extent{int64(len(contents)), int64(len(part))}
		contents = append(contents, part...)
	}
	var err error
	if p.Hash, err = p.digest(); err != nil {
		return err
	}
	text, err := contract.Canonical(p.payload())
	if err != nil {
		return err
	}
	if len(contents) > 0 {
		if err := s.dir.WriteFileAtomic(p.ID+planSuffix, contents, 0o600); err != nil {
			return err
		}
	}
	return s.store.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		var used int64
		if _, err := c.Row(ctx, "SELECT coalesce(sum(bytes), 0) FROM plans WHERE used IS NULL AND expires > ?", []any{s.now().UnixMilli()}, &used); err != nil {
			return err
		}
		if used+int64(len(contents)) > plansBytes {
			return fault.New(contract.ResourceLimit, "the plans that wait to be applied take too much room").
				WithHint("apply some of them, or wait until they expire")
		}
		_, err := c.Exec(ctx, "INSERT INTO plans (id, workspace, epoch, principal, hash, payload, bytes, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			p.ID, p.Workspace, p.Epoch, p.Principal, p.Hash, string(text), len(contents), p.Created.UnixMilli(), p.Expires.UnixMilli())
		return err
	})
}

// A stored plan as the database has it, before anything of it is believed.
type storedPlan struct {
	*Plan
	used bool
}

// find reads a plan without its contents. An unknown one gives NOT_FOUND.
func (s *plans) find(ctx context.Context, id string) (storedPlan, error) {
	var workspace, epoch, principal, hash, text string
	var expires int64
	var p storedPlan
	var there bool
	err := s.store.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		there, err = c.Row(ctx, "SELECT workspace, epoch, principal, hash, payload, expires, used IS NOT NULL FROM plans WHERE id = ?", []any{id},
			&workspace, &epoch, &principal, &hash, &text, &expires, &p.used)
		return err
	})
	if err != nil {
		return storedPlan{}, err
	}
	if !there {
		return storedPlan{}, fault.New(contract.NotFound, "there is no plan with this id").
			WithHint("make one with preview_changes; plans end after a while").With("planId", id)
	}
	var in payload
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return storedPlan{}, fmt.Errorf("a stored plan cannot be read: %w", err)
	}
	p.Plan = in.plan(id, hash)
	// What was asked for by column is what the hash is of, or the row was tampered with.
	if workspace != p.Workspace || epoch != p.Epoch || principal != p.Principal || expires != p.Expires.UnixMilli() {
		p.Hash = ""
	}
	return p, nil
}

// fill reads the contents of a plan. A plan whose contents are gone or damaged is expired.
func (s *plans) fill(p *Plan) error {
	var contents []byte
	for i := range p.Files {
		f := &p.Files[i]
		if f.AfterHash == "" || f.Action == Move {
			continue
		}
		if contents == nil {
			var err error
			if contents, err = readAll(s.dir, p.ID+planSuffix); err != nil {
				return contentsGone(p.ID, err)
			}
		}
		end := f.body.Offset + f.body.Length
		if f.body.Offset < 0 || f.body.Length < 0 || end > int64(len(contents)) {
			return contentsGone(p.ID, nil)
		}
		data, err := s.packer.unpack(contents[f.body.Offset:end])
		if err != nil || contract.Hash(data) != f.AfterHash {
			return contentsGone(p.ID, err)
		}
		f.after = data
	}
	return nil
}

func contentsGone(id string, cause error) error {
	return fault.Wrap(contract.PlanExpired, cause, "the contents of this plan are not kept any more").
		WithHint("preview the change again").With("planId", id)
}

// sweep forgets plans that expired, and removes the contents of those and of used ones.
func (s *plans) sweep(ctx context.Context) error {
	list, _, err := s.dir.ReadDir(".")
	if err != nil {
		return fmt.Errorf("list the plans: %w", err)
	}
	now := s.now().UnixMilli()
	live := map[string]bool{}
	err = s.store.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		rows, err := c.Query(ctx, "SELECT id FROM plans WHERE used IS NULL AND expires > ?", now)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			live[id] = true
		}
		return rows.Err()
	})
	if err != nil {
		return err
	}
	for _, e := range list {
		id, ours := strings.CutSuffix(e.Name, planSuffix)
		if !ours || live[id] {
			continue
		}
		if in, err := s.dir.Stat(e.Name); err != nil || s.now().Sub(time.Unix(0, in.MtimeNS)) < time.Minute {
			continue // its row may be on the way
		}
		if err := os.Remove(filepath.Join(s.dir.Path(), e.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the contents of a plan: %w", err)
		}
	}
	old := now - planGrace.Milliseconds()
	var stale bool
	err = s.store.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		stale, err = c.Row(ctx, "SELECT 1 FROM plans WHERE expires < ? LIMIT 1", []any{old}, new(int))
		return err
	})
	if err != nil || !stale {
		return err
	}
	return s.store.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		_, err := c.Exec(ctx, "DELETE FROM plans WHERE expires < ?", old)
		return err
	})
}

package state

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

// A Key names a call whose effect must not happen twice.
type Key struct {
	Key       string // the caller's own
	Principal string // id of the grant
	Workspace string
	Tool      string
}

func (k Key) args() []any { return []any{k.Key, k.Principal, k.Workspace, k.Tool} }

const ofKey = " WHERE key = ? AND principal = ? AND workspace = ? AND tool = ?"

// A Reservation is a key that this process may have the effect of. Exactly one of Complete,
// Release and Keep ends it; without any the key stays reserved, and after the process is gone
// nobody runs the call again. It is for one goroutine.
type Reservation struct {
	s       *Store
	key     Key
	process string
	created int64
	begun   bool // there is a receipt already
}

// Receipt is what a call with this key answered before: nil without a fault when there is
// none. digest is that of the arguments. retention is how long keys are kept. The faults are
// IDEMPOTENCY_CONFLICT for other arguments, CONFLICT (retryable) while the call still runs,
// and RECOVERY_REQUIRED when nobody noted how it ended.
func (s *Store) Receipt(ctx context.Context, k Key, digest string, retention time.Duration) (receipt json.RawMessage, err error) {
	oldest := s.stamp() - retention.Milliseconds()
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		receipt, _, err = s.lookUp(ctx, c, k, digest, oldest)
		return err
	})
	return receipt, err
}

// Reserve takes a key before the effect, on the disk. It answers a reservation, or the
// receipt of an earlier call as [Store.Receipt] does, with the same faults.
func (s *Store) Reserve(ctx context.Context, k Key, digest string, retention time.Duration) (r *Reservation, receipt json.RawMessage, err error) {
	me, err := s.me(ctx)
	if err != nil {
		return nil, nil, err
	}
	now := s.stamp()
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		var found bool
		if receipt, found, err = s.lookUp(ctx, c, k, digest, now-retention.Milliseconds()); err != nil || found {
			return err
		}
		_, err = c.Exec(ctx, `INSERT OR REPLACE INTO idempotency (key, principal, workspace, tool, digest, process, state, created)
			VALUES (?, ?, ?, ?, ?, ?, 'reserved', ?)`, append(k.args(), digest, me, now)...)
		return err
	})
	if err != nil || receipt != nil {
		return nil, receipt, err
	}
	return &Reservation{s: s, key: k, process: me, created: now}, nil, nil
}

// Settle notes of a key that [Store.Receipt] knows no end of what was learned elsewhere: the
// answer, or with a nil receipt that nothing was done, which gives the key back. It answers as
// Receipt does then; a key that was ended meanwhile stays as it is.
func (s *Store) Settle(ctx context.Context, k Key, digest string, retention time.Duration, receipt json.RawMessage) (json.RawMessage, error) {
	oldest := s.stamp() - retention.Milliseconds()
	err := s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		now, _, err := s.lookUp(ctx, c, k, digest, oldest)
		if !errors.Is(err, contract.RecoveryRequired) {
			receipt = now
			return err
		}
		if receipt == nil {
			_, err = c.Exec(ctx, "DELETE FROM idempotency"+ofKey, k.args()...)
			return err
		}
		_, err = c.Exec(ctx, "UPDATE idempotency SET state = 'done', receipt = ?"+ofKey, append([]any{string(receipt)}, k.args()...)...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return receipt, nil
}

// Reserved is when a key was taken; zero when it is not.
func (s *Store) Reserved(ctx context.Context, k Key) (at time.Time, err error) {
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		var ms int64
		found, err := c.Row(ctx, "SELECT created FROM idempotency"+ofKey, k.args(), &ms)
		if at = (time.Time{}); found {
			at = timeOf(ms)
		}
		return err
	})
	return at, err
}

// lookUp finds a key that is not too old. found without a fault comes with a receipt.
func (s *Store) lookUp(ctx context.Context, c *sqlitedb.Conn, k Key, digest string, oldest int64) (receipt json.RawMessage, found bool, err error) {
	var old, process, state string
	var text *string
	found, err = c.Row(ctx, "SELECT digest, process, state, receipt FROM idempotency"+ofKey+" AND created >= ?",
		append(k.args(), oldest), &old, &process, &state, &text)
	switch {
	case err != nil || !found:
		return nil, false, err
	case old != digest:
		return nil, true, fault.New(contract.IdempotencyConflict, "the idempotency key was used for a call with other arguments").
			WithHint("use a new key for a new call")
	case state == "done":
		return json.RawMessage(*text), true, nil
	case state == "reserved":
		runs, err := s.alive(process)
		if err != nil {
			return nil, true, err
		}
		if runs {
			return nil, true, fault.New(contract.Conflict, "a call with this idempotency key is still running").
				WithHint("repeat the same call later; it will answer what that one answers").Retry()
		}
	}
	return nil, true, fault.New(contract.RecoveryRequired, "it was not noted how the call with this idempotency key ended").
		WithHint("look at what it was to change; change_history shows changesets. Use a new key only when it must be done again")
}

// Begun keeps a first answer of a call that has had its effect and goes on: the same call gets
// that from now on, also after a crash. Complete replaces it; after Release and Keep it stays.
func (r *Reservation) Begun(ctx context.Context, receipt json.RawMessage) error {
	err := r.Complete(ctx, receipt)
	r.begun = err == nil
	return err
}

// Complete keeps the answer: the same call gets it again, also after a restart.
func (r *Reservation) Complete(ctx context.Context, receipt json.RawMessage) error {
	return r.end(ctx, "UPDATE idempotency SET state = 'done', receipt = ?", string(receipt))
}

// Release gives the key back: the call failed and had no effect.
func (r *Reservation) Release(ctx context.Context) error {
	if r.begun {
		return nil
	}
	return r.end(ctx, "DELETE FROM idempotency")
}

// Keep leaves the key to nobody: the call may have had a part of its effect.
func (r *Reservation) Keep(ctx context.Context) error {
	if r.begun {
		return nil
	}
	return r.end(ctx, "UPDATE idempotency SET state = 'uncertain'")
}

func (r *Reservation) end(ctx context.Context, query string, first ...any) error {
	now := "reserved"
	if r.begun {
		now = "done"
	}
	return r.s.Write(context.WithoutCancel(ctx), func(ctx context.Context, c *sqlitedb.Conn) error {
		n, err := exec(ctx, c, query+ofKey+" AND state = ? AND process = ? AND created = ?", append(append(first, r.key.args()...), now, r.process, r.created)...)
		if err == nil && n == 0 {
			return fault.New(contract.RecoveryRequired, "the reservation of the idempotency key is gone")
		}
		return err
	})
}

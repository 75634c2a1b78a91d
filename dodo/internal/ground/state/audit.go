package state

import (
	"bytes"
	"context"
	"crypto/sha256"
	"strconv"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/sqlitedb"
)

// Principals of events that no client caused.
const (
	PrincipalOwner = "owner" // by the command line or the owner's page
	PrincipalDodo  = "dodo"  // by the program itself
)

// ResultOK is the result of a call that did what it was asked to do.
const ResultOK = "ok"

// An Event is a row of the audit.
type Event struct {
	ID        int64     // set when it was added; the rows have no gaps
	At        time.Time // when it was added; zero means now
	Request   string    // id of the call
	Principal string    // id of the grant, or one of the principals above
	Workspace string    // id; may be empty
	Tool      string
	Input     string        // the beginning of the digest of the arguments, never the arguments
	Ref       string        // id of what came of it, such as a changeset or an approval
	Duration  time.Duration // kept in microseconds
	Result    string        // ResultOK, or the code of the failure
	Hash      string        // of the row before and of this one; set when it was read
}

// sum is the hash of a row: of the row before it and of its fields, each behind its length,
// so that no two rows say the same.
func (e Event) sum(before []byte) []byte {
	h := sha256.New()
	h.Write(before)
	var b []byte
	for _, field := range []string{
		strconv.FormatInt(e.ID, 10), strconv.FormatInt(e.At.UnixMilli(), 10), e.Request, e.Principal, e.Workspace,
		e.Tool, e.Input, e.Ref, strconv.FormatInt(e.Duration.Microseconds(), 10), e.Result,
	} {
		b = strconv.AppendInt(b, int64(len(field)), 10)
		b = append(append(b, ':'), field...)
	}
	h.Write(b)
	return h.Sum(nil)
}

// Audit adds a row. When it returns nil the row is in the file, and no crash of dodo can
// take it; a power cut may take the last rows, but leaves no gap (ADR 0010).
func (s *Store) Audit(ctx context.Context, e Event) error {
	return s.write(ctx, s.quick, func(ctx context.Context, c *sqlitedb.Conn) error { return s.append(ctx, c, e) })
}

// append adds a row within a transaction.
func (s *Store) append(ctx context.Context, c *sqlitedb.Conn, e Event) error {
	if e.At.IsZero() {
		e.At = s.now()
	}
	var before []byte
	if found, err := c.Row(ctx, `SELECT id, hash FROM audit_ends WHERE "end" = 'head'`, nil, &e.ID, &before); err != nil {
		return err
	} else if !found {
		return damaged("the end of its audit is lost")
	}
	e.ID++
	sum := e.sum(before)
	if _, err := c.Exec(ctx, "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		e.ID, e.At.UnixMilli(), e.Request, e.Principal, e.Workspace, e.Tool, e.Input, e.Ref, e.Duration.Microseconds(), e.Result, sum); err != nil {
		return err
	}
	_, err := c.Exec(ctx, `UPDATE audit_ends SET id = ?, hash = ? WHERE "end" = 'head'`, e.ID, sum)
	return err
}

const auditColumns = "id, at, request, principal, workspace, tool, input, ref, micros, result, hash"

func scanEvent(scan scanner) (e Event, hash []byte, err error) {
	var at, micros int64
	err = scan(&e.ID, &at, &e.Request, &e.Principal, &e.Workspace, &e.Tool, &e.Input, &e.Ref, &micros, &e.Result, &hash)
	e.At, e.Duration = timeOf(at), time.Duration(micros)*time.Microsecond
	return e, hash, err
}

// Events are the last limit rows, the newest first; of one workspace, or of all for "".
func (s *Store) Events(ctx context.Context, workspace string, limit int) (list []Event, err error) {
	query, args := "SELECT "+auditColumns+" FROM audit ORDER BY id DESC LIMIT ?", []any{limit}
	if workspace != "" {
		query, args = "SELECT "+auditColumns+" FROM audit WHERE workspace = ? ORDER BY id DESC LIMIT ?", []any{workspace, limit}
	}
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		return c.Each(ctx, query, args, func(scan scanner) error {
			e, hash, err := scanEvent(scan)
			e.Hash = shown(hash)
			list = append(list, e)
			return err
		})
	})
	return list, err
}

// An Inspection is what verifying the audit found.
type Inspection struct {
	Rows   int    // how many were looked at
	First  int64  // id of the oldest; 0 when there is none
	Last   int64  // id of the newest
	Head   string // hash of the newest row: note it elsewhere, and a rewritten chain shows too
	Broken *Break // the first thing wrong; nil when the chain holds
}

// A Break is where the chain does not hold.
type Break struct {
	ID  int64  // of the row
	Why string // one sentence
}

// verifySlice is how many rows are read at a time: a long read would keep the log from
// being reset.
const verifySlice = 5000

// Verify follows the chain from its anchor to its head. Rows may be added and pruned
// meanwhile.
func (s *Store) Verify(ctx context.Context) (v Inspection, err error) {
	var at int64 // the last row that held
	var hash []byte
	for done := false; !done && err == nil && v.Broken == nil; {
		err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
			ends, err := readEnds(ctx, c)
			if err != nil {
				return err
			}
			if at <= ends.anchorID { // begin, or go on behind what was pruned meanwhile
				at, hash = ends.anchorID, ends.anchorHash
			}
			before := v.Rows
			if err := c.Each(ctx, "SELECT "+auditColumns+" FROM audit WHERE id > ? ORDER BY id LIMIT ?", []any{at, verifySlice}, func(scan scanner) error {
				e, stored, err := scanEvent(scan)
				if err != nil || v.Broken != nil {
					return err
				}
				v.Broken = judge(e, stored, at, hash)
				if v.Broken == nil {
					if v.First == 0 {
						v.First = e.ID
					}
					v.Rows++
					at, hash = e.ID, stored
				}
				return nil
			}); err != nil {
				return err
			}
			done = v.Rows-before < verifySlice
			if done && v.Broken == nil && (at != ends.headID || !bytes.Equal(hash, ends.headHash)) {
				v.Broken = &Break{ID: at + 1, Why: "rows at the end are missing"}
				if at >= ends.headID {
					v.Broken = &Break{ID: at, Why: "the end of the chain is not the one that was noted"}
				}
			}
			return nil
		})
	}
	v.Last, v.Head = at, shown(hash)
	return v, err
}

// judge holds a row against the one before it.
func judge(e Event, stored []byte, at int64, before []byte) *Break {
	switch {
	case e.ID != at+1:
		return &Break{ID: at + 1, Why: "the row is missing"}
	case !bytes.Equal(stored, e.sum(before)):
		return &Break{ID: e.ID, Why: "the row, or the one before it, was changed"}
	}
	return nil
}

type ends struct {
	anchorID, headID     int64
	anchorHash, headHash []byte
}

func readEnds(ctx context.Context, c *sqlitedb.Conn) (e ends, err error) {
	found, err := c.Row(ctx, `SELECT a.id, a.hash, h.id, h.hash FROM audit_ends a, audit_ends h WHERE a."end" = 'anchor' AND h."end" = 'head'`,
		nil, &e.anchorID, &e.anchorHash, &e.headID, &e.headHash)
	if err == nil && !found {
		err = damaged("the ends of its audit are lost")
	}
	return e, err
}

// shown is a hash as it is shown; empty before the first row.
func shown(sum []byte) string {
	if len(sum) == 0 {
		return ""
	}
	return contract.HashSum(sum)
}

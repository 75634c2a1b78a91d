package sqlitedb

import (
	"context"
	"database/sql"
	"errors"
)

// maxStatements bounds what one connection keeps prepared; SQL made at run time
// beyond it is prepared for one use.
const maxStatements = 256

// Conn is a connection inside [DB.Write] or [DB.Read]. It must not be kept. A query
// text is compiled once for each connection. A context that can be cancelled costs a
// goroutine a statement: pass context.WithoutCancel to many small ones and look at
// the context between them.
type Conn struct {
	db    *DB
	sql   *sql.Conn
	stmts map[string]*sql.Stmt
}

// Exec runs a statement that gives no rows.
func (c *Conn) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := c.prepared(ctx, query)
	if err != nil {
		return nil, c.db.classify(err)
	}
	if s == nil {
		r, err := c.sql.ExecContext(ctx, query, args...)
		return r, c.db.classify(err)
	}
	r, err := s.ExecContext(ctx, args...)
	return r, c.db.classify(err)
}

// Query runs a statement that gives rows. The caller closes them and looks at their
// Err; DB.Read and DB.Write give that error its code when it is returned.
func (c *Conn) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := c.prepared(ctx, query)
	if err != nil {
		return nil, c.db.classify(err)
	}
	if s == nil {
		r, err := c.sql.QueryContext(ctx, query, args...)
		return r, c.db.classify(err)
	}
	r, err := s.QueryContext(ctx, args...)
	return r, c.db.classify(err)
}

// Row runs a statement that gives at most one row and scans it into dest. found is
// false when there was none.
func (c *Conn) Row(ctx context.Context, query string, args []any, dest ...any) (found bool, err error) {
	rows, err := c.Query(ctx, query, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	if !rows.Next() {
		return false, c.db.classify(rows.Err())
	}
	if err := rows.Scan(dest...); err != nil {
		return false, c.db.classify(err)
	}
	return true, c.db.classify(rows.Close())
}

// Each runs a statement that gives rows and calls f with the scanner of each, until f fails.
func (c *Conn) Each(ctx context.Context, query string, args []any, f func(scan func(dest ...any) error) error) error {
	rows, err := c.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return c.db.classify(rows.Err())
}

// prepared returns the compiled statement, or nil when there is no room to keep it.
func (c *Conn) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	if len(c.stmts) >= maxStatements {
		return nil, nil
	}
	s, err := c.sql.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	c.stmts[query] = s
	return s, nil
}

// exec runs a statement of this package itself, with the driver's own error.
func (c *Conn) exec(ctx context.Context, query string) error {
	_, err := c.sql.ExecContext(ctx, query)
	return err
}

func (c *Conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.sql.Close())...)
}

package index

import (
	"context"
	"errors"
	"fmt"

	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

// Erase takes text out for good: the spans of the units for which match is true lose
// their text and words and are marked gone, and a file that never held them takes the
// index's place. It returns how many they were. The caller holds the lock.
func (s *Store) Erase(ctx context.Context, units []Unit, match func(*Unit, *Span) bool) (int64, error) {
	h, err := s.current(ctx)
	if err != nil || h == nil {
		return 0, err
	}
	var erased int64
	err = h.db.Write(ctx, func(c *sqlitedb.Conn) error {
		if _, err := c.Exec(ctx, "PRAGMA secure_delete = ON"); err != nil {
			return err
		}
		erased = 0
		if err := publish(ctx, c, func(b *Batch) error {
			for i := range units {
				if err := b.erase(&units[i], match, &erased); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		// Merging all segments drops the words of deleted documents from the file.
		_, err := c.Exec(ctx, "INSERT INTO words (words) VALUES ('optimize')")
		return err
	})
	if err != nil {
		return 0, err
	}
	ctx = context.WithoutCancel(ctx) // traces are worse than a command that ends a little later
	// Free places in pages keep what once stood there: only a new file is clean.
	next, err := s.nextNumber()
	if err != nil {
		return 0, err
	}
	temp := s.buildPath()
	defer removeAll(temp)
	removeAll(temp)
	err = h.db.CopyTo(ctx, temp)
	if err == nil {
		err = s.enforce(ctx, temp, next)
	}
	if err != nil {
		f := fault.From(err)
		return 0, fault.Wrap(f.Code, err, "the text is no longer found, but the index file still holds traces of it: %s", f.Msg).
			WithHint("%s; then run `mooncite rebuild`, which makes a file without them", f.Hint)
	}
	return erased, nil
}

func (b *Batch) erase(u *Unit, match func(*Unit, *Span) bool, erased *int64) error {
	return b.send(job{run: func(ctx context.Context, conn *sqlitedb.Conn) error {
		blocks, err := blocksOf(ctx, conn, u.ID)
		if err != nil {
			return err
		}
		var n int64
		for _, first := range blocks {
			k, err := b.eraseBlock(ctx, conn, u, first, match)
			if err != nil {
				return err
			}
			n += k
		}
		*erased += n
		if _, err := conn.Exec(ctx, "UPDATE units SET spans = spans - ? WHERE id = ?", n, u.ID); err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "UPDATE sources SET spans = spans - ?, pub = ? WHERE id = ?", n, b.number, u.Source)
		return err
	}})
}

func blocksOf(ctx context.Context, conn *sqlitedb.Conn, unit int64) ([]int64, error) {
	rows, err := conn.Query(ctx, "SELECT first FROM blocks WHERE unit = ? ORDER BY first", unit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []int64
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, rows.Err()
}

func (b *Batch) eraseBlock(ctx context.Context, conn *sqlitedb.Conn, u *Unit, first int64, match func(*Unit, *Span) bool) (int64, error) {
	var count int
	var meta, kept []byte
	if found, err := conn.Row(ctx, "SELECT count, meta, text FROM blocks WHERE first = ?", []any{first}, &count, &meta, &kept); err != nil || !found {
		return 0, fmt.Errorf("read block %d: %w", first, errors.Join(err, errDamaged))
	}
	old, err := unpack(nil, kept)
	if err != nil {
		return 0, err
	}
	var spans []Span
	var text []byte
	var n int64
	at := 0
	if err := decodeSpans(meta, count, func(i int, sp *Span) bool {
		x := *sp
		piece := old[min(at, len(old)):min(at+x.Size, len(old))]
		at += x.Size
		if !x.Gone && match(u, &x) {
			if !x.Hidden {
				n++
			}
			x.Gone, x.Size, piece = true, 0, nil
			if _, err = conn.Exec(ctx, dropWord, first+int64(i)); err != nil {
				return false
			}
		}
		spans, text = append(spans, x), append(text, piece...)
		return true
	}); err != nil {
		return 0, err
	}
	if err != nil {
		return 0, err
	}
	_, err = conn.Exec(ctx, "UPDATE blocks SET meta = ?, text = ? WHERE first = ?", encodeSpans(spans), b.pack.pack(nil, text), first)
	return n, err
}

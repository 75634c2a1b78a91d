package index

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/lexis"
)

// floorBatch is how much token text is prepared between two stretches of the clock.
const floorBatch = 32 << 20

// ErrEmpty says that nothing was ever published.
var ErrEmpty = errors.New("nothing is indexed")

// Floor measures the limit that a rebuild is held against: how long one writer takes
// to insert the token text of everything indexed into the same FTS5 table with the
// same settings, and nothing else. It writes into a directory the caller removes.
func (s *Store) Floor(ctx context.Context, dir string) (time.Duration, error) {
	db, err := sqlitedb.Open(ctx, filepath.Join(dir, "floor.sqlite"), options(true))
	if err != nil {
		return 0, err
	}
	var took time.Duration
	err = db.Write(ctx, func(c *sqlitedb.Conn) error {
		if err := tune(ctx, c, bulkHash, bulkMerge); err != nil {
			return err
		}
		return s.Read(ctx, func(snap *Snapshot) error {
			if snap == nil {
				return ErrEmpty
			}
			if took, err = insertAll(context.WithoutCancel(ctx), c, snap); err != nil {
				return err
			}
			began := time.Now()
			_, err = c.Exec(ctx, "INSERT INTO words (words) VALUES ('optimize')")
			took += time.Since(began)
			return err
		})
	})
	began := time.Now()
	if cerr := db.Close(); err == nil {
		err = cerr
	}
	return took + time.Since(began), err
}

func insertAll(ctx context.Context, c *sqlitedb.Conn, snap *Snapshot) (time.Duration, error) {
	var tk lexis.Tokenizer
	var took time.Duration
	type doc struct {
		id    int64
		words string
	}
	var docs []doc
	size := 0
	flush := func() error {
		began := time.Now()
		for i := range docs {
			if _, err := c.Exec(ctx, putWord, docs[i].id, docs[i].words); err != nil {
				return err
			}
		}
		took += time.Since(began)
		docs, size = docs[:0], 0
		return nil
	}
	for doc0 := snap.bottom; doc0 > 0 && doc0 <= snap.top; {
		b, err := snap.Block(doc0)
		if err != nil {
			return 0, err
		}
		if b == nil {
			doc0++
			continue
		}
		u, err := snap.Unit(b.Spans[0].Unit)
		if err != nil || u == nil {
			return 0, err
		}
		for i := range b.Spans {
			text, err := b.Spans[i].Text()
			if err != nil {
				return 0, err
			}
			words, _ := tk.Document(nil, text)
			words = appendFilters(words, snap.sources[u.Source].Origin, &b.Spans[i])
			docs = append(docs, doc{b.First + int64(i), string(words)})
			size += len(words)
		}
		if size >= floorBatch {
			if err := flush(); err != nil {
				return 0, err
			}
		}
		doc0 = b.First + int64(len(b.Spans))
	}
	return took, flush()
}

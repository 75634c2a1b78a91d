package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/lexis"
)

// A Batch is one publication: everything put into it becomes visible together
// when the function it was given to returns nil, or not at all. What is put in passes
// three goroutines: the caller's parses, the filling one makes tokens and packs text,
// the feeding one gives SQLite what is ready.
type Batch struct {
	conn   *sqlitedb.Conn
	jobs   chan job
	done   chan struct{}
	failed chan struct{} // closed after the first failure
	err    error         // set before failed is closed
	fills  chan filling
	filled chan struct{}

	// The filling goroutine's, until it has ended.
	tokens  lexis.Tokenizer
	pack    *packer
	nextDoc int64
	months  map[int64]bool

	nextUnit int64
	nextSrc  int64
	roots    map[string]int64
	projects map[string]int64
	text     int64
	number   int64       // of this publication
	sent     atomic.Bool // anything at all
}

// A job is a full block to store, or any other work in its turn.
type job struct {
	block *block
	run   func(ctx context.Context, conn *sqlitedb.Conn) error
}

type block struct {
	first, unit int64
	count       int
	meta, text  []byte
	words       string // token texts of the spans, one behind the other
	ends        []int  // where each ends; equal to the one before: no words
}

// publish runs f with a batch on a connection that is in a transaction.
func publish(ctx context.Context, conn *sqlitedb.Conn, f func(*Batch) error) error {
	pack, err := newPacker()
	if err != nil {
		return err
	}
	defer pack.enc.Close()
	b := &Batch{conn: conn, pack: pack, jobs: make(chan job, 128), done: make(chan struct{}), failed: make(chan struct{}),
		fills: make(chan filling, 16), filled: make(chan struct{}),
		roots: map[string]int64{}, projects: map[string]int64{}, months: map[int64]bool{}}
	if err := b.counters(ctx); err != nil {
		return err
	}
	go b.feed()
	go b.fill()
	var filled, fed sync.Once
	endFill := func() { filled.Do(func() { close(b.fills); <-b.filled }) }
	endFeed := func() { fed.Do(func() { close(b.jobs); <-b.done }) }
	defer endFeed() // also when f panics
	defer endFill()
	ferr := f(b)
	endFill()
	if ferr == nil && b.sent.Load() {
		ferr = b.close()
	}
	endFeed()
	if b.err != nil {
		return b.err
	}
	return ferr
}

// close stores what belongs to the publication as a whole.
func (b *Batch) close() error {
	for m := range b.months {
		if err := b.exec("INSERT OR IGNORE INTO months (month) VALUES (?)", m); err != nil {
			return err
		}
	}
	return errors.Join(
		b.setFact(factNextDoc, strconv.FormatInt(b.nextDoc, 10)),
		b.setFact(factNumber, strconv.FormatInt(b.number, 10)),
	)
}

func (b *Batch) counters(ctx context.Context) error {
	for _, q := range []struct {
		to  *int64
		sql string
	}{
		{&b.nextDoc, "SELECT coalesce(max(first + count), 1) FROM blocks WHERE first = (SELECT max(first) FROM blocks)"},
		{&b.nextUnit, "SELECT coalesce(max(id), 0) + 1 FROM units"},
		{&b.nextSrc, "SELECT coalesce(max(id), 0) + 1 FROM sources"},
	} {
		if _, err := b.conn.Row(ctx, q.sql, nil, q.to); err != nil {
			return fmt.Errorf("read counters: %w", err)
		}
	}
	// Document numbers are never given twice, not even after the last block was
	// dropped: the words of a dropped document may still be in a segment.
	v, err := fact(ctx, b.conn, factNextDoc)
	if err != nil {
		return err
	}
	if n, _ := strconv.ParseInt(v, 10, 64); n > b.nextDoc {
		b.nextDoc = n
	}
	if v, err = fact(ctx, b.conn, factNumber); err != nil {
		return err
	}
	n, _ := strconv.ParseInt(v, 10, 64)
	b.number = n + 1
	if err := names(ctx, b.conn, "SELECT origin || '/' || digest, id FROM roots", b.roots); err != nil {
		return err
	}
	return names(ctx, b.conn, "SELECT name, id FROM projects", b.projects)
}

func names(ctx context.Context, conn *sqlitedb.Conn, query string, into map[string]int64) error {
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var id int64
		if err := rows.Scan(&name, &id); err != nil {
			return err
		}
		into[name] = id
	}
	return rows.Err()
}

// feed stores jobs in order until the channel is closed. After a failure it only
// drains.
func (b *Batch) feed() {
	defer close(b.done)
	ctx := context.Background()
	for j := range b.jobs {
		if b.err != nil {
			continue
		}
		var err error
		if j.block != nil {
			err = b.store(ctx, j.block)
		} else {
			err = j.run(ctx, b.conn)
		}
		if err != nil {
			b.err = err
			close(b.failed)
		}
	}
}

// The statements every block needs.
const (
	putBlock = "INSERT INTO blocks (first, unit, count, meta, text) VALUES (?, ?, ?, ?, ?)"
	putWord  = "INSERT INTO words (rowid, tokens) VALUES (?, ?)"
	dropWord = "DELETE FROM words WHERE rowid = ?"
)

func (b *Batch) store(ctx context.Context, k *block) error {
	if _, err := b.conn.Exec(ctx, putBlock, k.first, k.unit, k.count, k.meta, k.text); err != nil {
		return fmt.Errorf("store block: %w", err)
	}
	from := 0
	for i, end := range k.ends {
		if end == from {
			continue
		}
		if _, err := b.conn.Exec(ctx, putWord, k.first+int64(i), k.words[from:end]); err != nil {
			return fmt.Errorf("store words: %w", err)
		}
		from = end
	}
	return nil
}

// send queues a job behind all before it.
func (b *Batch) send(j job) error {
	b.sent.Store(true)
	select {
	case <-b.failed:
		return b.err
	case b.jobs <- j:
		return nil
	}
}

func (b *Batch) exec(query string, args ...any) error {
	return b.send(job{run: func(ctx context.Context, conn *sqlitedb.Conn) error {
		_, err := conn.Exec(ctx, query, args...)
		return err
	}})
}

// TextBytes is how much text was put into the batch so far.
func (b *Batch) TextBytes() int64 { return b.text }

// Unit begins or continues a unit of a source. A unit without an ID is new and
// gets one; src likewise. already holds the entries the unit has (see
// [Snapshot.Entries]) so that none is taken twice; nil for a new unit.
func (b *Batch) Unit(src *Source, u *Unit, already *EntrySet, forgotten Forgotten) *Filler {
	if src.ID == 0 {
		src.ID = b.nextSrc
		b.nextSrc++
	}
	u.Source = src.ID
	if u.ID == 0 {
		u.ID = b.nextUnit
		b.nextUnit++
	}
	if already == nil {
		already = &EntrySet{}
	}
	return &Filler{b: b, src: src, unit: u, seen: already, forgotten: forgotten}
}

// PutUnit stores a unit's row as it is now.
func (b *Batch) PutUnit(u *Unit) error {
	var digest []byte
	if u.Digest != [32]byte{} {
		digest = u.Digest[:]
	}
	return b.exec(`INSERT INTO units (id, source, session, start, size, line, digest, spans, records, eligible) VALUES (?, ?, ?, ?, ?, ?, coalesce(?, x''), ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET session = excluded.session, start = excluded.start, size = excluded.size, line = excluded.line,
		digest = excluded.digest, spans = excluded.spans, records = excluded.records, eligible = excluded.eligible`,
		u.ID, u.Source, u.Session, u.Start, u.Size, u.Line, digest, u.Spans, u.Records, u.Eligible)
}

// DropUnit removes a unit with its spans.
func (b *Batch) DropUnit(id int64) error {
	return b.send(job{run: func(ctx context.Context, conn *sqlitedb.Conn) error {
		rows, err := conn.Query(ctx, "SELECT first, count FROM blocks WHERE unit = ?", id)
		if err != nil {
			return err
		}
		var runs [][2]int64
		for rows.Next() {
			var r [2]int64
			if err := rows.Scan(&r[0], &r[1]); err != nil {
				rows.Close()
				return err
			}
			runs = append(runs, r)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		for _, r := range runs {
			for d := r[0]; d < r[0]+r[1]; d++ {
				if _, err := conn.Exec(ctx, dropWord, d); err != nil {
					return fmt.Errorf("drop words: %w", err)
				}
			}
		}
		if _, err := conn.Exec(ctx, "DELETE FROM blocks WHERE unit = ?", id); err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "DELETE FROM units WHERE id = ?", id)
		return err
	}})
}

// PutSource stores a source's row as it is now.
func (b *Batch) PutSource(s *Source) error {
	if s.ID == 0 {
		s.ID = b.nextSrc
		b.nextSrc++
	}
	key := string(s.Origin) + "/" + s.Root
	root, ok := b.roots[key]
	if !ok {
		root = int64(len(b.roots)) + 1
		for _, id := range b.roots {
			root = max(root, id+1)
		}
		b.roots[key] = root
		if err := b.exec("INSERT INTO roots (id, origin, digest) VALUES (?, ?, ?)", root, string(s.Origin), s.Root); err != nil {
			return err
		}
	}
	project, err := b.project(s.Info.Project)
	if err != nil {
		return err
	}
	counts, err := json.Marshal(s.Counts)
	if err != nil {
		return err
	}
	id := s.Identity
	return b.exec(`INSERT INTO sources (id, root, rel, dev, ino, size, mtime, ctime, seen, offset, line, prefix, chained, present, fault, spans,
		session, project, parent, title, leaf, subagent, compact, counts, state, pub)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET dev = excluded.dev, ino = excluded.ino, size = excluded.size, mtime = excluded.mtime, ctime = excluded.ctime, seen = excluded.seen,
		offset = excluded.offset, line = excluded.line, prefix = excluded.prefix, chained = excluded.chained, present = excluded.present,
		fault = excluded.fault, spans = excluded.spans, session = excluded.session, project = excluded.project, parent = excluded.parent,
		title = excluded.title, leaf = excluded.leaf, subagent = excluded.subagent, compact = excluded.compact, counts = excluded.counts, state = excluded.state, pub = excluded.pub`,
		s.ID, root, s.Rel, int64(id.Dev), int64(id.Ino), id.Size, id.MtimeNS, id.CtimeNS, s.SeenNS, s.At.Offset, s.At.Line, append([]byte(nil), s.Prefix[:]...), s.Chained, s.Present, s.Fault, s.Spans,
		s.Info.Session, project, s.Info.Parent, s.Info.Title, s.Info.LastEntry, s.Info.Subagent, s.Info.CompactionLine, string(counts), append([]byte(nil), s.State...), b.number)
}

// DropSource removes a source with its units and spans.
func (b *Batch) DropSource(s *Source, units []Unit) error {
	for i := range units {
		if err := b.DropUnit(units[i].ID); err != nil {
			return err
		}
	}
	if err := b.setFact(factDropped, strconv.FormatInt(b.number, 10)); err != nil {
		return err
	}
	return b.exec("DELETE FROM sources WHERE id = ?", s.ID)
}

func (b *Batch) project(name string) (int64, error) {
	if name == "" {
		return 0, nil
	}
	id, ok := b.projects[name]
	if ok {
		return id, nil
	}
	id = int64(len(b.projects)) + 1
	b.projects[name] = id
	return id, b.exec("INSERT INTO projects (id, name) VALUES (?, ?)", id, name)
}

// setFact stores a named value with the publication.
func (b *Batch) setFact(key, value string) error {
	return b.exec("INSERT INTO facts (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", key, value)
}

// Names of facts.
const (
	factNextDoc = "next_document"
	factNumber  = "publication"     // counts publications
	factDropped = "sources_dropped" // publication that last dropped a source
	factRebuilt = "rebuilt"         // the index was made by a rebuild
	factTokens  = "tokens_version"
)

func fact(ctx context.Context, conn *sqlitedb.Conn, key string) (string, error) {
	var v string
	_, err := conn.Row(ctx, "SELECT value FROM facts WHERE key = ?", []any{key}, &v)
	return v, err
}

// Forgotten says what must not be taken in again.
type Forgotten interface {
	Session(o evidence.Origin, root, session string) bool
	Evidence(id string) bool
	Empty() bool
}

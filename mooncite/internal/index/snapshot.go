package index

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/lexis"
)

// A Snapshot is one state of the index. It is good only inside [Store.Read].
type Snapshot struct {
	ctx  context.Context
	conn *sqlitedb.Conn
	*catalog
}

// A catalog is what is kept in memory of one publication: everything but spans.
// Sources and maps in it are never changed once it is in use.
type catalog struct {
	number   int64
	dropped  int64
	stale    bool
	rebuilt  bool
	sources  map[int64]*Source
	byPath   map[sourceKey]*Source
	projects map[string]int64
	names    map[int64]string
	months   []int64 // newest first
	spans    int64
	top      int64 // highest document number
	bottom   int64

	mu     sync.Mutex // guards what follows
	units  map[int64]*Unit
	blocks map[int64]*Block
	common map[string]int64 // expression of a term with many documents: estimate of how many
	said   *said
}

type sourceKey struct {
	origin    evidence.Origin
	root, rel string
}

// Bounds of what a catalog keeps.
const (
	maxUnits  = 4096
	maxBlocks = 512
	maxCommon = 4096
)

// snapshot brings the catalog up to the connection's state.
func (h *handle) snapshot(ctx context.Context, c *sqlitedb.Conn) (*Snapshot, error) {
	ctx = context.WithoutCancel(ctx)
	v, err := fact(ctx, c, factNumber)
	if err != nil {
		return nil, err
	}
	number, _ := strconv.ParseInt(v, 10, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.catalog == nil || h.catalog.number != number {
		next, err := load(ctx, c, h.catalog, number)
		if err != nil {
			return nil, err
		}
		h.catalog = next
	}
	if h.catalog.stale {
		return nil, ErrStale
	}
	return &Snapshot{ctx: ctx, conn: c, catalog: h.catalog}, nil
}

func load(ctx context.Context, c *sqlitedb.Conn, prev *catalog, number int64) (*catalog, error) {
	k := &catalog{number: number, units: map[int64]*Unit{}, blocks: map[int64]*Block{}, common: map[string]int64{}, said: &said{}}
	v, err := fact(ctx, c, factTokens)
	if err != nil {
		return nil, err
	}
	k.stale = v != "" && v != strconv.Itoa(lexis.Version)
	if v, err = fact(ctx, c, factRebuilt); err != nil {
		return nil, err
	}
	k.rebuilt = v != ""
	if v, err = fact(ctx, c, factDropped); err != nil {
		return nil, err
	}
	k.dropped, _ = strconv.ParseInt(v, 10, 64)
	since := int64(-1)
	k.sources, k.byPath = map[int64]*Source{}, map[sourceKey]*Source{}
	if prev != nil && number > prev.number && k.dropped <= prev.number {
		since = prev.number
		k.said = prev.said
		k.sources, k.byPath = maps.Clone(prev.sources), maps.Clone(prev.byPath)
	}
	k.projects = map[string]int64{}
	if err := names(ctx, c, "SELECT name, id FROM projects", k.projects); err != nil {
		return nil, err
	}
	k.names = make(map[int64]string, len(k.projects))
	for n, id := range k.projects {
		k.names[id] = n
	}
	if err := k.loadSources(ctx, c, since); err != nil {
		return nil, err
	}
	for _, s := range k.sources {
		k.spans += s.Spans
	}
	months := map[string]int64{}
	if err := names(ctx, c, "SELECT CAST(month AS TEXT), month FROM months", months); err != nil {
		return nil, err
	}
	k.months = slices.Sorted(maps.Values(months))
	slices.Reverse(k.months)
	if _, err := c.Row(ctx, "SELECT coalesce(min(first), 0) FROM blocks", nil, &k.bottom); err != nil {
		return nil, err
	}
	_, err = c.Row(ctx, "SELECT first + count - 1 FROM blocks ORDER BY first DESC LIMIT 1", nil, &k.top)
	return k, err
}

func (k *catalog) loadSources(ctx context.Context, c *sqlitedb.Conn, since int64) error {
	rows, err := c.Query(ctx, `SELECT s.id, r.origin, r.digest, s.rel, s.dev, s.ino, s.size, s.mtime, s.ctime, s.seen, s.offset, s.line, s.prefix, s.chained, s.present,
		s.fault, s.spans, s.session, s.project, s.parent, s.title, s.leaf, s.subagent, s.compact, s.counts FROM sources s JOIN roots r ON r.id = s.root WHERE s.pub > ?`, since)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		s := &Source{}
		var dev, ino, project int64
		var prefix, counts []byte
		id := &s.Identity
		if err := rows.Scan(&s.ID, &s.Origin, &s.Root, &s.Rel, &dev, &ino, &id.Size, &id.MtimeNS, &id.CtimeNS, &s.SeenNS, &s.At.Offset, &s.At.Line, &prefix, &s.Chained, &s.Present,
			&s.Fault, &s.Spans, &s.Info.Session, &project, &s.Info.Parent, &s.Info.Title, &s.Info.LastEntry, &s.Info.Subagent, &s.Info.CompactionLine, &counts); err != nil {
			return err
		}
		id.Dev, id.Ino = uint64(dev), uint64(ino)
		copy(s.Prefix[:], prefix)
		s.Info.Project = k.names[project]
		if err := json.Unmarshal(counts, &s.Counts); err != nil {
			return fmt.Errorf("counters of source %d: %w", s.ID, errDamaged)
		}
		k.sources[s.ID] = s
		k.byPath[sourceKey{s.Origin, s.Root, s.Rel}] = s
	}
	return rows.Err()
}

// Number counts publications; it changes with every one.
func (s *Snapshot) Number() int64 { return s.number }

// Rebuilt reports whether the index was made by a rebuild.
func (s *Snapshot) Rebuilt() bool { return s.rebuilt }

// SpanCount is the number of spans in the index.
func (s *Snapshot) SpanCount() int64 { return s.spans }

// Sources returns all sources by id. The map and its values must not be changed.
func (s *Snapshot) Sources() map[int64]*Source { return s.sources }

// SourceAt returns the source at a place, or nil.
func (s *Snapshot) SourceAt(o evidence.Origin, root, rel string) *Source {
	return s.byPath[sourceKey{o, root, rel}]
}

// Project returns the number of a project identity, 0 if the index has none of it,
// and ProjectName the identity of a number.
func (s *Snapshot) Project(name string) int64 { return s.projects[name] }

// ProjectName returns the identity of a project's number.
func (s *Snapshot) ProjectName(id int64) string { return s.names[id] }

// State returns the parser's state saved with a source.
func (s *Snapshot) State(source int64) ([]byte, error) {
	var b []byte
	_, err := s.conn.Row(s.ctx, "SELECT state FROM sources WHERE id = ?", []any{source}, &b)
	return b, err
}

const unitColumns = "SELECT id, source, session, start, size, line, digest, spans, records, eligible FROM units "

func (s *Snapshot) unitsWhere(where string, arg any) ([]Unit, error) {
	rows, err := s.conn.Query(s.ctx, unitColumns+where, arg)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Unit
	for rows.Next() {
		var u Unit
		var digest []byte
		if err := rows.Scan(&u.ID, &u.Source, &u.Session, &u.Start, &u.Size, &u.Line, &digest, &u.Spans, &u.Records, &u.Eligible); err != nil {
			return nil, err
		}
		copy(u.Digest[:], digest)
		out = append(out, u)
	}
	return out, rows.Err()
}

// Units returns the units of a source in the order they were made.
func (s *Snapshot) Units(source int64) ([]Unit, error) {
	return s.unitsWhere("WHERE source = ? ORDER BY id", source)
}

// UnitsOfSession returns the units of a raw session id in all sources.
func (s *Snapshot) UnitsOfSession(session string) ([]Unit, error) {
	return s.unitsWhere("WHERE session = ? ORDER BY id", session)
}

// Unit returns a unit, or nil when there is none of that number.
func (s *Snapshot) Unit(id int64) (*Unit, error) {
	s.mu.Lock()
	u := s.units[id]
	s.mu.Unlock()
	if u != nil {
		return u, nil
	}
	us, err := s.unitsWhere("WHERE id = ?", id)
	if err != nil || len(us) == 0 {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.units) >= maxUnits {
		clear(s.units)
	}
	s.units[id] = &us[0]
	return &us[0], nil
}

// A Block is a run of spans with their texts.
type Block struct {
	First int64
	Spans []Span

	size   int        // bytes of all texts
	mu     sync.Mutex // guards what follows
	packed []byte     // nil: text is there
	text   string
}

// open unpacks the texts once.
func (b *Block) open() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.packed != nil {
		text, err := unpack(make([]byte, 0, b.size), b.packed)
		if err != nil || len(text) != b.size {
			return "", fmt.Errorf("block %d: %w", b.First, errDamaged)
		}
		b.text, b.packed = string(text), nil
	}
	return b.text, nil
}

const blockColumns = "SELECT first, unit, count, meta, text FROM blocks "

// Block returns the block that holds a document, or nil when the index has none.
func (s *Snapshot) Block(doc int64) (*Block, error) {
	return s.blockWhere("WHERE first <= ? ORDER BY first DESC LIMIT 1", doc, doc)
}

// cached returns a block that is in memory. s.mu is held.
func (s *Snapshot) cached(doc int64) *Block {
	for first := doc; first > doc-blockSpans; first-- {
		if b := s.blocks[first]; b != nil {
			if doc < first+int64(len(b.Spans)) {
				return b
			}
			return nil
		}
	}
	return nil
}

func (s *Snapshot) blockWhere(where string, arg, doc int64) (*Block, error) {
	s.mu.Lock()
	b := s.cached(doc)
	s.mu.Unlock()
	if b != nil {
		return b, nil
	}
	var first, unit int64
	var count int
	var meta, kept []byte
	found, err := s.conn.Row(s.ctx, blockColumns+where, []any{arg}, &first, &unit, &count, &meta, &kept)
	if err != nil || !found || doc >= first+int64(count) {
		return nil, err
	}
	if b, err = newBlock(first, unit, count, meta, kept); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.blocks) >= maxBlocks {
		clear(s.blocks)
	}
	s.blocks[first] = b
	return b, nil
}

// newBlock reads a block's metadata; its texts stay packed.
func newBlock(first, unit int64, count int, meta, kept []byte) (*Block, error) {
	b := &Block{First: first, Spans: make([]Span, 0, count), packed: kept}
	if err := decodeSpans(meta, count, func(i int, sp *Span) bool {
		x := *sp
		x.Doc, x.Unit, x.block, x.from = first+int64(i), unit, b, b.size
		b.Spans = append(b.Spans, x)
		b.size += x.Size
		return true
	}); err != nil {
		return nil, err
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("block %d: %w", first, errDamaged)
	}
	return b, nil
}

// Span returns a span, or nil when the index has none of that number.
func (s *Snapshot) Span(doc int64) (*Span, error) {
	b, err := s.Block(doc)
	if err != nil || b == nil {
		return nil, err
	}
	return &b.Spans[doc-b.First], nil
}

// Runs returns the first documents of a unit's blocks in order.
func (s *Snapshot) Runs(unit int64) ([]int64, error) { return blocksOf(s.ctx, s.conn, unit) }

// EachSpan calls yield with the metadata of a unit's spans in order, until it returns
// false. The span is only good during the call.
func (s *Snapshot) EachSpan(unit int64, yield func(*Span) bool) error {
	rows, err := s.conn.Query(s.ctx, "SELECT first, count, meta FROM blocks WHERE unit = ? ORDER BY first", unit)
	if err != nil {
		return err
	}
	defer rows.Close()
	for more := true; more && rows.Next(); {
		var first int64
		var count int
		var meta []byte
		if err := rows.Scan(&first, &count, &meta); err != nil {
			return err
		}
		if err := decodeSpans(meta, count, func(i int, sp *Span) bool {
			x := *sp
			x.Doc, x.Unit = first+int64(i), unit
			more = yield(&x)
			return more
		}); err != nil {
			return fmt.Errorf("block %d: %w", first, err)
		}
	}
	return rows.Err()
}

// Entries returns which entries a unit has.
func (s *Snapshot) Entries(unit int64) (*EntrySet, error) {
	set := &EntrySet{}
	return set, s.EachSpan(unit, func(sp *Span) bool {
		set.add(sp.Entry)
		return true
	})
}

// Neighbour returns the document before (step -1) or after (step 1) one of the same
// unit, or 0 when there is none.
func (s *Snapshot) Neighbour(unit, doc, step int64) (int64, error) {
	b, err := s.Block(doc)
	if err != nil || b == nil {
		return 0, err
	}
	if next := doc + step; next >= b.First && next < b.First+int64(len(b.Spans)) {
		return next, nil
	}
	var first, count int64
	query := "SELECT first, count FROM blocks WHERE unit = ? AND first < ? ORDER BY first DESC LIMIT 1"
	if step > 0 {
		query = "SELECT first, count FROM blocks WHERE unit = ? AND first > ? ORDER BY first LIMIT 1"
	}
	found, err := s.conn.Row(s.ctx, query, []any{unit, b.First}, &first, &count)
	if err != nil || !found {
		return 0, err
	}
	if step > 0 {
		return first, nil
	}
	return first + count - 1, nil
}

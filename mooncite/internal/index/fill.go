package index

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"

	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/transcript"
)

// An EntrySet holds which entries of a unit were taken, by hash.
type EntrySet struct{ m map[uint64]struct{} }

var entrySeed = maphash.MakeSeed()

// add reports whether id was not in the set yet.
func (s *EntrySet) add(id string) bool {
	if s.m == nil {
		s.m = map[uint64]struct{}{}
	}
	h := maphash.String(entrySeed, id)
	if _, ok := s.m[h]; ok {
		return false
	}
	s.m[h] = struct{}{}
	return true
}

// A Filler takes the entries of one unit. Its methods run in the caller's goroutine
// and only queue; the batch's filling goroutine makes blocks of what is queued.
type Filler struct {
	b         *Batch
	src       *Source
	unit      *Unit
	seen      *EntrySet
	forgotten Forgotten

	queue  []queued
	queued int // bytes of text in queue
	added  uint32
	// Duplicates counts entries left out because the unit has one of the same id.
	Duplicates int64

	// The filling goroutine's, until it was waited for.
	spans     []Span
	text      []byte
	words     []byte
	ends      []int
	owners    []uint32 // by document from the first: which entry, counted as they came, it belongs to
	blocks    []run
	docs      int64
	namespace string
	// unsearched counts spans with a part that is too long to be searched.
	unsearched int64
}

// A run is a stored block: its first document and how many it holds.
type run struct {
	first int64
	count int
	owner int // index of the first document's owner
}

// queued is an entry on its way: its spans' metadata as far as they share it.
type queued struct {
	entry transcript.Entry
	base  Span
	owner uint32
}

// Bounds of what is queued before it is handed on.
const (
	queueEntries = 64
	queueBytes   = 64 << 10
)

// Add takes one entry. It is the emit function of a transcript parser.
func (f *Filler) Add(r *transcript.Record, e *transcript.Entry) error {
	owner := f.added
	f.added++
	if len(e.Spans) == 0 {
		return nil
	}
	if !f.seen.add(e.ID) {
		f.Duplicates++
		return nil
	}
	project, err := f.b.project(e.Project)
	if err != nil {
		return err
	}
	q := queued{entry: *e, owner: owner, base: Span{Unit: f.unit.ID, Entry: e.ID, Parent: e.Parent, Off: e.Off, Copy: e.Copy, Project: project, Time: e.Time,
		Line: r.Line - f.unit.Line, Start: r.Start - f.unit.Start, End: r.End - f.unit.Start}}
	copy(q.base.Digest[:], r.Digest[:])
	f.queue = append(f.queue, q)
	for i := range e.Spans {
		f.queued += len(e.Spans[i].Text)
	}
	if len(f.queue) >= queueEntries || f.queued >= queueBytes {
		return f.hand(nil)
	}
	return nil
}

// hand gives the queue to the filling goroutine; then, if not nil, is closed when it is
// done with it and the open block is stored.
func (f *Filler) hand(then chan struct{}) error {
	f.b.text += int64(f.queued)
	w := filling{f: f, queue: f.queue, then: then}
	f.queue, f.queued = nil, 0
	select {
	case <-f.b.failed:
		return f.b.err
	case f.b.fills <- w:
		return nil
	}
}

// settle waits until everything added is in blocks.
func (f *Filler) settle() error {
	then := make(chan struct{})
	if err := f.hand(then); err != nil {
		return err
	}
	select {
	case <-f.b.failed:
		return f.b.err
	case <-then:
		return nil
	}
}

// filling is work of the filling goroutine.
type filling struct {
	f     *Filler
	queue []queued
	then  chan struct{}
}

// fill makes blocks until the channel is closed. After a failure it only drains.
func (b *Batch) fill() {
	defer close(b.filled)
	for w := range b.fills {
		for i := range w.queue {
			w.f.take(&w.queue[i])
		}
		if w.then != nil {
			w.f.seal()
			close(w.then)
		}
		runtime.Gosched() // a request that came in meanwhile goes first
	}
}

// take puts one entry into the open block.
func (f *Filler) take(q *queued) {
	b, e := f.b, &q.entry
	gone := !f.forgotten.Empty() && f.forgotten.Session(f.src.Origin, f.src.Root, e.Session)
	for i := range e.Spans {
		sp := &e.Spans[i]
		if sp.Hidden && sp.Text == "" {
			f.unsearched++
			continue
		}
		if len(f.spans) > 0 && (len(f.text)+len(sp.Text) > blockBytes || len(f.spans) >= blockSpans) {
			f.seal()
		}
		s := q.base
		s.Ordinal, s.Role, s.Class = i, sp.Role, sp.Class
		if s.Kind = sp.Kind; s.Kind == "" {
			s.Kind = e.Kind
		}
		s.Hidden = sp.Hidden
		s.Gone = gone || !f.forgotten.Empty() && f.forgotten.Evidence(f.evidenceID(e, i))
		if !s.Gone {
			if !s.Hidden {
				f.docs++
				s.Size = len(sp.Text)
				f.text = append(f.text, sp.Text...)
			}
			f.words, _ = b.tokens.Document(f.words, sp.Text)
			f.words = appendFilters(f.words, f.src.Origin, &s)
			b.months[monthOf(s.Time)] = true
		}
		f.spans = append(f.spans, s)
		f.ends = append(f.ends, len(f.words))
		f.owners = append(f.owners, q.owner)
	}
}

// Hide takes bytes that hold no entry: their words can be found, so that nothing is
// called absent that may stand there, but they are neither kept nor cited.
func (f *Filler) Hide(r *transcript.Record, id, text string) error {
	en := &transcript.Entry{ID: id, Time: evidence.NoTime, Spans: []transcript.Span{{Text: text, Role: evidence.Unknown, Hidden: true}}}
	added := f.added
	err := f.Add(r, en)
	f.added = added // no entry of the parser's
	return err
}

func (f *Filler) evidenceID(e *transcript.Entry, ordinal int) string {
	if f.namespace == "" {
		f.namespace = evidence.Namespace(f.src.Root, f.src.StoredPath())
	}
	return evidence.EvidenceID(f.src.Origin, f.namespace, e.Session, e.ID, ordinal)
}

// seal hands the open block to the feeding goroutine. A failure there shows at the
// caller's next step.
func (f *Filler) seal() {
	if len(f.spans) == 0 {
		return
	}
	b := f.b
	k := &block{first: b.nextDoc, unit: f.unit.ID, count: len(f.spans), meta: encodeSpans(f.spans), words: string(f.words), ends: f.ends}
	k.text = b.pack.pack(make([]byte, 0, len(f.text)/2+64), f.text)
	f.blocks = append(f.blocks, run{first: k.first, count: k.count, owner: len(f.owners) - k.count})
	b.nextDoc += int64(k.count)
	f.spans, f.text, f.words, f.ends = f.spans[:0], f.text[:0], f.words[:0], make([]int, 0, blockSpans/4)
	_ = b.send(job{block: k})
}

// Finish stores what is left and marks the spans of the entries in off as off the
// current branch. It returns how many spans were taken.
func (f *Filler) Finish(off transcript.Bits) (int64, error) {
	if err := f.settle(); err != nil {
		return 0, err
	}
	for _, k := range f.blocks {
		touched := false
		for _, o := range f.owners[k.owner : k.owner+k.count] {
			touched = touched || off.Has(int(o))
		}
		if !touched {
			continue
		}
		owners := f.owners[k.owner : k.owner+k.count]
		if err := f.b.relabel(k.first, func(i int, _ *Span) bool { return off.Has(int(owners[i])) }); err != nil {
			return 0, err
		}
	}
	f.unit.Spans += f.docs
	f.src.Spans += f.docs
	f.spans, f.text, f.words, f.ends, f.owners = nil, nil, nil, nil, nil // an export has a filler for every conversation
	return f.docs, nil
}

// Unsearched counts the spans of which a part was too long to be searched. It is
// known after Finish.
func (f *Filler) Unsearched() int64 { return f.unsearched }

// Discard takes out again what the filler stored.
func (f *Filler) Discard() error {
	f.queue = nil
	if err := f.settle(); err != nil {
		return err
	}
	for _, k := range f.blocks {
		if err := f.b.dropBlock(k.first, k.count); err != nil {
			return err
		}
	}
	f.blocks = nil
	return nil
}

func (b *Batch) dropBlock(first int64, count int) error {
	return b.send(job{run: func(ctx context.Context, conn *sqlitedb.Conn) error {
		for d := first; d < first+int64(count); d++ {
			if _, err := conn.Exec(ctx, dropWord, d); err != nil {
				return fmt.Errorf("drop words: %w", err)
			}
		}
		_, err := conn.Exec(ctx, "DELETE FROM blocks WHERE first = ?", first)
		return err
	}})
}

// Runs returns the first documents of the blocks stored so far.
func (f *Filler) Runs() []int64 {
	var out []int64
	for _, k := range f.blocks {
		out = append(out, k.first)
	}
	return out
}

// Relabel sets anew which spans of the unit's stored blocks are off the current
// branch, by entry id.
func (b *Batch) Relabel(runs []int64, off func(entry string) bool) error {
	for _, first := range runs {
		if err := b.relabel(first, func(_ int, s *Span) bool { return off(s.Entry) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *Batch) relabel(first int64, off func(i int, s *Span) bool) error {
	return b.send(job{run: func(ctx context.Context, conn *sqlitedb.Conn) error {
		var meta []byte
		var count int
		if found, err := conn.Row(ctx, "SELECT count, meta FROM blocks WHERE first = ?", []any{first}, &count, &meta); err != nil || !found {
			return fmt.Errorf("read block %d: %w", first, errors.Join(err, errDamaged))
		}
		spans := make([]Span, 0, count)
		changed := false
		if err := decodeSpans(meta, count, func(i int, s *Span) bool {
			now := off(i, s)
			changed = changed || now != s.Off
			s2 := *s
			s2.Off = now
			spans = append(spans, s2)
			return true
		}); err != nil {
			return err
		}
		if !changed {
			return nil
		}
		_, err := conn.Exec(ctx, "UPDATE blocks SET meta = ? WHERE first = ?", encodeSpans(spans), first)
		return err
	}})
}

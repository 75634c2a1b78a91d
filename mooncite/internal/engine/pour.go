package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"runtime/debug"
	"strconv"

	"localmcp/internal/fault"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
	"localmcp/mooncite/internal/source"
	"localmcp/mooncite/internal/transcript"
)

// take deals with one change inside a publication. It returns nil when the file could
// not be read now and has to be looked at again; an error ends the publication.
// anew is set in a rebuild, whose index knows no source yet.
func (e *Engine) take(ctx context.Context, b *index.Batch, t todo, anew bool) (*accepted, error) {
	r := &reading{e: e, ctx: ctx, b: b, t: t}
	if !anew {
		if err := r.load(); err != nil {
			return nil, err
		}
	}
	if t.Kind == source.Removed {
		if r.src != nil {
			// What could not be read of it is gone with it; text it gave stays.
			r.src.Present, r.src.Fault, r.src.State = false, "", r.state
			put := b.PutSource
			if r.src.Spans == 0 {
				put = func(src *index.Source) error { return b.DropSource(src, r.units) }
			}
			if err := put(r.src); err != nil {
				return nil, err
			}
		}
		return &accepted{w: t.w, known: source.Known{Rel: t.Rel}, removed: true}, nil
	}
	file, err := t.w.tree.OpenFile(t.Rel)
	if err != nil {
		if errors.Is(err, source.Changed) {
			return nil, nil // the next look sees what took its place
		}
		return r.fail(t.ID, e.now().UnixNano(), err)
	}
	defer file.Close()
	r.file = file
	a, err := r.read()
	var p *poured
	switch {
	case errors.As(err, &p): // the batch itself failed
		return nil, p.err
	case err == nil:
		return a, nil
	case errors.Is(err, source.Changed):
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return r.fail(file.ID, file.SeenNS, err)
}

// poured marks an error of the index, which no other source can mend.
type poured struct{ err error }

func (p *poured) Error() string { return p.err.Error() }
func (p *poured) Unwrap() error { return p.err }

func intoIndex(err error) error {
	if err == nil {
		return nil
	}
	return &poured{err}
}

// A reading is the reading of one file.
type reading struct {
	e     *Engine
	ctx   context.Context
	b     *index.Batch
	t     todo
	file  *source.File
	src   *index.Source // nil: new
	units []index.Unit
	state []byte
	set   *index.EntrySet
	runs  []int64
}

// load takes what the index has of the file.
func (r *reading) load() error {
	root := &r.t.w.root
	return r.e.store.Read(r.ctx, func(s *index.Snapshot) error {
		if s == nil {
			return nil
		}
		found := s.SourceAt(root.Origin, root.Digest, r.t.Rel)
		if found == nil {
			return nil
		}
		own := *found
		own.Counts.Unknown = map[string]int64{}
		for k, v := range found.Counts.Unknown {
			own.Counts.Unknown[k] = v
		}
		r.src = &own
		var err error
		if r.units, err = s.Units(own.ID); err != nil {
			return err
		}
		r.state, err = s.State(own.ID)
		return err
	})
}

// more loads what only growth needs: the entries and blocks of a unit.
func (r *reading) more(unit int64) error {
	return r.e.store.Read(r.ctx, func(s *index.Snapshot) error {
		var err error
		if r.set, err = s.Entries(unit); err != nil {
			return err
		}
		r.runs, err = s.Runs(unit)
		return err
	})
}

// fail keeps what a source had and notes why the file is not read.
func (r *reading) fail(id safefile.Identity, seen int64, cause error) (*accepted, error) {
	root := &r.t.w.root
	if r.src == nil {
		r.src = &index.Source{Origin: root.Origin, Root: root.Digest, Rel: r.t.Rel}
	}
	reason, detail := source.ReadOrParse, "it cannot be read"
	var shape *transcript.ErrUnsupported
	var f *fault.Error
	switch {
	case errors.As(cause, &shape):
		detail = shape.Reason
	case errors.As(cause, &f):
		reason, detail = f.Code, f.Msg
	}
	r.src.Identity, r.src.SeenNS, r.src.Present = id, seen, true
	r.src.Fault, r.src.State = string(reason)+": "+detail, r.state
	if err := r.b.PutSource(r.src); err != nil {
		return nil, err
	}
	return r.done(id, seen), nil
}

func (r *reading) done(id safefile.Identity, seen int64) *accepted {
	return &accepted{w: r.t.w, known: source.Known{Rel: r.t.Rel, ID: id, SeenNS: seen}}
}

// same ends the reading of a file that is as it was. While it is so young that it has
// to be looked at again, nothing is written.
func (r *reading) same() (*accepted, error) {
	if r.t.Kind == source.Recheck && r.src.Present && r.file.ID == r.src.Identity && !source.Settled(r.file.ID, r.file.SeenNS) {
		return r.done(r.file.ID, r.file.SeenNS), nil
	}
	r.src.State = r.state
	return r.store()
}

// store puts the source's row and ends the reading.
func (r *reading) store() (*accepted, error) {
	r.src.Identity, r.src.SeenNS, r.src.Present = r.file.ID, r.file.SeenNS, true
	if err := r.b.PutSource(r.src); err != nil {
		return nil, intoIndex(err)
	}
	return r.done(r.file.ID, r.file.SeenNS), nil
}

// read brings the index up to the file.
func (r *reading) read() (*accepted, error) {
	f := r.t.file()
	shape := r.t.Shape
	switch {
	case r.src == nil || r.src.At.Offset == 0 && r.src.Spans == 0:
		return r.whole(shape)
	case f.Origin == evidence.Pi:
		return r.pi()
	case shape == transcript.Document:
		return r.whole(shape)
	}
	return r.grown(shape)
}

func (t *todo) file() transcript.File { return transcript.File{Origin: t.w.root.Origin, Rel: t.Rel} }

// pi reads a Pi file by its contract: growth of the same file is trusted, anything
// else keeps what there is until a rebuild.
func (r *reading) pi() (*accepted, error) {
	old := r.src.Identity
	same := r.file.ID.SameFile(old)
	switch {
	case r.src.Fault != "" && faultReason(r.src.Fault) == source.Changed:
		return r.same() // stays as it is until a rebuild
	case same && r.file.ID.Size > old.Size && r.src.Fault == "":
		return r.suffix(transcript.Lines, nil)
	case same && r.file.ID.Size == old.Size:
		holds, err := r.holds()
		if err != nil {
			return nil, err
		}
		if holds {
			r.src.Fault = ""
			return r.same()
		}
	}
	what := "the file was rewritten"
	switch {
	case !same:
		what = "another file took its place"
	case r.file.ID.Size < old.Size:
		what = "the file was cut"
	}
	r.src.Fault, r.src.State = string(source.Changed)+": "+what, r.state
	return r.store()
}

// holds reports whether a file that only seems touched still has the bytes it had.
func (r *reading) holds() (bool, error) {
	if !r.src.Chained {
		h := sha256.New()
		if _, err := io.Copy(h, io.NewSectionReader(r.file, 0, r.src.At.Offset)); err != nil {
			return false, err
		}
		return [sha256.Size]byte(h.Sum(nil)) == r.src.Prefix, nil
	}
	// The prefix digest is a chain: compare record by record.
	ok := true
	for i := range r.units {
		err := r.e.store.Read(r.ctx, func(s *index.Snapshot) error {
			var at int64 = -1
			return s.EachSpan(r.units[i].ID, func(sp *index.Span) bool {
				if sp.Start == at {
					return true
				}
				at = sp.Start
				b := make([]byte, sp.End-sp.Start)
				if _, err := r.file.ReadAt(b, sp.Start); err != nil {
					ok = false
				} else {
					d := sha256.Sum256(b)
					ok = bytes.Equal(d[:index.DigestSize], sp.Digest[:])
				}
				return ok
			})
		})
		if err != nil || !ok {
			return false, err
		}
	}
	return ok, nil
}

// grown reads a file whose producer may rewrite it: when the admitted bytes are what
// they were, only what follows is parsed; else it is read whole.
func (r *reading) grown(shape transcript.Shape) (*accepted, error) {
	if r.src.Fault != "" || len(r.units) != 1 || r.state == nil {
		return r.whole(shape)
	}
	in, err := r.unpacked(shape, 0)
	if err != nil {
		return r.whole(shape)
	}
	defer in.Close()
	h := sha256.New()
	n, err := io.CopyN(h, in, r.src.At.Offset)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if n < r.src.At.Offset || !bytes.Equal(h.Sum(nil), prefixOf(r.src)) {
		return r.whole(shape)
	}
	return r.suffix(shape, &continued{in: in, hash: h})
}

func prefixOf(s *index.Source) []byte {
	if s.Chained {
		return nil // never equal: read whole
	}
	return s.Prefix[:]
}

// continued is a stream whose prefix was read and hashed.
type continued struct {
	in   io.ReadCloser
	hash hash.Hash
}

// unpacked gives the file's text from an offset on.
func (r *reading) unpacked(shape transcript.Shape, from int64) (io.ReadCloser, error) {
	if shape == transcript.Packed {
		in, err := transcript.Unpack(io.NewSectionReader(r.file, 0, r.file.ID.Size))
		if err != nil || from == 0 {
			return in, err
		}
		if _, err := io.CopyN(io.Discard, in, from); err != nil {
			in.Close()
			return nil, err
		}
		return in, nil
	}
	return io.NopCloser(io.NewSectionReader(r.file, from, r.file.ID.Size-from)), nil
}

// suffix parses what follows the admitted bytes. prefix is nil for a trusted append.
func (r *reading) suffix(shape transcript.Shape, prefix *continued) (*accepted, error) {
	if len(r.units) != 1 || r.state == nil {
		return r.whole(shape)
	}
	p, err := transcript.New(r.t.file(), r.state)
	if err != nil {
		return r.whole(shape)
	}
	unit := r.units[0]
	if err := r.more(unit.ID); err != nil {
		return nil, intoIndex(err)
	}
	src := *r.src
	fill := r.b.Unit(&src, &unit, r.set, r.e.forgotten)
	h := sha256.New()
	var in io.Reader
	if prefix == nil {
		in = io.NewSectionReader(r.file, src.At.Offset, r.file.ID.Size-src.At.Offset)
	} else {
		in, h = prefix.in, prefix.hash
	}
	lines := newAdmitted(in, h)
	res, at, err := r.parse(p, lines, src.At, fill)
	if err == nil {
		err = r.coherent(shape, at, lines, prefix == nil)
	}
	if err != nil {
		if derr := fill.Discard(); derr != nil {
			return nil, intoIndex(derr)
		}
		if errors.Is(err, transcript.ErrRestart) {
			return r.whole(shape)
		}
		return nil, err
	}
	if at == src.At {
		return r.same()
	}
	if _, err := fill.Finish(res.OffBranch); err != nil {
		return nil, intoIndex(err)
	}
	if res.Relabel {
		whole, err := r.relabel(shape, at, append(r.runs, fill.Runs()...))
		if err != nil {
			return nil, err
		}
		res.Info, res.State = whole.Info, whole.State
	}
	r.settle(&src, res, at, fill)
	sum := lines.sum()
	if prefix == nil {
		src.Prefix, src.Chained = chain(&src, sum, at.Offset-r.src.At.Offset), true
	} else {
		src.Prefix, src.Chained = sum, false
	}
	*r.src = src
	if err := r.b.PutUnit(&unit); err != nil {
		return nil, intoIndex(err)
	}
	return r.store()
}

// chain is the prefix digest behind a trusted append.
func chain(s *index.Source, sum [sha256.Size]byte, n int64) [sha256.Size]byte {
	old := hex.EncodeToString(s.Prefix[:])
	if s.Chained {
		old = "append-chain:" + old
	}
	return sha256.Sum256([]byte("append-v1:" + old + ":" + hex.EncodeToString(sum[:]) + ":" + strconv.FormatInt(n, 10)))
}

// settle takes over what a parser found out.
func (r *reading) settle(src *index.Source, res transcript.Result, at transcript.Position, fill *index.Filler) {
	src.Info, src.State, src.At, src.Fault = res.Info, res.State, at, ""
	src.Counts.Add(res.Counts)
	src.Counts.Oversized += fill.Unsearched()
	src.Counts.Skipped += fill.Duplicates
	src.Counts.Errors += fill.Duplicates
}

// whole reads a file from its beginning and replaces what the index has of it.
func (r *reading) whole(shape transcript.Shape) (*accepted, error) {
	if r.t.w.root.Origin == evidence.ChatGPT {
		return r.export()
	}
	p, err := transcript.New(r.t.file(), nil)
	if err != nil {
		return nil, err
	}
	root := &r.t.w.root
	src := &index.Source{Origin: root.Origin, Root: root.Digest, Rel: r.t.Rel}
	if r.src != nil {
		src.ID = r.src.ID
	}
	unit := &index.Unit{}
	fill := r.b.Unit(src, unit, nil, r.e.forgotten)
	in, err := r.unpacked(shape, 0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	lines := newAdmitted(in, sha256.New())
	res, at, err := r.parse(p, lines, transcript.Position{}, fill)
	if err == nil {
		err = r.coherent(shape, at, lines, false)
	}
	if err != nil {
		if derr := fill.Discard(); derr != nil {
			return nil, intoIndex(derr)
		}
		return nil, err
	}
	if _, err := fill.Finish(res.OffBranch); err != nil {
		return nil, intoIndex(err)
	}
	r.settle(src, res, at, fill)
	src.Prefix = lines.sum()
	unit.Session = res.Info.Session
	if err := r.dropUnits(r.units); err != nil {
		return nil, err
	}
	r.src = src
	a, err := r.store()
	if err != nil {
		return nil, err
	}
	return a, intoIndex(r.b.PutUnit(unit))
}

func (r *reading) dropUnits(units []index.Unit) error {
	for i := range units {
		if err := r.b.DropUnit(units[i].ID); err != nil {
			return intoIndex(err)
		}
	}
	return nil
}

// parse runs a stream through a parser into a filler. Damaged bytes become hidden
// text, so that "not found" stays true.
func (r *reading) parse(p transcript.Parser, in io.Reader, from transcript.Position, fill *index.Filler) (transcript.Result, transcript.Position, error) {
	emit := func(rec *transcript.Record, en *transcript.Entry) error {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		return intoIndex(fill.Add(rec, en))
	}
	at, err := scan(in, r.t.file(), from, &damageKeeper{Parser: p, r: r, fill: fill}, emit)
	if err != nil {
		return transcript.Result{}, at, err
	}
	res, err := p.Finish(emit)
	return res, at, err
}

// scan parses a stream. A parser that panics costs its file, not the others: what was
// taken in of it is taken out again.
func scan(in io.Reader, f transcript.File, from transcript.Position, p transcript.Parser, emit func(*transcript.Record, *transcript.Entry) error) (at transcript.Position, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fault.Wrap(source.ReadOrParse, fmt.Errorf("panic: %v\n%s", v, debug.Stack()), "the program fails on this file, which is a fault of the program")
		}
	}()
	return transcript.Scan(in, f, from, p, emit)
}

// damageKeeper passes a parser on and keeps what is damaged as hidden text.
type damageKeeper struct {
	transcript.Parser
	r    *reading
	fill *index.Filler
}

// maxDamage bounds what is kept of one damaged place, in bytes.
const maxDamage = 256 << 10

// Damaged tells the parser and keeps the bytes' words. What is not kept counts as text that
// cannot be searched.
func (d *damageKeeper) Damaged(line, start, n int64, oversized bool) {
	d.Parser.Damaged(line, start, n, oversized)
	if oversized || n <= 0 || d.r.t.Shape == transcript.Document {
		return
	}
	var b []byte
	if d.r.t.Shape == transcript.Lines { // else the bytes are gone by now
		b = make([]byte, min(n, maxDamage))
		if k, err := d.r.file.ReadAt(b, start); err != nil && k < len(b) {
			b = nil
		}
	}
	id := "damaged-" + strconv.FormatInt(start, 10)
	rec := &transcript.Record{Line: line, Start: start, End: start + n, Bytes: b, Digest: sha256.Sum256(b)}
	if len(b) > 0 {
		_ = d.fill.Hide(rec, id, string(bytes.ToValidUTF8(b, []byte("\uFFFD"))))
	}
	if int64(len(b)) < n {
		_ = d.fill.Hide(rec, id+"-rest", "")
	}
}

// coherent makes sure that what was read is one state of the file. What was parsed is
// hashed once more when the file was touched meanwhile.
func (r *reading) coherent(shape transcript.Shape, at transcript.Position, lines *admitted, suffix bool) error {
	untouched, err := r.file.Verify()
	if err != nil || untouched {
		return err
	}
	sum := lines.sum()
	in, err := r.unpacked(shape, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	h := sha256.New()
	n := at.Offset
	if suffix {
		if _, err := io.CopyN(io.Discard, in, r.src.At.Offset); err != nil {
			return err
		}
		n -= r.src.At.Offset
	}
	if _, err := io.CopyN(h, in, n); err != nil {
		return err
	}
	if [sha256.Size]byte(h.Sum(nil)) != sum {
		return fault.New(source.Changed, "the file was rewritten while it was read")
	}
	return nil
}

// relabel computes anew which entries are off the current branch.
func (r *reading) relabel(shape transcript.Shape, at transcript.Position, runs []int64) (transcript.Result, error) {
	p, err := transcript.New(r.t.file(), nil)
	if err != nil {
		return transcript.Result{}, err
	}
	in, err := r.unpacked(shape, 0)
	if err != nil {
		return transcript.Result{}, err
	}
	defer in.Close()
	var ids []string
	var early []bool
	emit := func(_ *transcript.Record, en *transcript.Entry) error {
		ids = append(ids, en.ID)
		early = append(early, en.Off)
		return r.ctx.Err()
	}
	if _, err := scan(io.LimitReader(in, at.Offset), r.t.file(), transcript.Position{}, p, emit); err != nil {
		return transcript.Result{}, err
	}
	res, err := p.Finish(emit)
	if err != nil {
		return transcript.Result{}, err
	}
	off := map[string]bool{}
	for i, id := range ids {
		off[id] = early[i] || res.OffBranch.Has(i)
	}
	return res, intoIndex(r.b.Relabel(runs, func(entry string) bool { return off[entry] }))
}

// export reads a ChatGPT export: conversations whose bytes are known already keep
// their place in the index, wherever they stand in the file now.
func (r *reading) export() (*accepted, error) {
	p, err := transcript.New(r.t.file(), nil)
	if err != nil {
		return nil, err
	}
	root := &r.t.w.root
	src := &index.Source{Origin: root.Origin, Root: root.Digest, Rel: r.t.Rel}
	if r.src != nil {
		src.ID, src.Spans = r.src.ID, 0
	}
	known := map[evidence.Digest]*index.Unit{}
	for i := range r.units {
		known[r.units[i].Digest] = &r.units[i]
	}
	x := &exporting{r: r, src: src, known: known}
	if s, ok := p.(transcript.Skipper); ok && len(known) > 0 {
		s.SetSkip(x.skip)
	}
	lines := newAdmitted(io.NewSectionReader(r.file, 0, r.file.ID.Size), sha256.New())
	lines.all = true
	at, err := scan(lines, r.t.file(), transcript.Position{}, p, x.emit)
	var res transcript.Result
	if err == nil {
		res, err = p.Finish(x.emit)
	}
	if err == nil {
		err = x.close()
	}
	if err == nil {
		_, err = io.Copy(io.Discard, lines)
	}
	if err == nil {
		err = r.coherent(transcript.Document, transcript.Position{Offset: r.file.ID.Size}, lines, false)
	}
	if err != nil {
		if derr := x.discard(); derr != nil {
			return nil, intoIndex(derr)
		}
		return nil, err
	}
	var gone []index.Unit
	for i := range r.units {
		if !x.kept[r.units[i].ID] {
			gone = append(gone, r.units[i])
		}
	}
	if len(gone) > 0 && res.Counts.Malformed+res.Counts.Oversized > 0 {
		// Part of the file is damaged, and what is missing may have stood there: what
		// there was stays whole until the file is.
		if err := x.discard(); err != nil {
			return nil, intoIndex(err)
		}
		return nil, fault.New(source.ReadOrParse, "the export is damaged or cut off, and conversations that were in it are missing")
	}
	if err := x.move(); err != nil {
		return nil, err
	}
	if err := r.dropUnits(gone); err != nil {
		return nil, err
	}
	src.Info, src.Counts = res.Info, index.Counts{}
	src.Counts.Add(res.Counts)
	x.count(src)
	for _, f := range x.made {
		src.Counts.Oversized += f.Unsearched()
	}
	src.At, src.Prefix = at, lines.sum()
	r.src = src
	return r.store()
}

// exporting puts conversations into units of their own.
type exporting struct {
	r     *reading
	src   *index.Source
	known map[evidence.Digest]*index.Unit
	kept  map[int64]bool
	old   index.Counts // of the units that were kept
	moved []index.Unit // kept ones that stand elsewhere now
	made  []*index.Filler
	unit  *index.Unit
	fill  *index.Filler
	err   error
}

// skip keeps a conversation that is in the index already, at its present place.
func (x *exporting) skip(rec *transcript.Record) bool {
	u := x.known[rec.Digest]
	if u == nil || x.kept[u.ID] {
		return false
	}
	if x.kept == nil {
		x.kept = map[int64]bool{}
	}
	x.kept[u.ID] = true
	x.src.Spans += u.Spans
	x.old.Records += u.Records - 1 // the parser counted it once
	x.old.Eligible += u.Eligible
	if u.Start != rec.Start || u.Line != rec.Line {
		moved := *u
		moved.Start, moved.Line = rec.Start, rec.Line
		x.moved = append(x.moved, moved)
	}
	return true
}

func (x *exporting) emit(rec *transcript.Record, en *transcript.Entry) error {
	if err := x.r.ctx.Err(); err != nil {
		return err
	}
	if x.err != nil {
		return x.err
	}
	if x.unit == nil || x.unit.Start != rec.Start {
		if err := x.close(); err != nil {
			return err
		}
		x.unit = &index.Unit{Session: en.Session, Start: rec.Start, Size: rec.End - rec.Start, Line: rec.Line, Digest: rec.Digest}
		x.fill = x.r.b.Unit(x.src, x.unit, nil, x.r.e.forgotten)
		x.made = append(x.made, x.fill)
	}
	x.unit.Records = rec.Parts
	x.unit.Eligible++
	return intoIndex(x.fill.Add(rec, en))
}

// count adds what conversations that were not read again are known to count for.
func (x *exporting) count(src *index.Source) {
	src.Counts.Records += x.old.Records
	src.Counts.Eligible += x.old.Eligible
	if x.r.src == nil || len(x.kept) == 0 {
		return
	}
	for name, n := range x.r.src.Counts.Unknown {
		if src.Counts.Unknown[name] < n {
			src.Counts.Add(transcript.Counts{Unknown: map[string]int64{name: n - src.Counts.Unknown[name]}})
		}
	}
}

// close ends the open conversation.
func (x *exporting) close() error {
	if x.unit == nil {
		return x.err
	}
	if _, err := x.fill.Finish(nil); err != nil {
		return intoIndex(err)
	}
	u := x.unit
	x.unit, x.fill = nil, nil
	if err := x.r.b.PutUnit(u); err != nil {
		return intoIndex(err)
	}
	return x.err
}

// move stores where kept conversations stand now.
func (x *exporting) move() error {
	for i := range x.moved {
		if err := x.r.b.PutUnit(&x.moved[i]); err != nil {
			return intoIndex(err)
		}
	}
	return nil
}

func (x *exporting) discard() error {
	for _, f := range x.made {
		if err := f.Discard(); err != nil {
			return err
		}
	}
	return nil
}

// admitted hashes a stream as it is read and remembers the digest of all whole lines.
type admitted struct {
	in   io.Reader
	hash hash.Hash // of all that was read
	mark hash.Hash // of what was read up to the last line end; nil: nothing
	all  bool      // a document: the end of the file counts, whatever it is
}

func newAdmitted(in io.Reader, h hash.Hash) *admitted {
	return &admitted{in: in, hash: h, mark: clone(h)}
}

func clone(h hash.Hash) hash.Hash {
	c, err := h.(hash.Cloner).Clone()
	if err != nil {
		panic(err) // SHA-256 can be cloned
	}
	return c
}

// Read hashes what it reads.
func (a *admitted) Read(p []byte) (int, error) {
	n, err := a.in.Read(p)
	i := -1
	if !a.all {
		i = bytes.LastIndexByte(p[:n], '\n')
	}
	a.hash.Write(p[:i+1])
	if i >= 0 {
		a.mark = clone(a.hash)
	}
	a.hash.Write(p[i+1 : n])
	return n, err
}

// sum is the digest of all whole lines, or of everything.
func (a *admitted) sum() [sha256.Size]byte {
	if a.all {
		return [sha256.Size]byte(a.hash.Sum(nil))
	}
	return [sha256.Size]byte(a.mark.Sum(nil))
}

package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

	"localmcp/internal/fault"
	"localmcp/internal/keyshape"
	"localmcp/internal/op"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
	"localmcp/mooncite/internal/transcript"
)

// Bounds of inspect.
const (
	defaultWindow = 2
	maxWindow     = 10
	captureBytes  = 16 << 20 // source bytes read for neighbours in one call
)

// InspectIn is what mooncite_inspect takes.
type InspectIn struct {
	EvidenceID  string `json:"evidence_id" minLength:"1" maxLength:"2048" doc:"An evidence id or URI that an answer gave."`
	Window      *int   `json:"window,omitempty" min:"0" max:"10" doc:"Spans before and after to show; 2 if absent."`
	TextOffset  int    `json:"text_offset,omitempty" min:"0" doc:"Where in the cited text to begin, in bytes, to read on in a long one; behind its end is an error that says where it ends."`
	DebugTiming bool   `json:"debug_timing,omitempty" doc:"Report how long it took."`
	WorkflowID  string `json:"workflow_id,omitempty" maxLength:"64" doc:"workflowId of an earlier recall's timing, to add the two times. Needs debug_timing."`
}

// InspectOut is what mooncite_inspect answers.
type InspectOut struct {
	Outcome      string       `json:"outcome" enum:"verified|stale|missing|excluded|corrupt|unavailable"`
	Conclusive   bool         `json:"conclusive" doc:"True only for verified."`
	Meaning      string       `json:"meaning"`
	Next         *Next        `json:"next"`
	EvidenceID   string       `json:"evidenceId"`
	Target       *WindowSpan  `json:"target"`
	Window       []WindowSpan `json:"window" doc:"The target and its neighbours in the order of the source; only when verified."`
	Locator      *Place       `json:"locator"`
	Message      string       `json:"message,omitempty"`
	Masked       int          `json:"masked" doc:"Key-shaped secrets masked in all texts."`
	Timing       *Timing      `json:"timing,omitempty"`
	ResultDetail *Detail      `json:"resultDetail,omitempty"`

	now    time.Time
	length int // of the target's text, in bytes
}

// WindowSpan is a span with its text.
type WindowSpan struct {
	Relation         string  `json:"relation" enum:"before|target|after"`
	EvidenceID       string  `json:"evidenceId"`
	Text             string  `json:"text" doc:"Untrusted text of a past conversation, quoted as data."`
	OmittedBytes     int     `json:"omittedBytes" doc:"Bytes of the span's text not shown."`
	Role             string  `json:"role"`
	SourceOrigin     string  `json:"sourceOrigin"`
	SourceKind       string  `json:"sourceKind"`
	EventTimestamp   *string `json:"eventTimestamp"`
	SessionID        string  `json:"sessionId"`
	EntryID          string  `json:"entryId"`
	ParentID         *string `json:"parentId"`
	RecordProvenance string  `json:"recordProvenance" enum:"original|copy"`
	BranchState      string  `json:"branchState" enum:"current|off_branch"`
	CompactionState  string  `json:"compactionState" enum:"none|pre_compaction|summary|kept_after_compaction"`
	SourcePresent    bool    `json:"sourcePresent"`
	IsSubagent       bool    `json:"isSubagent"`
	Masked           int     `json:"masked"`
}

// Place is where a citation's record stands.
type Place struct {
	SourceOrigin     string `json:"sourceOrigin"`
	RelativePath     string `json:"relativePath" doc:"Below the source's root."`
	SessionID        string `json:"sessionId"`
	EntryID          string `json:"entryId"`
	SpanOrdinal      int    `json:"spanOrdinal"`
	Line             int64  `json:"line"`
	ByteStart        int64  `json:"byteStart"`
	ByteEnd          int64  `json:"byteEnd"`
	RecordDigest     string `json:"recordDigest" doc:"SHA-256 of the record's present bytes, or of the indexed ones where they are gone (first 32 digits)."`
	PrefixDigest     string `json:"prefixDigest"`
	PrefixDigestKind string `json:"prefixDigestKind" enum:"full_prefix_sha256|append_chain_sha256"`
}

// Inspect re-reads the source of a citation and says whether it still stands. An offset
// behind the end of the cited text is an [op.InvalidArgument].
func (e *Engine) Inspect(ctx context.Context, in InspectIn) (InspectOut, error) {
	began := e.now()
	out := InspectOut{EvidenceID: evidence.Visible(in.EvidenceID), Window: []WindowSpan{}, now: began}
	window := defaultWindow
	if in.Window != nil {
		window = max(0, min(*in.Window, maxWindow))
	}
	loc, ok := evidence.ParseLocator(strings.TrimSpace(in.EvidenceID))
	if !ok {
		out.finish(Unavailable, "This is not an evidence id or URI. Use one that mooncite_recall gave.")
		out.Next = call(ToolRecall, "find the evidence anew", nil)
		return out, nil
	}
	f, err := e.fresh(ctx, 0, true)
	if err != nil {
		out.finish(Unavailable, "The index cannot be read: "+plain(err))
		out.Next = call(ToolStatus, "see what is wrong", nil)
		return out, nil
	}
	if err := e.inspect(ctx, f, loc, window, in.TextOffset, &out); err != nil {
		out.Target, out.Window, out.Locator = nil, []WindowSpan{}, nil
		out.finish(Unavailable, "The citation cannot be checked: "+plain(err))
		out.Next = call(ToolStatus, "see what is wrong", nil)
	}
	if out.Target != nil && in.TextOffset > 0 && in.TextOffset >= out.length {
		return InspectOut{}, fault.New(op.InvalidArgument, "text_offset must be less than %d, where the text ends, not %d", out.length, in.TextOffset)
	}
	if in.DebugTiming {
		out.Timing = e.timings.inspect(in.WorkflowID, e.now().Sub(began))
	}
	return out, nil
}

func (o *InspectOut) finish(outcome, meaning string) {
	o.Outcome, o.Conclusive, o.Meaning = outcome, outcome == Verified, meaning
}

// cited is a span to be proved: what the index says of it.
type cited struct {
	hit      *hit
	relation string
	id       string
}

func (e *Engine) inspect(ctx context.Context, f *freshness, loc evidence.Locator, window, offset int, out *InspectOut) error {
	target, around, err := e.findCited(ctx, f, loc, window)
	if err != nil {
		return err
	}
	if target == nil && e.readable(f, loc.Origin) {
		// Text that was moved within a changed source, or is newer than the index.
		if f, err = e.fresh(ctx, e.patience, false); err != nil {
			return err
		}
		if target, around, err = e.findCited(ctx, f, loc, window); err != nil {
			return err
		}
	}
	if target == nil {
		if e.forgotten.Locator(loc) {
			out.finish(Excluded, "This text was taken out with `mooncite forget`.")
			return nil
		}
		out.finish(Unavailable, "No indexed text has this citation.")
		out.Next = call(ToolRecall, "find the evidence anew", nil)
		if f.busy() {
			out.Meaning = "No indexed text has this citation yet; histories are still being read."
		}
		return nil
	}
	out.EvidenceID = target.id
	h := target.hit
	if h.span.Gone {
		out.finish(Excluded, "This text was taken out with `mooncite forget`.")
		return nil
	}
	if !f.authorized(h.src.Origin, h.src.Root) {
		out.finish(Excluded, "The source's root is no longer authorized.")
		out.Next = call(ToolStatus, "see which sources are authorized", nil)
		return nil
	}
	p := &proof{e: e, fresh: f, out: out, offset: offset}
	if err := p.run(ctx, target, around); err != nil || out.Outcome != Stale {
		return err
	}
	return e.again(ctx, loc, window, offset, target, out)
}

// again looks at a stale citation once more when the index was behind its source: a
// record that was written anew with the same text proves it as well. One with another
// text does not, and the answer stays.
func (e *Engine) again(ctx context.Context, loc evidence.Locator, window, offset int, before *cited, out *InspectOut) error {
	f, err := e.fresh(ctx, e.patience, false)
	if err != nil {
		return nil
	}
	target, around, err := e.findCited(ctx, f, loc, window)
	if err != nil || target == nil || target.hit.span.Gone || target.hit.text != before.hit.text || !f.authorized(target.hit.src.Origin, target.hit.src.Root) {
		return err
	}
	second := InspectOut{EvidenceID: target.id, Window: []WindowSpan{}, now: out.now}
	p := &proof{e: e, fresh: f, out: &second, offset: offset}
	if err := p.run(ctx, target, around); err != nil {
		return err
	}
	if second.Outcome == Verified {
		*out = second
	}
	return nil
}

// readable reports whether a refresh could bring a citation of that origin.
func (e *Engine) readable(f *freshness, o evidence.Origin) bool {
	for _, r := range f.roots {
		if r.Origin == o {
			return true
		}
	}
	return false
}

// findCited takes a citation and its neighbours from the index.
func (e *Engine) findCited(ctx context.Context, f *freshness, loc evidence.Locator, window int) (target *cited, around []*cited, err error) {
	err = e.read(ctx, f, func(v *view) error {
		if v.snap == nil {
			return nil
		}
		v.sources = v.snap.Sources() // also what is no longer authorized: the answer says so
		h, err := v.locate(loc)
		if err != nil || h == nil {
			return err
		}
		target = &cited{hit: h, relation: "target", id: v.evidenceID(h)}
		for _, side := range []struct {
			relation string
			step     int64
		}{{"before", -1}, {"after", 1}} {
			doc := h.doc
			for n := 0; n < window; {
				doc, err = v.snap.Neighbour(h.unit.ID, doc, side.step)
				if err != nil {
					return err
				}
				if doc == 0 {
					break
				}
				k, err := v.bare(doc) // its text is derived from the source
				if err != nil {
					return err
				}
				if k == nil || k.span.Hidden || k.span.Gone {
					continue
				}
				around = append(around, &cited{hit: k, relation: side.relation, id: v.evidenceID(k)})
				n++
			}
		}
		return nil
	})
	return target, around, err
}

// A proof derives texts from the present bytes of one source.
type proof struct {
	e      *Engine
	fresh  *freshness
	out    *InspectOut
	offset int

	src     *index.Source
	file    sourceFile
	records map[int64]*record // by byte start
	read    int64
}

// A record is a byte range as it is now.
type record struct {
	digest  evidence.Digest
	same    bool // as indexed
	json    bool
	entries []transcript.Entry
	line    int64
	start   int64
	end     int64
}

func (p *proof) run(ctx context.Context, target *cited, around []*cited) error {
	h := target.hit
	p.src, p.records = h.src, map[int64]*record{}
	file, err := p.e.openSource(p.fresh, h.src)
	switch {
	case errors.Is(err, safefile.ErrNotRegular) || errors.Is(err, safefile.ErrNotDirectory):
		p.out.finish(Excluded, "The source is now a link or no regular file; such sources are not read.")
		p.out.Next = call(ToolStatus, "see how the source is named and what to do", nil)
		return nil
	case errors.Is(err, fs.ErrNotExist):
		gone := *h.src
		gone.Present, h.src = false, &gone
		p.indexed(target)
		p.out.finish(Missing, "The source file is gone. The text is what was indexed last; it can no longer be verified.")
		return nil
	case err != nil:
		p.out.finish(Corrupt, "The source cannot be read: "+plain(err))
		p.out.Next = call(ToolStatus, "see what is wrong with the source", nil)
		return nil
	}
	defer file.Close()
	p.file = file
	rec, err := p.record(ctx, h)
	if err != nil {
		return err
	}
	span := rec.span(h)
	if span == nil && !rec.same {
		// The file was rewritten: look for the record elsewhere in it.
		found, err := p.search(ctx, h)
		if err != nil {
			return err
		}
		if found != nil {
			rec, span = found, found.span(h)
		}
	}
	if err := file.Verify(); err != nil {
		p.indexed(target)
		p.out.finish(Stale, "The source changed while it was read; inspect it again.")
		p.out.Next = call(ToolInspect, "read it again", map[string]any{"evidence_id": target.id})
		return nil
	}
	if span == nil {
		p.failed(target, rec)
		return nil
	}
	p.verified(ctx, target, rec, span, around)
	return nil
}

// span is the hit's span as the record has it now; nil when it does not.
func (r *record) span(h *hit) *transcript.Span {
	if !r.same {
		return nil
	}
	for i := range r.entries {
		en := &r.entries[i]
		if en.ID == h.span.Entry && (en.Session == "" || en.Session == h.unit.Session) && h.span.Ordinal < len(en.Spans) && !en.Spans[h.span.Ordinal].Hidden {
			return &en.Spans[h.span.Ordinal]
		}
	}
	return nil
}

// record reads the byte range a hit was indexed at.
func (p *proof) record(ctx context.Context, h *hit) (*record, error) {
	start, end := h.unit.Start+h.span.Start, h.unit.Start+h.span.End
	if r, ok := p.records[start]; ok {
		return r, nil
	}
	r := &record{line: h.unit.Line + h.span.Line, start: start, end: end}
	p.records[start] = r
	b, err := p.file.Range(start, end)
	if err != nil {
		if errors.Is(err, errBeyondEnd) {
			return r, nil
		}
		return nil, err
	}
	p.read += int64(len(b))
	r.digest = sha256.Sum256(b)
	r.same = [index.DigestSize]byte(r.digest[:index.DigestSize]) == h.span.Digest
	entries, err := transcript.Decode(p.src.File(), &transcript.Record{Line: r.line, Start: start, End: end, Bytes: b, Digest: r.digest})
	r.json = err == nil && (r.same || json.Valid(b))
	r.entries = entries
	return r, nil
}

// search looks through the present file for the hit's record, by its digest or its
// entry's identity and digest.
func (p *proof) search(ctx context.Context, h *hit) (*record, error) {
	var found *record
	err := p.file.Each(ctx, p.src.File(), func(r *transcript.Record, en *transcript.Entry) error {
		if [index.DigestSize]byte(r.Digest[:index.DigestSize]) != h.span.Digest {
			return nil
		}
		same := en.ID == h.span.Entry
		if !same && strings.HasPrefix(h.span.Entry, "line-") {
			same = strings.HasSuffix(en.ID, h.span.Entry[strings.LastIndexByte(h.span.Entry, '-'):])
		}
		if !same {
			return nil
		}
		x := *en
		x.ID, x.Session = h.span.Entry, h.unit.Session
		found = &record{digest: r.Digest, same: true, json: true, entries: []transcript.Entry{x}, line: r.Line, start: r.Start, end: r.End}
		return errStop
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	var unsupported *transcript.ErrUnsupported
	if errors.As(err, &unsupported) {
		err = nil
	}
	return found, err
}

var errStop = errors.New("stop")

// indexed shows the target as it was indexed, for outcomes that do not verify it.
func (p *proof) indexed(target *cited) {
	s := p.show(target, target.hit.text, targetBytes)
	p.out.Target = &s
	p.out.Masked += s.Masked
	p.out.Locator = p.place(target.hit, &record{line: target.hit.unit.Line + target.hit.span.Line, start: target.hit.unit.Start + target.hit.span.Start, end: target.hit.unit.Start + target.hit.span.End})
}

func (p *proof) failed(target *cited, rec *record) {
	switch {
	case rec.same:
		p.out.finish(Corrupt, "The record stands where it stood, but it no longer gives this text: the index and the source disagree.")
		p.out.Next = run("mooncite rebuild", "read the source anew")
	case rec.digest == evidence.Digest{}:
		p.indexed(target)
		p.out.finish(Stale, "The bytes of this record no longer exist: the source was cut or rewritten. The text is what was indexed last.")
	case !rec.json && p.stands(rec):
		p.out.finish(Corrupt, "The bytes where this record stood are damaged.")
		p.out.Next = call(ToolStatus, "see what is wrong with the source", nil)
	default:
		p.indexed(target)
		p.out.finish(Stale, "The source was changed and no longer holds this record as it was. The text is what was indexed last.")
	}
}

// stands reports whether a byte range is still a whole line: if so its bytes are
// damaged, else the file was written anew around it.
func (p *proof) stands(rec *record) bool {
	if p.file.shape == transcript.Document {
		return false
	}
	after, err := p.file.Range(rec.end, rec.end+1)
	if err != nil || after[0] != '\n' {
		return false
	}
	if rec.start == 0 {
		return true
	}
	before, err := p.file.Range(rec.start-1, rec.start)
	return err == nil && before[0] == '\n'
}

func (p *proof) verified(ctx context.Context, target *cited, rec *record, span *transcript.Span, around []*cited) {
	s := p.show(target, span.Text, targetBytes)
	p.out.Target, p.out.Locator = &s, p.place(target.hit, rec)
	p.out.Masked += s.Masked
	p.out.finish(Verified, "The source's present bytes hold this text. It proves what was said, not that it is right or still current.")
	var before, after []WindowSpan
	changed, left := 0, 0
	for _, c := range around {
		if p.read > captureBytes {
			left++
			continue
		}
		r, err := p.record(ctx, c.hit)
		if err != nil {
			changed++
			continue
		}
		sp := r.span(c.hit)
		if sp == nil {
			changed++
			continue
		}
		w := p.show(c, sp.Text, neighbourBytes)
		p.out.Masked += w.Masked
		if c.relation == "before" {
			before = append([]WindowSpan{w}, before...)
		} else {
			after = append(after, w)
		}
	}
	p.out.Window = append(append(before, s), after...)
	var notes []string
	if changed > 0 {
		notes = append(notes, fmt.Sprintf("%d neighbouring span(s) changed in the source and are left out", changed))
	}
	if left > 0 {
		notes = append(notes, fmt.Sprintf("%d neighbouring span(s) are left out because their records are too large", left))
	}
	p.out.Message = strings.Join(notes, "; ")
}

// show cuts and masks a text for an answer.
func (p *proof) show(c *cited, text string, limit int) WindowSpan {
	h := c.hit
	from := 0
	if c.relation == "target" {
		p.out.length = len(text)
		from = min(max(0, p.offset), len(text))
		for from > 0 && from < len(text) && !utf8.RuneStart(text[from]) {
			from--
		}
	}
	to := min(len(text), from+limit)
	for to > from && to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	shown, masks := keyshape.Mask(text, from, to)
	return WindowSpan{Relation: c.relation, EvidenceID: c.id, Text: evidence.Visible(shown), OmittedBytes: len(text) - (to - from), Masked: masks,
		SessionID: evidence.Visible(evidence.QualifiedSession(h.src.Origin, h.src.Root, h.unit.Session)), EntryID: evidence.Visible(h.span.Entry), ParentID: optional(evidence.Visible(h.span.Parent)),
		Role: string(h.span.Role), SourceOrigin: string(h.src.Origin), SourceKind: evidence.Visible(h.span.Kind), EventTimestamp: stamp(h.span.Time),
		RecordProvenance: provenance(h), BranchState: branch(h.span), CompactionState: compaction(h), SourcePresent: h.src.Present, IsSubagent: h.src.Info.Subagent}
}

func (p *proof) place(h *hit, r *record) *Place {
	kind := "full_prefix_sha256"
	if h.src.Chained {
		kind = "append_chain_sha256"
	}
	digest := hex.EncodeToString(r.digest[:])
	if r.digest == (evidence.Digest{}) {
		digest = hex.EncodeToString(h.span.Digest[:])
	}
	return &Place{SourceOrigin: string(h.src.Origin), RelativePath: evidence.Visible(h.src.Rel), SessionID: evidence.Visible(evidence.QualifiedSession(h.src.Origin, h.src.Root, h.unit.Session)),
		EntryID: evidence.Visible(h.span.Entry), SpanOrdinal: h.span.Ordinal, Line: r.line, ByteStart: r.start, ByteEnd: r.end,
		RecordDigest: digest, PrefixDigest: hex.EncodeToString(h.src.Prefix[:]), PrefixDigestKind: kind}
}

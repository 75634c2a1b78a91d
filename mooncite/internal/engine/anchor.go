package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"localmcp/internal/fault"
	"localmcp/internal/keyshape"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
)

// ResolveAnchors looks for changes in the histories and then says how the index holds
// each of at most [evidence.MaxAnchors] citations. It reads no source: that is what
// [Engine.Prove] does.
func (e *Engine) ResolveAnchors(ctx context.Context, refs []evidence.Ref) (evidence.Projection, []evidence.Resolution, error) {
	if len(refs) > evidence.MaxAnchors {
		return evidence.Projection{}, nil, fault.New(fault.Internal, "%d citations are too many to resolve at once", len(refs))
	}
	f, err := e.fresh(ctx, e.patience, false)
	if err != nil {
		return evidence.Projection{}, nil, err
	}
	out := make([]evidence.Resolution, len(refs))
	var now evidence.Projection
	err = e.read(ctx, f, func(v *view) error {
		now = evidence.Projection{Freshness: v.freshness(), Trust: v.trust(), Coverage: v.coverage()}
		for i, ref := range refs {
			if out[i], err = v.resolve(ref); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, index.ErrStale) {
		err = fault.Wrap(evidence.CodeUnavailable, err, "the index was made by another version of mooncite and is being made anew").WithHint("ask again in a moment")
	}
	return now, out, err
}

// freshness is the index's state in status's words.
func (v *view) freshness() string {
	if v.snap == nil || len(v.sources) == 0 {
		return Unavailable
	}
	if v.fresh.busy() || v.fresh.pending() > 0 || len(v.fresh.groups) > 0 {
		return "last_good"
	}
	for _, s := range v.sources {
		if s.Fault != "" {
			return "last_good"
		}
	}
	return "current"
}

func (v *view) resolve(ref evidence.Ref) (evidence.Resolution, error) {
	r := evidence.Resolution{Pending: v.fresh.busy() || v.fresh.pending() > 0}
	l, ok := evidence.ParseLocator(ref.Locator)
	if !ok {
		return r, nil
	}
	if o, root, session, ok := evidence.ParseQualifiedSession(ref.Session); ok {
		r.Withdrawn = !v.authorized(o, root) || v.e.forgotten.Session(o, root, session)
	}
	r.Withdrawn = r.Withdrawn || v.e.forgotten.Locator(l)
	h, err := v.locate(l)
	if err != nil || h == nil {
		return r, err
	}
	if h.span.Gone || v.e.forgotten.Session(h.src.Origin, h.src.Root, h.unit.Session) {
		r.Withdrawn = true
	}
	if r.Withdrawn {
		return r, nil
	}
	r.Anchor, r.Echo = v.anchor(h), h.echo
	r.LastGood = r.Pending || h.src.Fault != "" || !h.src.Present
	return r, nil
}

func (v *view) anchor(h *hit) *evidence.Anchor {
	text := sha256.Sum256([]byte(h.text))
	return &evidence.Anchor{
		ID: v.evidenceID(h), URI: v.evidenceURI(h), Origin: h.src.Origin, Root: h.src.Root,
		Project: v.snap.ProjectName(h.span.Project), Session: evidence.QualifiedSession(h.src.Origin, h.src.Root, h.unit.Session),
		Record: hex.EncodeToString(h.span.Digest[:index.DigestSize]), Span: hex.EncodeToString(text[:]),
		Role: h.span.Role, Kind: h.span.Kind, Parent: h.span.Parent, Branch: branch(h.span), Compaction: compaction(h),
	}
}

// Prove re-reads the source of a citation, as inspect does, and gives what it found
// with window neighbours on each side. A source that keeps changing while it is read is
// unavailable, not stale.
func (e *Engine) Prove(ctx context.Context, id string, window int) (evidence.Proof, error) {
	var out InspectOut
	for n := 0; ; n++ {
		var err error
		if out, err = e.Inspect(ctx, InspectIn{EvidenceID: id, Window: &window}); err != nil {
			return evidence.Proof{}, err
		}
		if out.Outcome != Stale || out.Next == nil || out.Next.Target != ToolInspect {
			break
		}
		if n == 2 {
			out.finish(Unavailable, "The source is being written just now; inspect it again in a moment.")
			break
		}
	}
	p := evidence.Proof{Outcome: out.Outcome, Meaning: out.Meaning, ID: out.EvidenceID}
	if out.Outcome == Verified {
		p.Record = out.Locator.RecordDigest
	}
	spans := out.Window
	if len(spans) == 0 && out.Target != nil {
		spans = []WindowSpan{*out.Target}
	}
	for _, w := range spans {
		q := evidence.Quote{Relation: w.Relation, ID: w.EvidenceID, Role: w.Role, Text: w.Text, Omitted: w.OmittedBytes}
		if w.EventTimestamp != nil {
			q.Time = *w.EventTimestamp
		}
		p.Window = append(p.Window, q)
	}
	return p, nil
}

// SecretIn names the first secret of a well-known shape in a text.
func (e *Engine) SecretIn(text string) (kind string, found bool) {
	if all := keyshape.Find(text); len(all) > 0 {
		return all[0].Kind, true
	}
	return "", false
}

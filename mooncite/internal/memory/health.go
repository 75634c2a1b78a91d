package memory

import (
	"context"
	"slices"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/evidence"
)

// States of an anchor, worst first. The first four quarantine the revision whose own
// anchor it is; they never reach memories derived from it.
const (
	deauthorized    = "deauthorized"     // its root was withdrawn, or it was forgotten
	contentMismatch = "content_mismatch" // its record or its text is another now
	contextMismatch = "context_mismatch" // it stands in another session, project, role or kind now
	unavailable     = "unavailable"      // the index has no such span
	lastGood        = "last_good"        // as it was, but the index may be behind its source
	indexed         = "indexed"          // as it was
)

// notBacked is the state of a revision without anchors of its own.
const notBacked = "not_evidence_backed"

var severity = []string{deauthorized, contentMismatch, contextMismatch, unavailable, lastGood, indexed, ""}

// worse returns the worse of two states; "" is the best.
func worse(a, b string) string {
	if slices.Index(severity, a) <= slices.Index(severity, b) {
		return a
	}
	return b
}

func quarantines(state string) bool {
	return slices.Contains(severity[:4], state)
}

// stateOf judges a saved anchor by what the index says now.
func (a *anchor) stateOf(r evidence.Resolution) string {
	switch {
	case r.Withdrawn:
		return deauthorized
	case r.Anchor == nil:
		return unavailable
	case r.Anchor.Span != a.Span, !a.sameRecord(r.Anchor.Record):
		return contentMismatch
	case r.Anchor.Context() != a.context:
		return contextMismatch
	case r.LastGood:
		return lastGood
	}
	return indexed
}

// sameRecord compares record digests, the shorter of which may be the beginning of one.
// A conversation of an export is one record: it grows when the conversation goes on,
// which changes nothing of what was said before (decision 2.10).
func (a *anchor) sameRecord(now string) bool {
	if a.Origin == evidence.ChatGPT {
		return true
	}
	n := min(len(a.Record), len(now))
	return n > 0 && a.Record[:n] == now[:n]
}

// A doctor judges anchors for one request and asks the engine about each once.
type doctor struct {
	s          *Store
	known      map[string]evidence.Resolution // by evidence id
	projection *evidence.Projection           // nil before the engine was asked, and when it could not answer
	trouble    *fault.Error                   // why it could not
}

func (s *Store) doctor() *doctor { return &doctor{s: s, known: map[string]evidence.Resolution{}} }

// look asks about the anchors of revisions. An engine that cannot answer makes them
// unavailable; only an ended context is an error.
func (d *doctor) look(ctx context.Context, list []*revision) error {
	var refs []evidence.Ref
	var ids []string
	for _, r := range list {
		for i := range r.anchors {
			a := &r.anchors[i]
			if _, ok := d.known[a.ID]; ok {
				continue
			}
			d.known[a.ID] = evidence.Resolution{}
			refs, ids = append(refs, evidence.Ref{Locator: a.ID, Session: a.Session}), append(ids, a.ID)
		}
	}
	for len(refs) > 0 {
		n := min(len(refs), evidence.MaxAnchors)
		p, found, err := d.s.evidence.ResolveAnchors(ctx, refs[:n])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			d.trouble = fault.From(err)
			return nil
		}
		d.projection = &p
		for i, r := range found {
			d.known[ids[i]] = r
		}
		refs, ids = refs[n:], ids[n:]
	}
	return nil
}

// anchor judges one anchor, with what inspections remember.
func (d *doctor) anchor(a *anchor) string { return worse(a.stateOf(d.known[a.ID]), a.observed) }

// revision judges a revision by its own anchors.
func (d *doctor) revision(r *revision) string {
	if len(r.anchors) == 0 {
		return notBacked
	}
	state := ""
	for i := range r.anchors {
		state = worse(state, d.anchor(&r.anchors[i]))
	}
	return state
}

// pending reports whether a state may be due to histories that are still being read.
func (d *doctor) pending(r *revision) bool {
	return slices.ContainsFunc(r.anchors, func(a anchor) bool { return d.known[a.ID].Pending })
}

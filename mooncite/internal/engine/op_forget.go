package engine

import (
	"context"
	"fmt"
	"strings"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
)

// A ForgetPlan is what a forget would take out.
type ForgetPlan struct {
	session  string // qualified
	evidence string
	spans    int64
	units    []index.Unit
	ordinal  int
	entry    string
}

// Text says what it would do.
func (p *ForgetPlan) Text() string {
	if p.session != "" {
		return fmt.Sprintf("This takes %s of session %s out of the index and keeps them out", spans(p.spans), p.session)
	}
	return fmt.Sprintf("This takes the text of %s out of the index and keeps it out", p.evidence)
}

// ForgetOut says what was taken out.
type ForgetOut struct {
	Outcome   string `json:"outcome" enum:"forgotten"`
	SessionID string `json:"sessionId,omitempty"`
	Evidence  string `json:"evidenceId,omitempty"`
	Spans     int64  `json:"spans"`
}

// Text is the result in words.
func (o ForgetOut) Text() string {
	what := o.SessionID + o.Evidence
	return fmt.Sprintf("Taken out: %s of %s. Copies in other sessions and the history's own files stay as they are.\n", spans(o.Spans), what)
}

func spans(n int64) string {
	if n == 1 {
		return "1 span"
	}
	return fmt.Sprintf("%d spans", n)
}

// PlanForget finds what is to be taken out. Exactly one of session and span is given.
func (e *Engine) PlanForget(ctx context.Context, session, span string) (*ForgetPlan, error) {
	f, err := e.fresh(ctx, 0, true)
	if err != nil {
		return nil, err
	}
	p := &ForgetPlan{}
	err = e.read(ctx, f, func(v *view) error {
		if v.snap == nil {
			return fault.New(evidence.CodeUnavailable, "nothing is indexed yet").WithHint("see `mooncite status`")
		}
		if span != "" {
			return p.span(v, span)
		}
		return p.wholeSession(v, session)
	})
	return p, err
}

func (p *ForgetPlan) span(v *view, id string) error {
	l, ok := evidence.ParseLocator(strings.TrimSpace(id))
	if !ok {
		return fault.New(evidence.CodeUsage, "%.64q is not an evidence id or URI", evidence.Visible(id)).WithHint("use one that `mooncite recall` gave")
	}
	h, err := v.locate(l)
	if err != nil {
		return err
	}
	if h == nil {
		return fault.New(evidence.CodeUnavailable, "no indexed text has this citation").WithHint("find it anew with `mooncite recall`")
	}
	p.evidence, p.spans, p.entry, p.ordinal = v.evidenceID(h), 1, h.span.Entry, h.span.Ordinal
	p.units = []index.Unit{*h.unit}
	return nil
}

func (p *ForgetPlan) wholeSession(v *view, session string) error {
	o, root, raw, qualified := evidence.ParseQualifiedSession(session)
	if !qualified {
		raw = session
	}
	units, err := v.snap.UnitsOfSession(raw)
	if err != nil {
		return err
	}
	for _, u := range units {
		src := v.sources[u.Source]
		if src == nil || qualified && (src.Origin != o || src.Root != root) {
			continue
		}
		q := evidence.QualifiedSession(src.Origin, src.Root, u.Session)
		if p.session != "" && p.session != q {
			return fault.New(evidence.CodeUsage, "this session id is known in more than one source").WithHint("give the qualified form that `mooncite recall` shows (origin:digest:id)")
		}
		p.session = q
		p.spans += u.Spans
		p.units = append(p.units, u)
	}
	switch {
	case p.session != "":
		return nil
	case !qualified:
		return fault.New(evidence.CodeUsage, "this session id is not known").WithHint("give the qualified form that `mooncite recall` shows (origin:digest:id)")
	}
	return fault.New(evidence.CodeUnavailable, "no indexed session has this id").WithHint("find it with `mooncite recall`; answers name the session")
}

// Forget takes out what was planned.
func (e *Engine) Forget(ctx context.Context, p *ForgetPlan) (ForgetOut, error) {
	held, err := e.store.Lock(ctx)
	if err != nil {
		return ForgetOut{}, err
	}
	defer held.Unlock()
	// The index may have been made anew since the plan, and its numbers given to others.
	now, err := e.PlanForget(ctx, p.session, p.evidence)
	gone := err != nil && fault.From(err).Code == evidence.CodeUnavailable
	if err != nil && !gone {
		return ForgetOut{}, err
	}
	if err := e.forgotten.add(p.session, p.evidence); err != nil {
		return ForgetOut{}, err
	}
	out := ForgetOut{Outcome: "forgotten", SessionID: p.session, Evidence: p.evidence}
	if gone {
		return out, nil
	}
	out.Spans, err = e.store.Erase(ctx, now.units, func(_ *index.Unit, s *index.Span) bool {
		return now.session != "" || s.Entry == now.entry && (s.Ordinal == now.ordinal && !s.Hidden)
	})
	return out, err
}

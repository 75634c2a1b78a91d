package change

import (
	"context"
	"slices"

	"localmcp/dodo/internal/contract"
)

// A direct is an operation that plans and applies in one call.
type direct[Out any] struct {
	s   *Service
	who contract.Principal
	// plan reads the files and makes the plan. It is called again in the turn when they
	// changed since, unless the owner was asked about what was read before.
	plan func(ctx context.Context) (*Plan, error)
	// answer is made from the plan that was applied. changeset is nil when nothing was to
	// be done.
	answer func(p *Plan, changeset *string) contract.Answer[Out]
}

func (d direct[Out]) act(ctx context.Context) (contract.Act[Out], error) {
	p, err := d.plan(ctx)
	if err != nil {
		return contract.Act[Out]{}, plain(err)
	}
	if p.idle() {
		a := d.answer(p, nil)
		a.Warnings = append(a.Warnings, "nothing was written: everything is like that already")
		return contract.Act[Out]{Done: &a}, nil
	}
	o := &order{kind: KindApply, principal: d.who.GrantID, plan: p}
	asks, err := d.s.asks(ctx, d.who)
	if err != nil {
		return contract.Act[Out]{}, err
	}
	if !asks {
		o.again = d.plan
	}
	act := contract.Act[Out]{Summary: p.Summary(), Run: func(ctx context.Context) (contract.Answer[Out], error) {
		e, notes, err := d.s.do(ctx, o)
		if err != nil {
			return contract.Answer[Out]{}, err
		}
		a := d.answer(o.plan, &e.ID)
		a.Ref = e.ID
		a.Warnings = append(a.Warnings, notes...)
		return a, nil
	}}
	if asks {
		act.Preview = approval(p)
	}
	return act, nil
}

// idle reports whether a plan changes nothing.
func (p *Plan) idle() bool {
	for _, f := range p.Files {
		if f.Action != Modify || f.BeforeHash != f.AfterHash {
			return false
		}
	}
	return true
}

func (s *Service) asks(ctx context.Context, who contract.Principal) (bool, error) {
	if s.Asks == nil {
		return false, nil
	}
	return s.Asks(ctx, who)
}

// notes are what the plan and its files have to say.
func (p *Plan) notes() []string {
	list := slices.Clone(p.remarks)
	for _, f := range p.Files {
		list = append(list, f.notes...)
	}
	return list
}

package index

import (
	"cmp"
	"slices"
)

// byTime brings the documents nearest to one end of time: those that hold all terms
// and, when they are too few, those that hold any.
func (g *gathering) byTime(q *Query) error {
	var present []string
	missing := false
	for i, e := range g.exprs {
		if g.found.Docs[i] > 0 {
			present = append(present, e)
		} else {
			missing = true
		}
	}
	if len(present) == 0 {
		return nil
	}
	if q.Exact && len(q.Phrase) > 1 {
		if missing {
			return nil
		}
		_, err := g.days(both(phraseExpression(q.Phrase), g.filter), q)
		return err
	}
	got := 0
	if !missing {
		var err error
		if got, err = g.days(both(allOf(present), g.filter), q); err != nil {
			return err
		}
	}
	if got < q.Enough && (missing || len(present) > 1) {
		_, err := g.days(both(anyOf(present), g.filter), q)
		return err
	}
	g.found.Complete = g.found.Complete && len(present) == 1
	return nil
}

// days walks months, and days within a month, from one end of time until it has
// enough.
func (g *gathering) days(expression string, q *Query) (int, error) {
	s := g.snap
	months := slices.Clone(s.months)
	if q.Order == Oldest {
		slices.Reverse(months)
	}
	slices.SortStableFunc(months, func(a, b int64) int { // spans without a time come last
		return cmp.Compare(b2i(a == 0), b2i(b == 0))
	})
	got := 0
	for i, m := range months {
		inMonth := both(expression, quote(monthToken(m)))
		docs, err := s.docs(inMonth, dayCap+1)
		if err != nil {
			return 0, err
		}
		if len(docs) <= dayCap || m == 0 {
			g.found.Complete = g.found.Complete && len(docs) <= dayCap
			n, err := g.keep(docs, &q.Filter)
			if err != nil {
				return 0, err
			}
			got += n
		} else {
			g.found.Complete = false
			first, last := dayOf(monthStart(m)), dayOf(monthStart(m+1)-1)
			for d := first; d <= last && got < q.Want; d++ {
				day := d
				if q.Order == Newest {
					day = last - (d - first)
				}
				docs, err := s.docs(both(expression, quote(dayToken(day))), dayCap)
				if err != nil {
					return 0, err
				}
				n, err := g.keep(docs, &q.Filter)
				if err != nil {
					return 0, err
				}
				got += n
			}
		}
		if got >= q.Want {
			g.found.Complete = g.found.Complete && i == len(months)-1
			break
		}
	}
	return got, nil
}

// keep takes documents that are inside the bounds and says how many they are.
func (g *gathering) keep(docs []int64, f *Filter) (int, error) {
	docs, err := g.inside(docs, f)
	for _, d := range docs {
		g.add(d, 0, false)
	}
	return len(docs), err
}

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"localmcp/mooncite/internal/corpus"
)

// found is what the bench reads of a recall's answer.
type found struct {
	Outcome    string `json:"outcome"`
	Conclusive bool   `json:"conclusive"`
	Candidates []struct {
		EvidenceID string `json:"evidenceId"`
		Excerpt    string `json:"excerpt"`
	} `json:"candidates"`
}

// first is how many findings an expected text may be among.
const first = 5

// holds reports whether one of the first findings holds text; letter case and white
// space do not count.
func (f *found) holds(text string) bool {
	want := fold(text)
	for i, c := range f.Candidates {
		if i < first && strings.Contains(fold(c.Excerpt), want) {
			return true
		}
	}
	return false
}

func fold(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// asked is the tally of the queries of one kind.
type asked struct {
	took           times
	outcomes       map[string]int
	expected, held int
}

// questions measures recall, inspect and status in one server.
func (b *bench) questions(ctx context.Context, s *subject) error {
	srv, _, err := b.open(ctx, s)
	if err != nil {
		return err
	}
	defer srv.close()
	ids, err := b.recalls(ctx, s, srv)
	if err != nil {
		return err
	}
	if err := b.inspects(ctx, s, srv, ids); err != nil {
		return err
	}
	var all times
	for range statusCalls {
		var st struct{}
		took, err := srv.call(ctx, "mooncite_status", map[string]any{}, &st)
		if err != nil {
			return err
		}
		all = append(all, took)
	}
	goal := upTo100(s.mb, goalStatus)
	b.row(s, "status, nothing changed, p50", fmt.Sprintf("%s, worst %s", show(all.median()), show(all.worst())), goalTime(goal), judge(all.median(), goal))
	var peak int64
	for _, pid := range tree(srv.cmd.Process.Pid) {
		peak = max(peak, peakOf(pid))
	}
	b.row(s, "server's peak memory after all this", fmt.Sprintf("%.0f MiB", float64(peak)/mib), "", info)
	return nil
}

// recalls asks all queries one after another and returns the citations found.
func (b *bench) recalls(ctx context.Context, s *subject, srv *server) ([]string, error) {
	kinds := map[string]*asked{}
	var all times
	var ids []string
	known := map[string]bool{}
	for _, q := range s.queries {
		var f found
		took, err := srv.call(ctx, "mooncite_recall", map[string]any{"query": q.Query}, &f)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", q.Query, err)
		}
		all = append(all, took)
		k := kinds[q.Kind]
		if k == nil {
			k = &asked{outcomes: map[string]int{}}
			kinds[q.Kind] = k
		}
		k.took = append(k.took, took)
		k.outcomes[f.Outcome]++
		if q.Expect != "" {
			k.expected++
			if f.holds(q.Expect) {
				k.held++
			} else {
				b.note("%s: not in the first %d: %s (%s, %d findings)", s.name, first, q.Query, f.Outcome, len(f.Candidates))
			}
		}
		for _, c := range f.Candidates {
			if !known[c.EvidenceID] {
				known[c.EvidenceID] = true
				ids = append(ids, c.EvidenceID)
			}
		}
	}
	goal := goalAt(s.mb)
	b.row(s, fmt.Sprintf("recall p50 of %d queries", len(all)), show(all.median()), goalTime(goal.p50), judge(all.median(), goal.p50))
	b.row(s, "recall p95", fmt.Sprintf("%s, worst %s", show(all.at(.95)), show(all.worst())), goalTime(goal.p95), judge(all.at(.95), goal.p95))
	if b.verbose {
		for _, name := range corpus.Kinds {
			if k := kinds[name]; k != nil {
				b.row(s, "  "+name+" p50 / p95", show(k.took.median())+" / "+show(k.took.at(.95)), counts(k.outcomes), info)
			}
		}
	}
	for _, name := range []string{"needle", "phrase"} {
		k := kinds[name]
		if k == nil {
			continue
		}
		v := kept
		if k.held < k.expected {
			v = over
		}
		what := map[string]string{"needle": "needles", "phrase": "planted phrases"}[name]
		b.row(s, what+" in the first five", fmt.Sprintf("%d of %d", k.held, k.expected), "all", v)
	}
	return ids, nil
}

// counts prints a tally in a fixed order.
func counts(m map[string]int) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(out, ", ")
}

// inspects verifies the citations that the recalls gave.
func (b *bench) inspects(ctx context.Context, s *subject, srv *server, ids []string) error {
	ids = ids[:min(len(ids), inspectMost)]
	outcomes := map[string]int{}
	var all times
	for _, id := range ids {
		var r struct {
			Outcome string `json:"outcome"`
		}
		took, err := srv.call(ctx, "mooncite_inspect", map[string]any{"evidence_id": id}, &r)
		if err != nil {
			return err
		}
		all = append(all, took)
		outcomes[r.Outcome]++
	}
	b.row(s, fmt.Sprintf("inspect p50 of %d citations", len(ids)), fmt.Sprintf("%s, p95 %s", show(all.median()), show(all.at(.95))), goalTime(goalInspect), judge(all.median(), goalInspect))
	v := kept
	if outcomes["verified"] < len(ids) || len(ids) == 0 {
		v = over
	}
	b.row(s, "inspect outcomes", counts(outcomes), "all verified", v)
	return nil
}

// until asks for word until an answer holds it and returns the time since begin.
func until(ctx context.Context, srv *server, begin time.Time, word string, limit time.Duration) (time.Duration, error) {
	for tries := 1; ; tries++ {
		var f found
		if _, err := srv.call(ctx, "mooncite_recall", map[string]any{"query": word}, &f); err != nil {
			return 0, err
		}
		took := time.Since(begin)
		if f.holds(word) {
			return took, nil
		}
		if took > limit {
			return 0, fmt.Errorf("%s not found in %s and %d recalls", word, show(took), tries)
		}
	}
}

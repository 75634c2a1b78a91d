package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/mooncite/internal/engine"
)

// Bands, kinds and terms of a match.
func TestMatchKinds(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "s1",
		say{"user", "We chose the amber harbor manifest.\nIt waits between attempts."},
		say{"assistant", "Her studies of retries were running; parseConfigFile failed in src/harbor/manifest_chunk.go:212 with ECONNRESET."},
		say{"user", "plain C++ and C# with --no-verify under 3.14.15, the db and the UI"},
		say{"user", "日本語の検索テストをした。issue化 も"},
		say{"user", "start of the chart"},
		say{"user", "snake_case_name, app.core.view and kebab-case-name\r\nover two lines"},
	)
	for _, c := range []struct {
		query, outcome, kind, band string
		matched, missing           []string
		text                       string // part of the first candidate
	}{
		{`"amber harbor manifest"`, "matches", "phrase_exact", "strong", []string{"amber", "harbor", "manifest"}, nil, "amber"},
		{`“amber harbor”`, "matches", "phrase_exact", "strong", []string{"amber", "harbor"}, nil, "amber"},
		{`"harbor amber"`, "no_match", "", "", nil, nil, ""},
		{`amber harbor manifest`, "matches", "text_exact", "strong", []string{"amber", "harbor", "manifest"}, nil, "amber"},
		{`manifest amber`, "matches", "terms", "strong", []string{"manifest", "amber"}, nil, "amber"},
		{`amber zeppelin quince`, "weak_leads", "terms", "partial", []string{"amber"}, []string{"zeppelin", "quince"}, "amber"},
		{`amber zeppelin quince marzipan walrus`, "weak_leads", "terms", "weak", []string{"amber"}, []string{"zeppelin", "quince", "marzipan", "walrus"}, "amber"},
		{`zeppelin`, "no_match", "", "", nil, nil, ""},
		// White space of any kind is white space.
		{`"manifest. It waits"`, "matches", "phrase_exact", "strong", []string{"manifest", "waits"}, nil, "amber"},
		{"amber harbor\nmanifest.\nIt waits", "matches", "text_exact", "strong", nil, nil, "amber"},
		{"\"kebab-case-name\nover two\"", "matches", "phrase_exact", "strong", nil, nil, "snake"},
		// Words by their stems, never by a part.
		{`study`, "matches", "terms", "strong", []string{"study"}, nil, "studies"},
		{`retrying`, "matches", "terms", "strong", []string{"retrying"}, nil, "studies"},
		{`art`, "no_match", "", "", nil, nil, ""},
		// Symbols, short words, versions.
		{`C++`, "matches", "text_exact", "strong", []string{"c++"}, nil, "C++"},
		{`C#`, "matches", "text_exact", "strong", []string{"c#"}, nil, "C++"},
		{`--no-verify`, "matches", "text_exact", "strong", nil, nil, "C++"},
		{`3.14.15`, "matches", "text_exact", "strong", []string{"3.14.15"}, nil, "C++"},
		{`3.14.16`, "no_match", "", "", nil, nil, ""},
		{`db`, "matches", "text_exact", "strong", []string{"db"}, nil, "C++"},
		{`ui`, "matches", "text_exact", "strong", []string{"ui"}, nil, "C++"},
		// Identifiers and paths, whole and by their parts.
		{`parseConfigFile`, "matches", "text_exact", "strong", nil, nil, "studies"},
		{`parseconfigfile`, "matches", "text_exact", "strong", nil, nil, "studies"},
		{`parse config`, "matches", "terms", "strong", []string{"parse", "config"}, nil, "studies"},
		{`parseConfig`, "matches", "terms", "strong", []string{"parseconfig"}, nil, "studies"},
		{`manifest_chunk.go`, "matches", "text_exact", "strong", nil, nil, "studies"},
		{`harbor/manifest_chunk.go`, "matches", "text_exact", "strong", nil, nil, "studies"},
		{`manifestChunk`, "matches", "terms", "strong", nil, nil, "studies"},
		{`econnreset`, "matches", "text_exact", "strong", nil, nil, "studies"},
		{`case_name`, "matches", "", "strong", nil, nil, "snake"},
		{`core.view`, "matches", "text_exact", "strong", nil, nil, "snake"},
		{`kebab`, "matches", "text_exact", "strong", nil, nil, "snake"},
		// Scripts without spaces.
		{`検`, "matches", "text_exact", "strong", []string{"検"}, nil, "検索"},
		{`検索`, "matches", "text_exact", "strong", []string{"検索"}, nil, "検索"},
		{`本語の検`, "matches", "text_exact", "strong", nil, nil, "検索"},
		{`索検`, "no_match", "", "", nil, nil, ""},
		{`"日本語の検索"`, "matches", "phrase_exact", "strong", nil, nil, "検索"},
		{`issue`, "matches", "text_exact", "strong", nil, nil, "検索"},
		// An identifier in words around it.
		{`why did parseConfigFile fail`, "matches", "terms", "strong", []string{"parseconfigfile", "fail"}, []string{"why"}, "studies"},
	} {
		out := w.recall(c.query)
		if out.Outcome != c.outcome {
			t.Errorf("%q: %s, want %s: %v %v", c.query, out.Outcome, c.outcome, excerpts(out), out.Warnings)
			continue
		}
		if c.outcome == "no_match" {
			if !out.Conclusive || out.Next != nil || out.Searched.Sources != 1 || out.Searched.UpTo == nil {
				t.Errorf("%q: not conclusive: %+v", c.query, out)
			}
			continue
		}
		if conclusive := c.outcome == "matches"; out.Conclusive != conclusive {
			t.Errorf("%q: conclusive %t", c.query, out.Conclusive)
		}
		m := out.Candidates[0].Match
		if m.Kind != c.kind && c.kind != "" || m.Band != c.band || !strings.Contains(out.Candidates[0].Excerpt, c.text) {
			t.Errorf("%q: %+v in %q", c.query, m, out.Candidates[0].Excerpt)
		}
		if c.matched != nil && !slices.Equal(m.MatchedTerms, c.matched) || c.missing != nil && !slices.Equal(m.MissingTerms, c.missing) {
			t.Errorf("%q: matched %q, missing %q", c.query, m.MatchedTerms, m.MissingTerms)
		}
		if out.Next == nil || out.Next.Target != engine.ToolInspect || out.Next.Arguments["evidence_id"] != out.Candidates[0].EvidenceID {
			t.Errorf("%q: next %+v", c.query, out.Next)
		}
	}
}

// A query without anything to search for claims nothing.
func TestNothingToSearchFor(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "s1", say{"user", "what was it => with :: and"})
	for _, query := range []string{"=>", "::", `"=>"`, "…", "!!! ???", `""`, "👍"} {
		out := w.recall(query)
		if out.Outcome != engine.Inconclusive || out.Conclusive || len(out.Candidates) > 0 || out.Next == nil || out.Next.Target != engine.ToolRecall {
			t.Errorf("%q: %s", query, out.Text())
		}
	}
	// Stop words alone are looked for.
	if out := w.recall("what was it"); out.Outcome != engine.Matches {
		t.Errorf("%s", out.Text())
	}
	if out := w.recall("should the"); out.Outcome == engine.NoMatch && out.Conclusive && len(out.LexicalTerms) == 0 {
		t.Errorf("%s", out.Text())
	}
}

// Nothing is indexed: unavailable, and what to do.
func TestEmptyWorld(t *testing.T) {
	w := newWorld(t)
	out := w.recall("alpha")
	if out.Outcome != engine.Unavailable || out.Conclusive || out.Generation != "empty" || out.Next == nil || out.Next.Target != engine.ToolStatus || len(out.Warnings) == 0 {
		t.Errorf("%s", out.Text())
	}
	st := w.status()
	if st.Outcome != engine.Unavailable || st.SearchUsable || st.Freshness != "unavailable" || st.Next == nil {
		t.Errorf("%s", st.Text())
	}
	if got := w.inspect("mooncite:pi:" + strings.Repeat("0", 24) + ":" + strings.Repeat("0", 24) + ":" + strings.Repeat("0", 24) + ":0"); got.Outcome != engine.Unavailable {
		t.Errorf("%s", got.Text())
	}
	w.session("pi", "s1", say{"user", "alpha"})
	w.one("alpha")
}

// Exact phrases come first, then coverage, then dialogue before tool output, and
// boilerplate last.
func TestRanking(t *testing.T) {
	w := newWorld(t)
	rel := place("claude-code", "s1")
	w.Write(t, rel, turns("claude-code", "a", 0,
		say{"tool", "cobalt lantern seen in the build log"},
		say{"user", "the cobalt one and the lantern"},
		say{"user", "we lit the cobalt lantern"},
		say{"user", "a lantern only"},
		say{"user", "cobalt only, a rare and long text about other things that does not say more than that word once"},
	))
	w.append(rel, lines(obj{"type": "user", "uuid": "m1", "parentUuid": "a4", "sessionId": "s", "isMeta": true, "cwd": "/w/app", "timestamp": at(9),
		"message": obj{"role": "user", "content": "<system-reminder>the cobalt lantern reminder</system-reminder>"}}))
	out := w.ask(engine.RecallIn{Query: "cobalt lantern", Limit: 20})
	var got []string
	for _, c := range out.Candidates {
		got = append(got, c.Role+" "+c.Match.Kind)
	}
	want := []string{"user text_exact", "tool text_exact", "user terms", "system text_exact"}
	if len(got) != 6 || !slices.Equal(got[:4], want) {
		t.Errorf("%q", got)
	}
}

// Dialogue comes before tool output of equal strength in every origin, and tool output
// is found in all of them.
func TestToolOutputIsFound(t *testing.T) {
	for _, o := range jsonlOrigins {
		t.Run(o, func(t *testing.T) {
			w := newWorld(t)
			w.session(o, "s1", say{"user", "the walrus word"}, say{"tool", "the walrus word"}, say{"tool", "only marzipan here"})
			out := w.recall("walrus word")
			role := "tool"
			if o == "pi" || o == "omp" {
				role = "toolResult"
			}
			if len(out.Candidates) != 2 || out.Candidates[0].Role != "user" || out.Candidates[1].Role != role {
				t.Fatalf("%s", out.Text())
			}
			c := w.one("marzipan")
			if c.Role != role {
				t.Errorf("role %s", c.Role)
			}
			w.verified(c.EvidenceID)
		})
	}
}

// Filters and their echo in the answer.
func TestScopes(t *testing.T) {
	w := newWorld(t)
	w.session("pi", "same", say{"user", "alpha pi"})
	w.session("omp", "same", say{"user", "alpha omp"})
	w.session("claude-code", "own", say{"user", "alpha claude"}, say{"assistant", "alpha answer"})
	all := w.ask(engine.RecallIn{Query: "alpha", Limit: 20})
	if len(all.Candidates) != 4 || all.Scope.EvidenceSpans != 4 || all.Scope.Project != nil || all.Scope.SessionID != nil {
		t.Fatalf("%s", all.Text())
	}
	var pi, claude engine.Candidate
	for _, c := range all.Candidates {
		switch c.SourceOrigin {
		case "pi":
			pi = c
		case "claude-code":
			claude = c
		}
	}
	zero := strings.Repeat("0", 64)
	for _, c := range []struct {
		in      engine.RecallIn
		outcome string
		n       int
		spans   int64
		meaning string
	}{
		{engine.RecallIn{SessionID: pi.SessionID}, "matches", 1, 1, ""},
		{engine.RecallIn{SessionID: "own"}, "matches", 2, 2, ""},
		{engine.RecallIn{SessionID: "same"}, "invalid_scope", 0, 0, "more than one source"},
		{engine.RecallIn{SessionID: "unknown"}, "invalid_scope", 0, 0, "not known"},
		{engine.RecallIn{SessionID: "pi:" + zero + ":same"}, "invalid_scope", 0, 0, "not authorized"},
		{engine.RecallIn{SessionID: pi.SessionID + "x"}, "no_match", 0, 0, ""},
		{engine.RecallIn{Project: claude.Project}, "matches", 4, 4, ""},
		{engine.RecallIn{Project: "project:app-" + strings.Repeat("0", 16)}, "no_match", 0, 0, ""},
		{engine.RecallIn{Project: "/w/app"}, "invalid_scope", 0, 0, "project"},
		{engine.RecallIn{Project: "project:"}, "invalid_scope", 0, 0, "project"},
		{engine.RecallIn{Role: "assistant"}, "matches", 1, 1, ""},
		{engine.RecallIn{Role: "Assistant"}, "invalid_scope", 0, 0, "role"},
		{engine.RecallIn{Role: "developer"}, "no_match", 0, 0, ""},
		{engine.RecallIn{SourceOrigin: "omp"}, "matches", 1, 1, ""},
		{engine.RecallIn{SourceOrigin: "claude"}, "invalid_scope", 0, 0, "source_origin"},
		{engine.RecallIn{SourceOrigin: "pi", SessionID: "own"}, "no_match", 0, 0, ""},
		{engine.RecallIn{After: at(0), Before: at(0)}, "matches", 3, 3, ""},
		{engine.RecallIn{After: "2031-05-01T12:00:01+02:00"}, "matches", 1, 1, ""},
		{engine.RecallIn{After: at(2)}, "no_match", 0, 0, ""},
		{engine.RecallIn{Before: "1969-12-31T23:59:59Z"}, "no_match", 0, 0, ""},
		{engine.RecallIn{After: at(1), Before: at(0)}, "invalid_scope", 0, 0, "later"},
		{engine.RecallIn{After: "2031-05-01"}, "invalid_scope", 0, 0, "after"},
		{engine.RecallIn{Before: "2031-05-01T10:00:00"}, "invalid_scope", 0, 0, "before"},
		{engine.RecallIn{After: "yesterday"}, "invalid_scope", 0, 0, "after"},
		{engine.RecallIn{Order: "random"}, "invalid_scope", 0, 0, "order"},
		{engine.RecallIn{Cursor: "nonsense"}, "invalid_scope", 0, 0, "cursor"},
	} {
		c.in.Query, c.in.Limit = "alpha", 20
		out := w.ask(c.in)
		if out.Outcome != c.outcome || len(out.Candidates) != c.n || out.Scope.EvidenceSpans != c.spans {
			t.Errorf("%+v: %s, %d candidates, %d spans, %s", c.in, out.Outcome, len(out.Candidates), out.Scope.EvidenceSpans, out.Meaning)
		}
		if out.Conclusive != (c.outcome == "matches" || c.outcome == "no_match") {
			t.Errorf("%+v: conclusive %t", c.in, out.Conclusive)
		}
		if c.outcome == "invalid_scope" && (!strings.Contains(out.Meaning, c.meaning) || len(out.Warnings) != 1 || out.Next == nil || out.Next.Target != engine.ToolRecall || out.Next.Arguments["query"] != "alpha") {
			t.Errorf("%+v: %s", c.in, out.Text())
		}
		if c.outcome == "no_match" && c.spans == 0 && !slices.Contains(out.Warnings, "requested filters contain no indexed evidence") {
			t.Errorf("%+v: warnings %q", c.in, out.Warnings)
		}
	}
}

// A query can be a citation, an entry, a session or a project.
func TestIdentifiersAsQuery(t *testing.T) {
	w := newWorld(t)
	w.session("pi", "s1", say{"user", "alpha pi"}, say{"user", "beta"})
	w.Write(t, place("claude-code", "c1"), turns("claude-code", "0a1b2c3d-0000-4000-8000-00000000000", 0, say{"user", "gamma"}))
	c := w.one("alpha")
	for _, query := range []string{c.EvidenceID, c.EvidenceURI, " " + c.EvidenceID + "\n"} {
		got := w.one(query)
		if got.EvidenceID != c.EvidenceID || got.Match.Kind != "metadata_exact" || got.Match.Band != "strong" || got.Match.TermCoverage != 1 {
			t.Errorf("%q: %+v", query, got)
		}
	}
	if got := w.one(c.SessionID); got.SessionID != c.SessionID || got.Match.Kind != "metadata_exact" {
		t.Errorf("%+v", got)
	}
	if got := w.one(c.Project); got.Project != c.Project || got.Match.Kind != "metadata_exact" {
		t.Errorf("%+v", got)
	}
	if got := w.one("0a1b2c3d-0000-4000-8000-000000000000"); got.Excerpt != "gamma" || got.Match.Kind != "metadata_exact" {
		t.Errorf("%+v", got)
	}
	if out := w.ask(engine.RecallIn{Query: c.EvidenceID, SourceOrigin: "omp"}); len(out.Candidates) != 0 {
		t.Errorf("a citation outside the scope: %s", out.Text())
	}
}

// Newest and oldest: ties in the order of the source, nulls last.
func TestOrderOfTime(t *testing.T) {
	w := newWorld(t)
	var out []any
	for i, stamp := range []any{at(5), at(3), at(3), nil, at(9), at(3), nil} {
		rec := obj{"type": "user", "uuid": fmt.Sprint("u", i), "cwd": "/w/app", "message": obj{"role": "user", "content": fmt.Sprint("alpha ", i)}}
		if stamp != nil {
			rec["timestamp"] = stamp
		}
		out = append(out, rec)
	}
	w.Write(t, place("claude-code", "s1"), lines(out...))
	for order, want := range map[string][]string{
		"newest": {"alpha 4", "alpha 0", "alpha 1", "alpha 2", "alpha 5", "alpha 3", "alpha 6"},
		"oldest": {"alpha 1", "alpha 2", "alpha 5", "alpha 0", "alpha 4", "alpha 3", "alpha 6"},
	} {
		got := excerpts(w.ask(engine.RecallIn{Query: "alpha", Order: order, Limit: 20}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", order, diff)
		}
	}
	// Spans without a time are in no bounds.
	if out := w.ask(engine.RecallIn{Query: "alpha", After: "1900-01-01T00:00:00Z", Limit: 20}); len(out.Candidates) != 5 || out.Scope.EvidenceSpans != 5 {
		t.Errorf("%s", out.Text())
	}
}

// many writes n sessions of turns one minute apart, so that candidates are many.
func (w *world) many(n int, text func(i int) string) {
	w.t.Helper()
	const per = 50
	for from := 0; from < n; from += per {
		var out []any
		for i := from; i < min(n, from+per); i++ {
			out = append(out, obj{"type": "user", "uuid": fmt.Sprint("u", i), "cwd": "/w/app", "timestamp": minute(i), "message": obj{"role": "user", "content": text(i)}})
		}
		w.Write(w.t, place("claude-code", fmt.Sprint("many", from)), lines(out...))
	}
}

func minute(i int) string {
	return fmt.Sprintf("2031-05-%02dT%02d:%02d:00.000Z", 1+i/60/24, i/60%24, i%60)
}

// Pages give every candidate once, in every order.
func TestPaging(t *testing.T) {
	w := newWorld(t)
	w.many(90, func(i int) string {
		if i%3 == 0 {
			return fmt.Sprintf("walrus and marzipan number %d", i)
		}
		return fmt.Sprintf("a walrus number %d %s", i, strings.Repeat("and more ", i%7))
	})
	for _, c := range []struct {
		query, order string
		want         int
	}{{"walrus", "", 90}, {"walrus marzipan", "", 90}, {"walrus", "newest", 90}, {"walrus", "oldest", 90}, {"walrus marzipan", "newest", 0}, {`"walrus and"`, "", 30}} {
		for _, limit := range []int{5, 20} {
			seen := map[string]int{}
			n, cursor := 0, ""
			for page := 0; ; page++ {
				out := w.ask(engine.RecallIn{Query: c.query, Order: c.order, Limit: limit, Cursor: cursor})
				for _, id := range ids(out) {
					if at, twice := seen[id]; twice {
						t.Fatalf("%q %s: candidate %d is candidate %d again", c.query, c.order, n, at)
					}
					seen[id] = n
					n++
				}
				if out.NextCursor == nil {
					break
				}
				if len(out.Candidates) != limit {
					t.Fatalf("%q %s: %d candidates and a further page", c.query, c.order, len(out.Candidates))
				}
				cursor = *out.NextCursor
			}
			if n != c.want && c.want > 0 || n < 30 {
				t.Errorf("%q %s, limit %d: %d candidates, want %d", c.query, c.order, limit, n, c.want)
			}
		}
	}
	// Behind the last page.
	out := w.ask(engine.RecallIn{Query: "number 77", Limit: 20})
	if out.NextCursor == nil {
		t.Fatal("no second page")
	}
}

// Paging reaches 200 candidates at most in every order and says when there may be more; pages
// that were cut to fit give cursors that are accepted.
func TestPagingReach(t *testing.T) {
	const more = "there may be more than paging reaches"
	w := newWorld(t)
	w.many(320, func(i int) string {
		if i < 200 {
			return fmt.Sprintf("walrus and marzipan number %d", i)
		}
		return fmt.Sprintf("a walrus number %d", i)
	})
	project := w.ask(engine.RecallIn{Query: "walrus"}).Candidates[0].Project
	for _, c := range []struct {
		query string
		more  bool
	}{{"walrus", true}, {`"a walrus"`, false}, {"marzipan", false}, {`"walrus and"`, false}, {project, true}} {
		for _, order := range []string{"relevance", "newest", "oldest"} {
			for _, limit := range []int{7, 20} {
				for _, cut := range []bool{false, true} {
					what := fmt.Sprintf("%q %s, limit %d, cut %t", c.query, order, limit, cut)
					seen, cursor := map[string]bool{}, ""
					var out engine.RecallOut
					for {
						out = w.ask(engine.RecallIn{Query: c.query, Order: order, Limit: limit, Cursor: cursor})
						if cut {
							out = out.Fit(9000, nil).(engine.RecallOut)
						}
						if out.Outcome == engine.InvalidScope || len(out.Candidates) == 0 {
							t.Fatalf("%s: behind %d: %s", what, len(seen), out.Text())
						}
						for _, id := range ids(out) {
							seen[id] = true
						}
						if out.NextCursor == nil {
							break
						}
						if strings.Contains(out.Text(), more) && !cut {
							t.Errorf("%s: warned before the last page", what)
						}
						cursor = *out.NextCursor
					}
					if warned := strings.Contains(out.Text(), more); warned != c.more {
						t.Errorf("%s: warned %t behind %d", what, warned, len(seen))
					}
					// By relevance the index itself may look at fewer.
					if n := len(seen); n > 200 || c.more && order != "relevance" && n != 200 {
						t.Errorf("%s: %d candidates", what, len(seen))
					}
				}
			}
		}
	}
}

func TestLimit(t *testing.T) {
	w := newWorld(t)
	w.many(30, func(i int) string { return fmt.Sprintf("walrus number %d", i) })
	for limit, want := range map[int]int{0: 5, 1: 1, 20: 20, 99: 20} {
		if out := w.ask(engine.RecallIn{Query: "walrus", Limit: limit}); len(out.Candidates) != want || out.NextCursor == nil {
			t.Errorf("limit %d: %d", limit, len(out.Candidates))
		}
	}
}

// Text that few spans hold is never lost behind text that many hold.
func TestRareAmongMany(t *testing.T) {
	w := newWorld(t)
	w.many(700, func(i int) string {
		switch i {
		case 333:
			return "we say retries here"
		case 350:
			return "amber lantern"
		}
		return fmt.Sprintf("a retry of amber number %d", i)
	})
	if c := w.one(`"retries"`); c.Match.Kind != "terms" && !strings.Contains(c.Excerpt, "retries") {
		t.Errorf("%+v %q", c.Match, c.Excerpt)
	}
	if c := w.one("amber lantern"); c.Excerpt != "amber lantern" {
		t.Errorf("%q", c.Excerpt)
	}
	// One of many spans of the day is inside the bounds.
	for _, order := range []string{"", "newest", "oldest"} {
		for _, i := range []int{3, 200, 690} {
			out := w.ask(engine.RecallIn{Query: "amber retry", After: minute(i), Before: minute(i), Order: order})
			if len(out.Candidates) != 1 || out.Scope.EvidenceSpans != 1 || !strings.HasSuffix(out.Candidates[0].Excerpt, fmt.Sprint(" ", i)) {
				t.Errorf("%s at minute %d: %s", order, i, out.Text())
			}
		}
	}
	out := w.ask(engine.RecallIn{Query: "amber", Before: minute(20), Order: "newest"})
	if len(out.Candidates) != 5 || !strings.HasSuffix(out.Candidates[0].Excerpt, " 20") {
		t.Errorf("%v", excerpts(out))
	}
}

// A phrase is found among texts that hold the same words, however many they are, and a
// path among those that hold its parts.
func TestPhraseAmongItsWords(t *testing.T) {
	for _, n := range []int{3, 13, 16, 40, 300, 700} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t)
			w.many(n+2, func(i int) string {
				switch i {
				case 1:
					return "the harbor crane lifts slowly"
				case 2:
					return "see src/crane/lift/harbor.go for it"
				}
				return fmt.Sprintf("lifts, slowly, by harbor.go of the crane in src: %d", i)
			})
			for query, want := range map[string]string{"harbor crane lifts slowly": "the harbor crane lifts slowly", `"crane lifts slowly"`: "the harbor crane lifts slowly",
				"src/crane/lift/harbor.go": "see src/crane/lift/harbor.go for it"} {
				if out := w.recall(query); len(out.Candidates) == 0 || out.Candidates[0].Excerpt != want {
					t.Errorf("%s: %q", query, excerpts(out))
				}
			}
			// Among very many, one could write a word with capitals inside.
			if out := w.recall(`"slowly lifts crane"`); len(out.Candidates) > 0 || out.Conclusive != (n <= 40) {
				t.Errorf("%s", out.Text())
			}
		})
	}
}

// Letter case does not matter, also inside the words of a path or a host name, where
// capitals part them.
func TestCapitalsInsideWords(t *testing.T) {
	pairs := [][2]string{{"push to GitHub.com/acme now", "github.com/acme"}, {"see YouTube.com", "youtube.com"}, {"an OpenAI-compatible server", "openai-compatible"}, {"open MyNotes.txt", "mynotes.txt"},
		{"set GitHub_Token", "GITHUB_TOKEN"}, {"in /Users/me/MyProject/src", "/users/me/myproject"}, {"in /Users/me/OtherProject/src", "otherproject/src"}, {"edit src/fooBar.ts", "src/foobar.ts"},
		{"call my_fooBar", "MY_FOOBAR"}, {"read data.testId", "data.testid"}, {"on macOS/iOS", "macos/ios"}, {"on macOS", "macos"}, {"with PostgreSQL-15", "postgresql-15"}, {"at McDonald's", "mcdonald's"},
		{"pull from GitHub.com/other today", `"pull from github.com/other today"`}, {"use the JavaScript-based tool", `"the javascript-based tool"`}, {"videos of YouTube.com there", `"videos of youtube.com there"`}, {"plain github.com/lower", "GitHub.com/lower"}, {"plain github.com/lower", `"GitHub.com/lower"`}, {"then typescript here", `"then TypeScript here"`}, {"visit git hub.com soon", `"visit GitHub.com soon"`}}
	for _, n := range []int{0, 400} {
		w := newWorld(t)
		w.many(len(pairs)+n, func(i int) string {
			if i < len(pairs) {
				return pairs[i][0]
			}
			return fmt.Sprintf("users of github com and youtube in src, data, my token, 15 postgresql, a javascript tool based on text: %d", i)
		})
		for _, p := range pairs {
			out := w.recall(p[1])
			if n > 0 && len(out.Candidates) == 0 && p[1][0] == '"' && !out.Conclusive {
				continue // too many hold the words to look through, and the answer says so
			}
			if len(out.Candidates) == 0 || out.Candidates[0].Excerpt != p[0] {
				t.Errorf("%d: %s: %s, conclusive %t, %q", n, p[1], out.Outcome, out.Conclusive, excerpts(out))
			}
		}
		w.absent("github.com/nobody")
	}
	// A phrase of words that very many texts hold.
	w := newWorld(t)
	w.many(200, func(i int) string {
		if i == 7 {
			return "the JavaScript tool runs"
		}
		return fmt.Sprint("this tool runs the javascript ", i)
	})
	if out := w.recall(`"the javascript tool runs"`); len(out.Candidates) == 0 && out.Conclusive {
		t.Errorf("%s", out.Text())
	}
}

// A query of a thousand words is a query.
func TestLongQuery(t *testing.T) {
	w := newWorld(t)
	var words []string
	for i := range 150 {
		words = append(words, fmt.Sprint("word", i, "x"))
	}
	text := strings.Join(words, " ")
	w.session("claude-code", "s1", say{"user", "alpha"}, say{"user", text})
	if c := w.one(text); c.Match.Kind != "text_exact" {
		t.Errorf("%+v", c.Match)
	}
	slices.Reverse(words)
	if c := w.one(strings.Join(words, " ")); c.Match.Band != "strong" {
		t.Errorf("%+v", c.Match)
	}
}

func TestTiming(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "s1", say{"user", "alpha"})
	if out := w.recall("alpha"); out.Timing != nil {
		t.Error("timing without being asked")
	}
	out := w.ask(engine.RecallIn{Query: "alpha", DebugTiming: true})
	if out.Timing == nil || out.Timing.WorkflowID == "" || out.Timing.RecallMs == nil || *out.Timing.RecallMs <= 0 {
		t.Fatalf("%+v", out.Timing)
	}
	got, err := w.e().Inspect(t.Context(), engine.InspectIn{EvidenceID: out.Candidates[0].EvidenceID, DebugTiming: true, WorkflowID: out.Timing.WorkflowID})
	if err != nil || got.Timing == nil || !*got.Timing.Combined || *got.Timing.CombinedMs < *got.Timing.InspectMs {
		t.Errorf("%v %+v", err, got.Timing)
	}
	got, err = w.e().Inspect(t.Context(), engine.InspectIn{EvidenceID: out.Candidates[0].EvidenceID, DebugTiming: true, WorkflowID: "unknown"})
	if err != nil || got.Timing == nil || *got.Timing.Combined || got.Timing.Warning == "" {
		t.Errorf("%v %+v", err, got.Timing)
	}
}

package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"localmcp/internal/op"
	"localmcp/mooncite/internal/memory"
)

func ids(out memory.RecallOut) []string {
	var list []string
	for _, c := range out.Candidates {
		list = append(list, c.MemoryID)
	}
	return list
}

// Words are found as those of evidence are: in other forms, by parts of identifiers, in
// scripts without spaces, with symbols; and each candidate says how well it matches.
func TestRecallByWords(t *testing.T) {
	w := newWorld(t)
	code := w.unanchored("parseManifestChunk retries at most six times.")
	cpp := w.unanchored("The bindings are written in C++.")
	cjk := w.unanchored("日本語の検索テスト。")
	w.unanchored("Nothing of the kind.")
	for query, want := range map[string][]string{
		"retry": {code.MemoryID}, "manifest": {code.MemoryID}, "PARSEMANIFESTCHUNK": {code.MemoryID}, "C++": {cpp.MemoryID}, "検索": {cjk.MemoryID},
		"zebra": nil, "=>": nil, code.MemoryID: {code.MemoryID}, aMemory: nil, "what is it": nil,
	} {
		out := w.recall(`{"query":` + quoted(query) + `}`)
		if !slices.Equal(ids(out), want) || (out.Outcome == "matches") != (want != nil) || out.Query != query {
			t.Errorf("%q finds %v, want %v: %s", query, ids(out), want, out.Text())
		}
	}
	if out := w.recall(`{"query":"=>"}`); len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "no word") {
		t.Errorf("%q", out.Warnings)
	}
	for query, want := range map[string]memory.Relevance{
		"retry manifest":                {Kind: "lexical", Band: "strong", MatchedTerms: []string{"retry", "manifest"}},
		"retry zebra":                   {Kind: "lexical", Band: "partial", MatchedTerms: []string{"retry"}},
		"retry zebra lion tiger bear":   {Kind: "lexical", Band: "weak", MatchedTerms: []string{"retry"}},
		"the retry of this is not that": {Kind: "lexical", Band: "partial", MatchedTerms: []string{"retry"}},
		code.MemoryID:                   {Kind: "exact_id", Band: "strong", MatchedTerms: []string{code.MemoryID}},
	} {
		out := w.recall(`{"query":` + quoted(query) + `}`)
		if len(out.Candidates) != 1 || out.Candidates[0].Relevance.Kind != want.Kind || out.Candidates[0].Relevance.Band != want.Band || !slices.Equal(out.Candidates[0].Relevance.MatchedTerms, want.MatchedTerms) {
			t.Errorf("%q: %+v", query, out.Candidates)
		}
	}
}

// What holds more and rarer words of the query comes first; salience changes nothing.
func TestRecallOrder(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		w.unanchored(fmt.Sprintf("The harbour log of day %d.", i))
	}
	both := w.unanchored("A porpoise swam through the harbour at noon.")
	rare := w.unanchored("A porpoise was seen.")
	w.write(fmt.Sprintf(`{"operation":"reinforce","memory_id":%q,"expected_revision":1,"expected_metadata_version":1,"salience":100}`, rare.MemoryID))
	out := w.recall(`{"query":"porpoise harbour","limit":3}`)
	if got := ids(out); len(got) != 3 || got[0] != both.MemoryID || got[1] != rare.MemoryID {
		t.Errorf("%s", out.Text())
	}
}

// The pages of an answer give every memory once.
func TestRecallPages(t *testing.T) {
	w := newWorld(t)
	want := map[string]bool{}
	for i := range 23 {
		want[w.unanchored(fmt.Sprintf("Buoy number %d is red.", i)).MemoryID] = true
	}
	w.anchored("A buoy that changed.", "trimmed to four")
	w.replace(lantern, "four millimetres.\"", "nine millimetres.\"")
	seen, pages := map[string]bool{}, 0
	for cursor := ""; ; pages++ {
		args := `{"query":"buoy","limit":6}`
		if cursor != "" {
			args = fmt.Sprintf(`{"query":"buoy","limit":6,"cursor":%q}`, cursor)
		}
		out := w.recall(args)
		for _, id := range ids(out) {
			if seen[id] || !want[id] {
				t.Errorf("%s again, or hidden", id)
			}
			seen[id] = true
		}
		if out.NextCursor == nil {
			break
		}
		cursor = *out.NextCursor
	}
	if len(seen) != len(want) || pages < 3 {
		t.Errorf("%d of %d in %d pages", len(seen), len(want), pages)
	}
}

// A project sees its own memories and global ones.
func TestRecallByProject(t *testing.T) {
	w := newWorld(t)
	here := w.anchored("The cormorant nests here.", "trimmed to four")
	there := w.anchored("The cormorant nests there.", "half past six")
	global := w.unanchored("The cormorant is black.")
	for project, want := range map[string][]string{
		"": {here.MemoryID, there.MemoryID, global.MemoryID}, here.Scope.Project: {here.MemoryID, global.MemoryID}, "project:none-0123456789abcdef": {global.MemoryID},
	} {
		out := w.recall(fmt.Sprintf(`{"query":"cormorant","project":%q}`, project))
		got := ids(out)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", project, got, want)
		}
		if out := w.recall(fmt.Sprintf(`{"query":%q,"project":%q}`, there.MemoryID, project)); (len(out.Candidates) == 1) != slices.Contains(want, there.MemoryID) {
			t.Errorf("%q by its id: %s", project, out.Text())
		}
	}
	// Nothing outside the project is shown as related either.
	derived := w.derived("Cormorants nest everywhere.", "supports", here, there)
	out := w.recall(fmt.Sprintf(`{"query":%q,"related_limit":8}`, derived.MemoryID))
	if len(out.Candidates[0].Related) != 2 {
		t.Errorf("%s", out.Text())
	}
	out = w.recall(fmt.Sprintf(`{"query":%q,"related_limit":8,"project":%q}`, derived.MemoryID, here.Scope.Project))
	if r := out.Candidates[0].Related; len(r) != 1 || r[0].MemoryID != here.MemoryID || strings.Contains(out.Text(), "nests there") {
		t.Errorf("%s", out.Text())
	}
}

// Relations are followed one step: first what a memory is derived from, then what is
// derived from it, also behind many that may not be shown.
func TestRelated(t *testing.T) {
	w := newWorld(t)
	one, two := w.unanchored("Parent one."), w.unanchored("Parent two.")
	far := w.derived("A grandparent's other child.", "supports", one)
	m := w.derived("The puffin digs.", "refines", one, two)
	var children []memory.WriteOut
	for i := range 70 { // more than two pages
		children = append(children, w.derived(fmt.Sprintf("Child %d.", i), "contradicts", m))
	}
	slices.SortFunc(children, func(a, b memory.WriteOut) int { return strings.Compare(a.MemoryID, b.MemoryID) })
	for _, c := range children[:69] {
		w.archive(c, 1)
	}
	related := func(args string) (list []string) {
		out := w.recall(fmt.Sprintf(`{"query":%q%s}`, m.MemoryID, args))
		for _, r := range out.Candidates[0].Related {
			list = append(list, r.Direction+" "+r.Relation+" "+r.MemoryID)
			if r.Reason != "because of it" || r.Revision != 1 || !r.IsCurrent || r.ProvenanceState != "not_evidence_backed" {
				t.Errorf("%+v", r)
			}
		}
		if strings.Contains(out.Text(), far.MemoryID) {
			t.Error("two steps were taken")
		}
		return list
	}
	parents := []string{"outgoing refines " + one.MemoryID, "outgoing refines " + two.MemoryID}
	if got := related(""); got != nil {
		t.Errorf("not asked for: %v", got)
	}
	if got := related(`,"related_limit":1`); !slices.Equal(got, parents[:1]) {
		t.Errorf("%v", got)
	}
	if got, want := related(`,"related_limit":8`), append(slices.Clone(parents), "incoming contradicts "+children[69].MemoryID); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	got := related(`,"related_limit":8,"include_archived":true`)
	if len(got) != 8 || got[2] != "incoming contradicts "+children[0].MemoryID || got[7] != "incoming contradicts "+children[5].MemoryID {
		t.Errorf("%v", got)
	}
	// A relation leads to an exact revision, which may not be the current one.
	w.write(fmt.Sprintf(`{"operation":"revise","memory_id":%q,"expected_revision":1,"interpretation":"Parent one, anew.","provenance":{"kind":"unanchored","basis_note":"x"}}`, one.MemoryID))
	out := w.recall(fmt.Sprintf(`{"query":%q,"related_limit":1}`, m.MemoryID))
	if r := out.Candidates[0].Related[0]; r.IsCurrent || r.Revision != 1 || r.InterpretationExcerpt != "Parent one." {
		t.Errorf("%+v", r)
	}
}

// A query that fits very many memories says that it was cut.
func TestVeryManyMatches(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 600 memories")
	}
	w := newWorld(t)
	first := w.unanchored("The tern of the first day was albino.")
	for i := range 599 {
		w.unanchored(fmt.Sprintf("The tern of day %d.", i))
	}
	out := w.recall(`{"query":"tern albino"}`)
	if len(out.Candidates) != 5 || out.Candidates[0].MemoryID != first.MemoryID || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "200") {
		t.Errorf("%s", out.Text())
	}
}

// Answers that are too long are cut in both forms alike: what matters stays, what was
// cut is counted, and what was left out follows.
func TestCutAnswers(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("The lighthouse keeper writes a long line. ", 190)
	var list []memory.WriteOut
	for i := range 12 {
		list = append(list, w.unanchored(fmt.Sprintf("Petrel %d. %s", i, long)))
	}
	child := w.derived("Petrel of petrels. "+long, "supports", list[:8]...)
	const most = 9700
	detail := &memory.Detail{Kind: "progressive_result"}
	fits := func(what string, v interface{ Text() string }) {
		t.Helper()
		if n := len(encoded(t, v)); n > most || len(v.Text()) > most {
			t.Errorf("%s: %d bytes as JSON, %d as text", what, n, len(v.Text()))
		}
	}
	whole := w.recall(`{"query":"petrel","limit":20,"related_limit":8}`)
	cut := whole.Fit(most, detail).(memory.RecallOut)
	fits("recall", cut)
	if len(whole.Candidates) != 13 || len(whole.Candidates[0].Interpretation) < 7000 {
		t.Error("the whole answer was changed")
	}
	seen := map[string]bool{}
	for {
		for _, c := range cut.Candidates {
			if len(c.Interpretation)+c.OmittedBytes < 7000 || len(c.Interpretation) < 500 || seen[c.MemoryID] {
				t.Errorf("%d bytes, %d omitted; seen %t", len(c.Interpretation), c.OmittedBytes, seen[c.MemoryID])
			}
			seen[c.MemoryID] = true
		}
		if cut.NextCursor == nil {
			break
		}
		cut = w.recall(fmt.Sprintf(`{"query":"petrel","limit":20,"related_limit":8,"cursor":%q}`, *cut.NextCursor)).Fit(most, detail).(memory.RecallOut)
		fits("recall", cut)
	}
	if len(seen) != 13 {
		t.Errorf("%d of 13 memories came", len(seen))
	}
	fits("write", child.Fit(most, detail).(memory.WriteOut))
	if len(child.Interpretation) < 7000 {
		t.Error("the whole answer was changed")
	}
	proposal := w.write(fmt.Sprintf(`{"operation":"propose_skill_candidate","sources":[{"memory_id":%q,"revision":1}],"artifact":{"name":"a","description":"b","instructions":%q}}`, child.MemoryID, strings.Repeat(long, 2)))
	short := proposal.Fit(most, detail).(memory.WriteOut)
	fits("propose", short)
	if short.OmittedBytes == 0 || len(proposal.Candidate.Artifact.Instructions) < 14000 {
		t.Errorf("%d omitted, %d in the whole", short.OmittedBytes, len(proposal.Candidate.Artifact.Instructions))
	}
	k := w.inspect(fmt.Sprintf(`{"kind":"skill_candidate","candidate_id":%q}`, proposal.Candidate.CandidateID))
	fits("inspect of a candidate", k.Fit(most, detail).(memory.InspectOut))
	if len(k.Artifact.Instructions) < 14000 {
		t.Error("the whole answer was changed")
	}
	// Much evidence around a long interpretation.
	var ids []string
	for i := range 8 {
		text := fmt.Sprintf("Entry skua%d. %s", i, strings.Repeat("Wind from the west, glass falling. ", 200))
		w.append(lantern, turn("/srv/lantern", 20+i, "user", text))
		ids = append(ids, quoted(w.evidence(fmt.Sprintf("skua%d", i))))
	}
	m := w.write(fmt.Sprintf(`{"operation":"create","interpretation":%q,"provenance":{"kind":"verified","evidence_ids":[%s]}}`, long, strings.Join(ids, ",")))
	shown := w.inspect(fmt.Sprintf(`{"kind":"revision","memory_id":%q,"window":2}`, m.MemoryID))
	small := shown.Fit(most, detail).(memory.InspectOut)
	if len(encoded(t, shown)) < 20000 || len(shown.Anchors[0].Inspection.Window) < 3 {
		t.Error("the whole answer was changed")
	}
	if len(small.Anchors) != 8 || small.Anchors[7].Inspection.Outcome != "verified" || small.OmittedBytes == 0 || small.Interpretation == "" {
		t.Errorf("%s", small.Text())
	}
	if n := len(encoded(t, small)); n > 2*most { // eight anchors alone, as saved and as they are, are longer than an answer should be
		t.Errorf("%d bytes", n)
	}
	var _ op.Fitter = small
}

package memory_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/memory"
)

func deletion(m memory.WriteOut, revision, version int) string {
	return fmt.Sprintf(`{"kind":"memory","memory_id":%q,"expected_revision":%d,"expected_metadata_version":%d}`, m.MemoryID, revision, version)
}

// What others rest on is not deleted, and the answer names it; what only rests on
// itself is.
func TestBlockedDeletion(t *testing.T) {
	w := newWorld(t)
	base := w.unanchored("A base.")
	child := w.derived("A child.", "supports", base)
	k := w.write(fmt.Sprintf(`{"operation":"propose_skill_candidate","sources":[{"memory_id":%q,"revision":1}],"artifact":{"name":"a","description":"b","instructions":"c"}}`, base.MemoryID)).Candidate
	got := w.delete(deletion(base, 1, 1))
	want := memory.DeleteOut{Kind: "derived_memory_delete", Outcome: "blocked", MemoryID: base.MemoryID, DependencyCount: 2, Dependencies: []memory.Dependency{
		{Kind: "relation", MemoryID: child.MemoryID, Revision: 1, Relation: "supports"}, {Kind: "skill_candidate", CandidateID: k.CandidateID}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if out := w.recall(`{"query":"base"}`); len(out.Candidates) != 1 {
		t.Errorf("a blocked deletion changed something: %s", out.Text())
	}
	w.refused(evidence.CodeConflict, "expected_state is approved, but the current one is pending_review", memory.ToolDelete, fmt.Sprintf(`{"kind":"skill_candidate","candidate_id":%q,"expected_state":"approved"}`, k.CandidateID))
	if got := w.delete(fmt.Sprintf(`{"kind":"skill_candidate","candidate_id":%q,"expected_state":"pending_review"}`, k.CandidateID)); got.Outcome != "deleted" || got.Kind != "skill_candidate_delete" || got.CandidateID != k.CandidateID {
		t.Errorf("%+v", got)
	}
	if got := w.delete(deletion(base, 1, 1)); got.DependencyCount != 1 {
		t.Errorf("%+v", got)
	}
	// A child whose own revisions rest on each other.
	w.write(fmt.Sprintf(`{"operation":"revise","memory_id":%q,"expected_revision":1,"interpretation":"A child, anew.","provenance":{"kind":"derived","parents":[%s]}}`, child.MemoryID, parentsOf("supersedes", child)))
	w.refused(evidence.CodeConflict, "expected_revision is 1, but the current one is 2", memory.ToolDelete, deletion(child, 1, 1))
	w.refused(evidence.CodeConflict, "expected_metadata_version is 2, but the current one is 1", memory.ToolDelete, deletion(child, 2, 2))
	if got := w.delete(deletion(child, 2, 1)); got.Outcome != "deleted" || got.DeletedRevisions != 2 {
		t.Errorf("%+v", got)
	}
	if got := w.delete(deletion(base, 1, 1)); got.Outcome != "deleted" || got.DeletedRevisions != 1 {
		t.Errorf("%+v", got)
	}
	if st := w.store.Status(t.Context()); st.Memories != 0 || st.Revisions != 0 || st.SkillCandidates != 0 {
		t.Errorf("%s", st.Text())
	}
}

// Relations come first, and no more than eight dependencies are named.
func TestManyDependencies(t *testing.T) {
	w := newWorld(t)
	base := w.unanchored("A base.")
	for range 3 {
		w.write(fmt.Sprintf(`{"operation":"propose_skill_candidate","sources":[{"memory_id":%q,"revision":1}],"artifact":{"name":"a","description":"b","instructions":"c"}}`, base.MemoryID))
	}
	for i := range 10 {
		w.derived(fmt.Sprintf("Child %d.", i), "refines", base)
		got := w.delete(deletion(base, 1, 1))
		relations := 0
		for n, d := range got.Dependencies {
			if d.Kind == "relation" {
				if relations++; relations != n+1 {
					t.Error("a candidate stands before a relation")
				}
			}
		}
		if got.DependencyCount != int64(i+4) || len(got.Dependencies) != min(8, i+4) || relations != min(8, i+1) {
			t.Errorf("%d relations: %+v", i+1, got)
		}
	}
}

// What was deleted is not in the files any more.
func TestDeletedTextIsGone(t *testing.T) {
	w := newWorld(t)
	keep := w.unanchored("Something else that stays.")
	var list []memory.WriteOut
	for i := range 20 {
		list = append(list, w.unanchored(fmt.Sprintf("Secret word xylophonic%d of the harbour.", i)))
	}
	k := w.write(fmt.Sprintf(`{"operation":"propose_skill_candidate","sources":[{"memory_id":%q,"revision":1}],"artifact":{"name":"xylophonic","description":"xylophonic","instructions":"xylophonic"}}`, list[0].MemoryID)).Candidate
	if !w.filesHold("xylophonic") {
		t.Fatal("the test looks in the wrong place")
	}
	w.delete(fmt.Sprintf(`{"kind":"skill_candidate","candidate_id":%q,"expected_state":"pending_review"}`, k.CandidateID))
	for _, m := range list {
		w.delete(deletion(m, 1, 1))
	}
	if w.filesHold("xylophonic") {
		t.Error("deleted text is still in the files")
	}
	if out := w.recall(`{"query":"stays"}`); len(out.Candidates) != 1 || out.Candidates[0].MemoryID != keep.MemoryID {
		t.Errorf("%s", out.Text())
	}
}

// filesHold reports whether a file of learned memory holds a text.
func (w *world) filesHold(text string) bool {
	w.t.Helper()
	names, err := filepath.Glob(w.database() + "*")
	if err != nil || len(names) == 0 {
		w.t.Fatal(names, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}

// What is to be deleted with a piece of evidence: by which revision, along which relations,
// and in an order that works.
func TestRestingOn(t *testing.T) {
	w := newWorld(t)
	const said = "trimmed to four millimetres"
	id := w.evidence(said)
	now := w.anchored("Wicks are short.", said)
	before := w.anchored("Wicks are trimmed.", said)
	w.write(fmt.Sprintf(`{"operation":"revise","memory_id":%q,"expected_revision":1,"interpretation":"Something else.","provenance":{"kind":"unanchored","basis_note":"x"}}`, before.MemoryID))
	child := w.derived("Short wicks, long nights.", "refines", before)
	grandchild := w.derived("Nights are long.", "refines", child)
	both := w.write(fmt.Sprintf(`{"operation":"create","interpretation":"Both.","scope":{"kind":"global"},"provenance":{"kind":"derived","parents":[%s],"evidence_ids":[%q]}}`, parentsOf("supports", now), id))
	w.anchored("The ferry is early.", "half past six")
	newer := before
	newer.Revision = 2
	w.derived("Of the newer one.", "refines", newer)
	skill := w.write(fmt.Sprintf(`{"operation":"propose_skill_candidate","sources":[{"memory_id":%q,"revision":1}],"artifact":{"name":"trim","description":"d","instructions":"i"}}`, child.MemoryID)).Candidate

	list, err := w.store.RestingOn(t.Context(), "", id)
	if err != nil {
		t.Fatal(err)
	}
	how := map[string]string{}
	for _, r := range list {
		how[r.ID] = r.How
	}
	want := map[string]string{now.MemoryID: memory.RestsNow, before.MemoryID: memory.RestedBefore, child.MemoryID: memory.RestsDerived,
		grandchild.MemoryID: memory.RestsDerived, both.MemoryID: memory.RestsNow, skill.CandidateID: memory.RestsSkill}
	if diff := cmp.Diff(want, how); diff != "" {
		t.Error(diff)
	}
	for _, r := range list {
		if r.How == memory.RestsSkill {
			w.delete(fmt.Sprintf(`{"kind":"skill_candidate","candidate_id":%q,"expected_state":"pending_review"}`, r.ID))
			continue
		}
		at := w.inspect(fmt.Sprintf(`{"kind":"revision","memory_id":%q}`, r.ID))
		out := w.delete(fmt.Sprintf(`{"kind":"memory","memory_id":%q,"expected_revision":%d,"expected_metadata_version":%d}`, r.ID, at.CurrentRevision, at.Lifecycle.MetadataVersion))
		if want := map[bool]string{true: "blocked", false: "deleted"}[r.ID == before.MemoryID]; out.Outcome != want { // another one rests on its newer revision
			t.Errorf("%s %s: %s", r.How, r.ID, out.Outcome)
		}
	}
}

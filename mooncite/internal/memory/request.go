package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/evidence"
)

// Names of the write operations.
const (
	opCreate      = "create"
	opRevise      = "revise"
	opConsolidate = "consolidate"
	opActivate    = "activate"
	opArchive     = "archive"
	opReinforce   = "reinforce"
	opPropose     = "propose_skill_candidate"
	opReview      = "review_skill_candidate"
)

// WriteIn is what mooncite_memory_write takes. Which fields an operation takes is in
// fieldsOf.
type WriteIn struct {
	Operation               string        `json:"operation" enum:"create|revise|consolidate|activate|archive|reinforce|propose_skill_candidate|review_skill_candidate" doc:"create, consolidate: interpretation, provenance, scope. revise: these and memory_id, expected_revision. activate, archive, reinforce: memory_id, expected_revision, expected_metadata_version (reinforce: salience). propose_skill_candidate: sources, artifact. review_skill_candidate: candidate_id, expected_state, decision, note."`
	MemoryID                string        `json:"memory_id,omitempty" maxLength:"64"`
	ExpectedRevision        *int64        `json:"expected_revision,omitempty" min:"1" doc:"The current revision as last read; if it is another now, nothing is changed."`
	ExpectedMetadataVersion *int64        `json:"expected_metadata_version,omitempty" min:"1" doc:"lifecycle.metadataVersion as last read; if it is another now, nothing is changed."`
	Interpretation          string        `json:"interpretation,omitempty" maxLength:"8192" doc:"What was learned, in your words, at most 8192 bytes. It is kept as your interpretation, never as evidence."`
	Scope                   *ScopeIn      `json:"scope,omitempty" doc:"Where it holds. Absent: revise keeps it, create and consolidate take the one project of everything it rests on."`
	Provenance              *ProvenanceIn `json:"provenance,omitempty" doc:"What it rests on. consolidate takes derived with 2 to 8 parents."`
	Salience                *int64        `json:"salience,omitempty" min:"0" max:"100"`
	Sources                 []SourceIn    `json:"sources,omitempty" minItems:"1" maxItems:"8" doc:"The exact revisions that the skill is made from."`
	Artifact                *ArtifactIn   `json:"artifact,omitempty" doc:"The proposed skill. It is kept for the owner's review and never installed."`
	CandidateID             string        `json:"candidate_id,omitempty" maxLength:"64"`
	ExpectedState           string        `json:"expected_state,omitempty" enum:"pending_review"`
	Decision                string        `json:"decision,omitempty" enum:"approved|rejected" doc:"As the owner decided."`
	Note                    string        `json:"note,omitempty" maxLength:"2048" doc:"Why it was decided so, at most 2048 bytes."`
}

// ScopeIn is where a memory is to hold.
type ScopeIn struct {
	Kind    string `json:"kind" enum:"global|project"`
	Project string `json:"project,omitempty" maxLength:"256" doc:"A project as answers name it (project:...), when kind is project."`
}

// ProvenanceIn is what a revision is to rest on.
type ProvenanceIn struct {
	Kind        string     `json:"kind" enum:"verified|derived|current_context|unanchored" doc:"verified: evidence_ids, each inspected now. derived: parents, perhaps evidence_ids. current_context: context_note, perhaps evidence_ids. unanchored: basis_note."`
	EvidenceIDs []string   `json:"evidence_ids,omitempty" minLength:"1" maxLength:"2048" maxItems:"8" doc:"Evidence ids or URIs that mooncite_recall gave."`
	Parents     []ParentIn `json:"parents,omitempty" maxItems:"8" doc:"The exact revisions it is derived from."`
	ContextNote string     `json:"context_note,omitempty" maxLength:"2048" doc:"What was going on when it was learned, at most 2048 bytes."`
	BasisNote   string     `json:"basis_note,omitempty" maxLength:"2048" doc:"Why it is written down although nothing shows it, at most 2048 bytes."`
}

// ParentIn is an exact revision that another is derived from.
type ParentIn struct {
	MemoryID string `json:"memory_id" maxLength:"64"`
	Revision int64  `json:"revision" min:"1"`
	Relation string `json:"relation" enum:"supports|contradicts|refines|supersedes" doc:"What the new revision does to the parent."`
	Reason   string `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, at most 1024 bytes."`
}

// SourceIn is an exact revision that a skill is made from.
type SourceIn struct {
	MemoryID string `json:"memory_id" maxLength:"64"`
	Revision int64  `json:"revision" min:"1"`
}

// ArtifactIn is a proposed skill.
type ArtifactIn struct {
	Name         string `json:"name" minLength:"1" maxLength:"80" doc:"At most 80 bytes."`
	Description  string `json:"description" minLength:"1" maxLength:"2048" doc:"At most 2048 bytes."`
	Instructions string `json:"instructions" minLength:"1" maxLength:"16384" doc:"At most 16384 bytes."`
}

// fieldsOf says which fields an operation needs and which it may have besides.
var fieldsOf = map[string]struct{ needs, may []string }{
	opCreate:      {[]string{"interpretation", "provenance"}, []string{"scope"}},
	opConsolidate: {[]string{"interpretation", "provenance"}, []string{"scope"}},
	opRevise:      {[]string{"memory_id", "expected_revision", "interpretation", "provenance"}, []string{"scope"}},
	opActivate:    {[]string{"memory_id", "expected_revision", "expected_metadata_version"}, nil},
	opArchive:     {[]string{"memory_id", "expected_revision", "expected_metadata_version"}, nil},
	opReinforce:   {[]string{"memory_id", "expected_revision", "expected_metadata_version", "salience"}, nil},
	opPropose:     {[]string{"sources", "artifact"}, nil},
	opReview:      {[]string{"candidate_id", "expected_state", "decision", "note"}, nil},
}

// A given field is one that may or may not be in a request.
type given struct {
	name string
	is   bool
}

func (in *WriteIn) given() []given {
	return []given{
		{"memory_id", in.MemoryID != ""}, {"expected_revision", in.ExpectedRevision != nil}, {"expected_metadata_version", in.ExpectedMetadataVersion != nil},
		{"interpretation", in.Interpretation != ""}, {"scope", in.Scope != nil}, {"provenance", in.Provenance != nil}, {"salience", in.Salience != nil},
		{"sources", in.Sources != nil}, {"artifact", in.Artifact != nil}, {"candidate_id", in.CandidateID != ""}, {"expected_state", in.ExpectedState != ""},
		{"decision", in.Decision != ""}, {"note", in.Note != ""},
	}
}

// checkFields refuses a request that lacks what it needs or has what it does not take.
func checkFields(what string, fields []given, needs, may []string) error {
	for _, f := range fields {
		switch {
		case !f.is && slices.Contains(needs, f.name):
			return refuse("%s needs %s", what, f.name).WithHint("%s takes %s", what, takes(needs, may))
		case f.is && !slices.Contains(needs, f.name) && !slices.Contains(may, f.name):
			return refuse("%s takes no %s", what, f.name).WithHint("%s takes %s", what, takes(needs, may))
		}
	}
	return nil
}

func takes(needs, may []string) string {
	s := strings.Join(needs, ", ")
	if len(may) > 0 {
		s += ", and may have " + strings.Join(may, ", ")
	}
	return s
}

// draft reads what a revision is to say and to rest on. Its anchors are citations
// still, not proved yet.
func (s *Store) draft(in *WriteIn) (*revision, []string, error) {
	r := &revision{}
	var err error
	if r.interpretation, err = (field{"interpretation", maxInterpretation, true}).clean(in.Interpretation); err != nil {
		return nil, nil, err
	}
	if err := s.noSecret("interpretation", r.interpretation); err != nil {
		return nil, nil, err
	}
	p := in.Provenance
	r.kind = p.Kind
	what := "provenance." + r.kind
	fields := []given{{"evidence_ids", len(p.EvidenceIDs) > 0}, {"parents", len(p.Parents) > 0}, {"context_note", p.ContextNote != ""}, {"basis_note", p.BasisNote != ""}}
	switch r.kind {
	case verified:
		err = checkFields(what, fields, []string{"evidence_ids"}, nil)
	case derived:
		err = checkFields(what, fields, []string{"parents"}, []string{"evidence_ids"})
	case currentContext:
		if err = checkFields(what, fields, []string{"context_note"}, []string{"evidence_ids"}); err == nil {
			r.note, err = field{"context_note", maxNote, false}.clean(p.ContextNote)
		}
	case unanchored:
		if err = checkFields(what, fields, []string{"basis_note"}, nil); err == nil {
			r.note, err = field{"basis_note", maxNote, false}.clean(p.BasisNote)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if err := s.noSecret("the note", r.note); err != nil {
		return nil, nil, err
	}
	if in.Operation == opConsolidate && (r.kind != derived || len(p.Parents) < 2) {
		return nil, nil, refuse("consolidate needs provenance of the kind derived with at least 2 parents")
	}
	if len(p.EvidenceIDs) > maxEvidence || len(p.Parents) > maxParents {
		return nil, nil, refuse("a revision rests on at most %d pieces of evidence and %d parents", maxEvidence, maxParents)
	}
	for i, x := range p.Parents {
		at := fmt.Sprintf("provenance.parents[%d].", i)
		if err := checkMemoryID(at+"memory_id", x.MemoryID); err != nil {
			return nil, nil, err
		}
		reason, err := field{at + "reason", maxReason, false}.clean(x.Reason)
		if err != nil {
			return nil, nil, err
		}
		if err := s.noSecret(at+"reason", reason); err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(r.parents, func(o parent) bool { return o.memory == x.MemoryID && o.revision == x.Revision }) {
			return nil, nil, refuse("provenance.parents names revision %d of %s twice", x.Revision, x.MemoryID)
		}
		r.parents = append(r.parents, parent{x.MemoryID, x.Revision, x.Relation, reason})
	}
	return r, p.EvidenceIDs, nil
}

// noSecret refuses a text in which a secret of a well-known shape stands: a memory
// would keep it in a second and longer-lived place.
func (s *Store) noSecret(name, text string) error {
	if kind, found := s.evidence.SecretIn(text); found {
		return fault.New(evidence.CodeRefused, "%s holds what looks like a secret (%s), which is not kept", name, kind).
			WithHint("write it without the secret")
	}
	return nil
}

// prove inspects the evidence that a revision is to rest on. What is not verified, or
// is mooncite's own answer, is no evidence.
func (s *Store) prove(ctx context.Context, ids []string) ([]anchor, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var refs []evidence.Ref
	for i, id := range ids {
		id = strings.TrimSpace(id)
		if _, ok := evidence.ParseLocator(id); !ok {
			return nil, refuse("provenance.evidence_ids[%d] is not an evidence id or URI", i).WithHint("use one that mooncite_recall gave")
		}
		refs = append(refs, evidence.Ref{Locator: id})
	}
	_, found, err := s.evidence.ResolveAnchors(ctx, refs)
	if err != nil {
		return nil, err
	}
	var out []anchor
	for i, ref := range refs {
		proof, err := s.evidence.Prove(ctx, ref.Locator, 0)
		if err != nil {
			return nil, err
		}
		a := found[i].Anchor
		at := fmt.Sprintf("provenance.evidence_ids[%d]", i)
		switch {
		case proof.Outcome != verified:
			return nil, fault.New(evidence.CodeRefused, "%s cannot be verified now: %s", at, proof.Outcome).WithHint("%s", proof.Meaning)
		case a == nil || a.ID != proof.ID || len(a.Record) > len(proof.Record) || proof.Record[:len(a.Record)] != a.Record:
			return nil, fault.New(evidence.CodeRefused, "%s changed while it was verified", at).WithHint("try again in a moment")
		case found[i].Echo:
			return nil, fault.New(evidence.CodeRefused, "%s is mooncite's own answer, which is no evidence", at).WithHint("name the evidence that the answer was about")
		case slices.ContainsFunc(out, func(o anchor) bool { return o.ID == a.ID }):
			return nil, refuse("provenance.evidence_ids names %s twice", a.ID)
		}
		kept := anchor{Anchor: *a, context: a.Context()}
		kept.Record = proof.Record
		out = append(out, kept)
	}
	return out, nil
}

// asked is the scope a request asks for; ok is false when it asks for none.
func asked(in *ScopeIn) (project string, ok bool, err error) {
	switch {
	case in == nil:
		return "", false, nil
	case in.Kind == "global" && in.Project != "":
		return "", false, refuse("scope.project is given, but scope.kind is global")
	case in.Kind == "project" && !evidence.IsProject(in.Project):
		return "", false, refuse("scope.project is not a project as answers name it (project:name-0123456789abcdef)")
	}
	return in.Project, true, nil
}

// infer takes the scope from what a revision rests on: the one project of it all.
func infer(dependencies []string) (string, error) {
	if len(dependencies) == 0 {
		return "", fault.New(evidence.CodeRefused, "what rests on nothing needs a scope").WithHint("give scope: global, or a project")
	}
	for _, p := range dependencies {
		if p == "" || p != dependencies[0] {
			return "", fault.New(evidence.CodeRefused, "what it rests on is not of one project").WithHint("give scope: global")
		}
	}
	return dependencies[0], nil
}

// fits refuses the scope of one project for what rests on anything outside it.
func fits(project string, dependencies []string) error {
	if project == "" {
		return nil
	}
	for _, p := range dependencies {
		if p != project {
			return fault.New(evidence.CodeRefused, "it rests on something outside its project").WithHint("give scope: global, or only evidence and parents of %s", project)
		}
	}
	return nil
}

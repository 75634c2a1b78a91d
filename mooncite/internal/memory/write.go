package memory

import (
	"context"

	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/evidence"
)

// WriteOut is what mooncite_memory_write answers: a revision, a lifecycle or a skill
// candidate, as kind says.
type WriteOut struct {
	Kind              string      `json:"kind" enum:"derived_memory_write|derived_memory_lifecycle|skill_candidate_write"`
	Outcome           string      `json:"outcome" enum:"created|revised|consolidated|activated|archived|reinforced|proposed|reviewed"`
	MemoryID          string      `json:"memoryId,omitzero"`
	Revision          int64       `json:"revision,omitzero"`
	Interpretation    string      `json:"interpretation,omitzero" doc:"An agent's interpretation, never source evidence."`
	OmittedBytes      int         `json:"omittedBytes,omitzero" doc:"Bytes of the interpretation, or of a candidate's instructions, that are not shown."`
	Scope             *Scope      `json:"scope,omitzero"`
	Provenance        *Provenance `json:"provenance,omitzero"`
	ProvenanceOutcome string      `json:"provenanceOutcome,omitzero" enum:"verified|not_evidence_backed"`
	EvidenceIDs       []string    `json:"evidenceIds,omitzero"`
	EvidenceURIs      []string    `json:"evidenceUris,omitzero"`
	Lifecycle         *Lifecycle  `json:"lifecycle,omitzero"`
	Candidate         *Candidate  `json:"candidate,omitzero"`
	ResultDetail      *Detail     `json:"resultDetail,omitempty"`
}

// Write does one write operation.
func (s *Store) Write(ctx context.Context, in WriteIn) (WriteOut, error) {
	takes := fieldsOf[in.Operation]
	if err := checkFields(in.Operation, in.given(), takes.needs, takes.may); err != nil {
		return WriteOut{}, err
	}
	if in.MemoryID != "" {
		if err := checkMemoryID("memory_id", in.MemoryID); err != nil {
			return WriteOut{}, err
		}
	}
	switch in.Operation {
	case opCreate, opConsolidate, opRevise:
		return s.writeRevision(ctx, &in)
	case opPropose:
		return s.propose(ctx, &in)
	case opReview:
		return s.review(ctx, &in)
	}
	return s.changeLife(ctx, &in)
}

func (s *Store) writeRevision(ctx context.Context, in *WriteIn) (WriteOut, error) {
	r, ids, err := s.draft(in)
	if err != nil {
		return WriteOut{}, err
	}
	project, given, err := asked(in.Scope)
	if err != nil {
		return WriteOut{}, err
	}
	// Reading sources takes time: what would be refused anyway is refused before.
	if err := s.read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error { return s.mayWrite(ctx, c, in, r) }); err != nil {
		return WriteOut{}, err
	}
	if r.anchors, err = s.prove(ctx, ids); err != nil {
		return WriteOut{}, err
	}
	if err := s.write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		if err := s.mayWrite(ctx, c, in, r); err != nil {
			return err
		}
		if err := s.settle(ctx, c, in, r, project, given); err != nil {
			return err
		}
		return s.store(ctx, c, r)
	}); err != nil {
		return WriteOut{}, err
	}
	scope, prov := r.scope(), r.provenance()
	out := WriteOut{Kind: "derived_memory_write", Outcome: map[string]string{opCreate: "created", opRevise: "revised", opConsolidate: "consolidated"}[in.Operation],
		MemoryID: r.memory, Revision: r.number, Interpretation: r.interpretation, Scope: &scope, Provenance: &prov, ProvenanceOutcome: notBacked,
		EvidenceIDs: r.evidenceIDs(), EvidenceURIs: r.evidenceURIs()}
	if len(r.anchors) > 0 {
		out.ProvenanceOutcome = verified
	}
	return out, nil
}

// mayWrite checks the guards of a revision and that its parents are there.
func (s *Store) mayWrite(ctx context.Context, c *sqlitedb.Conn, in *WriteIn, r *revision) error {
	if in.Operation == opRevise {
		old, err := revisionAt(ctx, c, in.MemoryID, 0)
		if err != nil {
			return err
		}
		if err := guard("expected_revision", *in.ExpectedRevision, old.head); err != nil {
			return err
		}
		if err := old.mustBeActive(); err != nil {
			return err
		}
	}
	for _, p := range r.parents {
		var one int
		found, err := c.Row(ctx, "SELECT 1 FROM revisions WHERE memory = ? AND revision = ?", []any{p.memory, p.revision}, &one)
		if err != nil {
			return err
		}
		if !found {
			return missing(p.memory, p.revision)
		}
	}
	return nil
}

// guard refuses a change of something that is not as the caller last read it.
func guard(name string, expected, current int64) error {
	if expected == current {
		return nil
	}
	return fault.New(evidence.CodeConflict, "%s is %d, but the current one is %d", name, expected, current).
		WithHint("read the memory again with %s and decide anew", ToolInspect)
}

func (r *revision) mustBeActive() error {
	if r.life.archived == nil {
		return nil
	}
	return fault.New(evidence.CodeRefused, "the memory is archived").WithHint("activate it first")
}

// settle gives a draft its place: memory, number and scope.
func (s *Store) settle(ctx context.Context, c *sqlitedb.Conn, in *WriteIn, r *revision, project string, given bool) error {
	r.memory, r.number, r.derived, r.program = newID(memoryPrefix), 1, s.stamp(), s.program
	if in.Operation == opRevise {
		old, err := revisionAt(ctx, c, in.MemoryID, 0)
		if err != nil {
			return err
		}
		r.memory, r.number, r.doc = old.memory, old.head+1, old.doc
		if !given {
			project, given = old.project, true
		}
	}
	var dependencies []string
	for i := range r.anchors {
		dependencies = append(dependencies, r.anchors[i].Project)
	}
	for _, p := range r.parents {
		var of string
		if _, err := c.Row(ctx, "SELECT coalesce(project, '') FROM revisions WHERE memory = ? AND revision = ?", []any{p.memory, p.revision}, &of); err != nil {
			return err
		}
		dependencies = append(dependencies, of)
	}
	if !given {
		var err error
		if project, err = infer(dependencies); err != nil {
			return err
		}
	}
	r.project = project
	return fits(project, dependencies)
}

// store writes a settled revision as the current one.
func (s *Store) store(ctx context.Context, c *sqlitedb.Conn, r *revision) error {
	if r.number == 1 {
		done, err := c.Exec(ctx, "INSERT INTO memories (id, created, head, version, salience, reinforced) VALUES (?, ?, 1, 1, 0, 0)", r.memory, r.derived)
		if err != nil {
			return err
		}
		if r.doc, err = done.LastInsertId(); err != nil {
			return err
		}
	} else {
		if _, err := c.Exec(ctx, "UPDATE memories SET head = ? WHERE doc = ?", r.number, r.doc); err != nil {
			return err
		}
		if err := dropWords(ctx, c, r.doc); err != nil {
			return err
		}
	}
	if err := r.insert(ctx, c); err != nil {
		return err
	}
	return s.addWords(ctx, c, r.doc, r.interpretation)
}

// changeLife activates, archives or reinforces.
func (s *Store) changeLife(ctx context.Context, in *WriteIn) (WriteOut, error) {
	out := WriteOut{Kind: "derived_memory_lifecycle", Outcome: map[string]string{opActivate: "activated", opArchive: "archived", opReinforce: "reinforced"}[in.Operation]}
	err := s.write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		r, err := s.guarded(ctx, c, in.MemoryID, in.ExpectedRevision, in.ExpectedMetadataVersion)
		if err != nil {
			return err
		}
		if in.Operation != opActivate {
			if err := r.mustBeActive(); err != nil {
				return err
			}
		}
		l, now := &r.life, s.stamp()
		l.version++
		switch in.Operation {
		case opActivate:
			l.archived, l.activated = nil, &now
		case opArchive:
			l.archived = &now
		case opReinforce:
			l.salience = *in.Salience
			l.reinforced++
		}
		if _, err := c.Exec(ctx, "UPDATE memories SET version = ?, archived = ?, salience = ?, activated = ?, reinforced = ? WHERE doc = ?",
			l.version, l.archived, l.salience, l.activated, l.reinforced, r.doc); err != nil {
			return err
		}
		answer := l.answer()
		out.MemoryID, out.Revision, out.Lifecycle = r.memory, r.head, &answer
		return nil
	})
	if err != nil {
		return WriteOut{}, err
	}
	return out, nil
}

// guarded reads a memory and checks both guards.
func (s *Store) guarded(ctx context.Context, c *sqlitedb.Conn, memory string, expected, version *int64) (*revision, error) {
	r, err := revisionAt(ctx, c, memory, 0)
	if err != nil {
		return nil, err
	}
	if err := guard("expected_revision", *expected, r.head); err != nil {
		return nil, err
	}
	return r, guard("expected_metadata_version", *version, r.life.version)
}

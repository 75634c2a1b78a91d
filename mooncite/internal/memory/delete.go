package memory

import (
	"context"

	"localmcp/internal/sqlitedb"
)

// maxDependencies is how many of what blocks a deletion are named.
const maxDependencies = 8

// DeleteIn is what mooncite_memory_delete takes.
type DeleteIn struct {
	Kind                    string `json:"kind" enum:"memory|skill_candidate" doc:"memory: memory_id, expected_revision, expected_metadata_version. skill_candidate: candidate_id, expected_state."`
	MemoryID                string `json:"memory_id,omitempty" maxLength:"64"`
	ExpectedRevision        *int64 `json:"expected_revision,omitempty" min:"1" doc:"The current revision as last read; if it is another now, nothing is deleted."`
	ExpectedMetadataVersion *int64 `json:"expected_metadata_version,omitempty" min:"1" doc:"lifecycle.metadataVersion as last read; if it is another now, nothing is deleted."`
	CandidateID             string `json:"candidate_id,omitempty" maxLength:"64"`
	ExpectedState           string `json:"expected_state,omitempty" enum:"pending_review|approved|rejected" doc:"review.state as last read; if it is another now, nothing is deleted."`
}

// DeleteOut is what mooncite_memory_delete answers.
type DeleteOut struct {
	Kind             string       `json:"kind" enum:"derived_memory_delete|skill_candidate_delete"`
	Outcome          string       `json:"outcome" enum:"deleted|blocked"`
	MemoryID         string       `json:"memoryId,omitzero"`
	CandidateID      string       `json:"candidateId,omitzero"`
	DeletedRevisions int64        `json:"deletedRevisions,omitzero"`
	DependencyCount  int64        `json:"dependencyCount,omitzero" doc:"What blocks the deletion; nothing was changed."`
	Dependencies     []Dependency `json:"dependencies,omitzero" doc:"The first of it, at most 8."`
}

// A Dependency is what keeps a memory from being deleted.
type Dependency struct {
	Kind        string `json:"kind" enum:"relation|skill_candidate"`
	MemoryID    string `json:"memoryId,omitempty" doc:"The memory that is derived from this one."`
	Revision    int64  `json:"revision,omitempty"`
	Relation    string `json:"relation,omitempty"`
	CandidateID string `json:"candidateId,omitempty"`
}

// Delete deletes a memory with all its revisions, or a skill candidate.
func (s *Store) Delete(ctx context.Context, in DeleteIn) (DeleteOut, error) {
	fields := []given{{"memory_id", in.MemoryID != ""}, {"expected_revision", in.ExpectedRevision != nil}, {"expected_metadata_version", in.ExpectedMetadataVersion != nil},
		{"candidate_id", in.CandidateID != ""}, {"expected_state", in.ExpectedState != ""}}
	if in.Kind == "skill_candidate" {
		if err := checkFields("kind "+in.Kind, fields, []string{"candidate_id", "expected_state"}, nil); err != nil {
			return DeleteOut{}, err
		}
		if err := checkCandidateID(in.CandidateID); err != nil {
			return DeleteOut{}, err
		}
		return s.deleteCandidate(ctx, &in)
	}
	if err := checkFields("kind "+in.Kind, fields, []string{"memory_id", "expected_revision", "expected_metadata_version"}, nil); err != nil {
		return DeleteOut{}, err
	}
	if err := checkMemoryID("memory_id", in.MemoryID); err != nil {
		return DeleteOut{}, err
	}
	return s.deleteMemory(ctx, &in)
}

func (s *Store) deleteMemory(ctx context.Context, in *DeleteIn) (DeleteOut, error) {
	out := DeleteOut{Kind: "derived_memory_delete", MemoryID: in.MemoryID}
	err := s.write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		r, err := s.guarded(ctx, c, in.MemoryID, in.ExpectedRevision, in.ExpectedMetadataVersion)
		if err != nil {
			return err
		}
		if out.DependencyCount, out.Dependencies, err = dependenciesOf(ctx, c, r.memory); err != nil {
			return err
		}
		if out.DependencyCount > 0 {
			out.Outcome = "blocked"
			return nil
		}
		out.Outcome, out.DeletedRevisions, out.Dependencies = "deleted", r.head, nil
		if err := dropWords(ctx, c, r.doc); err != nil {
			return err
		}
		// Relations among its own revisions would forbid the cascade.
		for _, q := range []string{"DELETE FROM relations WHERE memory = ?", "DELETE FROM memories WHERE id = ?"} {
			if _, err := c.Exec(ctx, q, r.memory); err != nil {
				return err
			}
		}
		return forgetWords(ctx, c)
	})
	if err != nil {
		return DeleteOut{}, err
	}
	if out.Outcome == "deleted" {
		s.flushLog(ctx)
	}
	return out, nil
}

// dependenciesOf counts and names what rests on a memory from outside: relations of
// other memories first, then skill candidates.
func dependenciesOf(ctx context.Context, c *sqlitedb.Conn, memory string) (n int64, list []Dependency, err error) {
	if _, err := c.Row(ctx, "SELECT (SELECT count(*) FROM relations WHERE parent = ?1 AND memory <> ?1) + (SELECT count(DISTINCT candidate) FROM candidate_sources WHERE memory = ?1)", []any{memory}, &n); err != nil {
		return 0, nil, err
	}
	if err := c.Each(ctx, "SELECT memory, revision, relation FROM relations WHERE parent = ?1 AND memory <> ?1 ORDER BY memory, revision, position LIMIT ?2", []any{memory, maxDependencies}, func(scan scanner) error {
		d := Dependency{Kind: "relation"}
		err := scan(&d.MemoryID, &d.Revision, &d.Relation)
		list = append(list, d)
		return err
	}); err != nil {
		return 0, nil, err
	}
	err = c.Each(ctx, "SELECT DISTINCT candidate FROM candidate_sources WHERE memory = ? ORDER BY candidate LIMIT ?", []any{memory, maxDependencies - len(list)}, func(scan scanner) error {
		d := Dependency{Kind: "skill_candidate"}
		err := scan(&d.CandidateID)
		list = append(list, d)
		return err
	})
	return n, list, err
}

func (s *Store) deleteCandidate(ctx context.Context, in *DeleteIn) (DeleteOut, error) {
	err := s.write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		if err := guardState(ctx, c, in.CandidateID, in.ExpectedState); err != nil {
			return err
		}
		_, err := c.Exec(ctx, "DELETE FROM candidates WHERE id = ?", in.CandidateID)
		return err
	})
	if err != nil {
		return DeleteOut{}, err
	}
	s.flushLog(ctx)
	return DeleteOut{Kind: "skill_candidate_delete", Outcome: "deleted", CandidateID: in.CandidateID}, nil
}

// forgetWords merges the words, so that those of what was deleted leave the file.
func forgetWords(ctx context.Context, c *sqlitedb.Conn) error {
	_, err := c.Exec(ctx, "INSERT INTO words (words) VALUES ('optimize')")
	return err
}

// flushLog empties the log, which may still hold pages of what was deleted. Where a
// reader holds it back the next deletion or the last process to close does it.
func (s *Store) flushLog(ctx context.Context) {
	if db, err := s.open(ctx, true); err == nil {
		_, _ = db.Checkpoint(context.WithoutCancel(ctx))
	}
}

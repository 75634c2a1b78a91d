package memory

import (
	"context"
	"fmt"
	"slices"

	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/evidence"
)

// States of a skill candidate besides approved and rejected.
const pendingReview = "pending_review"

// propose keeps a skill that an agent made of memories, for the owner to review.
func (s *Store) propose(ctx context.Context, in *WriteIn) (WriteOut, error) {
	k := Candidate{Kind: "skill_candidate", CandidateID: newID(candidatePrefix), Review: Review{State: pendingReview}}
	var err error
	for _, f := range []struct {
		field
		from string
		to   *string
	}{
		{field{"artifact.name", maxName, false}, in.Artifact.Name, &k.Artifact.Name},
		{field{"artifact.description", maxDescription, false}, in.Artifact.Description, &k.Artifact.Description},
		{field{"artifact.instructions", maxInstructions, true}, in.Artifact.Instructions, &k.Artifact.Instructions},
	} {
		if *f.to, err = f.clean(f.from); err != nil {
			return WriteOut{}, err
		}
		if err := s.noSecret(f.name, *f.to); err != nil {
			return WriteOut{}, err
		}
	}
	for i, x := range in.Sources {
		if err := checkMemoryID(fmt.Sprintf("sources[%d].memory_id", i), x.MemoryID); err != nil {
			return WriteOut{}, err
		}
		if slices.Contains(k.Sources, Source(x)) {
			return WriteOut{}, refuse("sources names revision %d of %s twice", x.Revision, x.MemoryID)
		}
		k.Sources = append(k.Sources, Source(x))
	}
	if n := len(k.Sources); n < 1 || n > maxSources {
		return WriteOut{}, refuse("a candidate has 1 to %d sources, not %d", maxSources, n)
	}
	err = s.write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		now := s.stamp()
		k.CreatedAt = timeOf(now)
		if _, err := c.Exec(ctx, "INSERT INTO candidates (id, created, name, description, instructions, state) VALUES (?, ?, ?, ?, ?, ?)",
			k.CandidateID, now, k.Artifact.Name, k.Artifact.Description, k.Artifact.Instructions, pendingReview); err != nil {
			return err
		}
		for i, x := range k.Sources {
			if _, err := revisionAt(ctx, c, x.MemoryID, x.Revision); err != nil {
				return err
			}
			if _, err := c.Exec(ctx, "INSERT INTO candidate_sources VALUES (?, ?, ?, ?)", k.CandidateID, i, x.MemoryID, x.Revision); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return WriteOut{}, err
	}
	return WriteOut{Kind: "skill_candidate_write", Outcome: "proposed", Candidate: &k}, nil
}

// review notes what was decided. It never installs anything.
func (s *Store) review(ctx context.Context, in *WriteIn) (WriteOut, error) {
	if err := checkCandidateID(in.CandidateID); err != nil {
		return WriteOut{}, err
	}
	note, err := field{"note", maxNote, false}.clean(in.Note)
	if err != nil {
		return WriteOut{}, err
	}
	if err := s.noSecret("note", note); err != nil {
		return WriteOut{}, err
	}
	var k *Candidate
	err = s.write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		if err := guardState(ctx, c, in.CandidateID, in.ExpectedState); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, "UPDATE candidates SET state = ?, note = ?, reviewed = ? WHERE id = ?", in.Decision, note, s.stamp(), in.CandidateID); err != nil {
			return err
		}
		k, err = candidateAt(ctx, c, in.CandidateID)
		return err
	})
	if err != nil {
		return WriteOut{}, err
	}
	return WriteOut{Kind: "skill_candidate_write", Outcome: "reviewed", Candidate: k}, nil
}

// guardState refuses a change of a candidate that is not as the caller last read it.
func guardState(ctx context.Context, c *sqlitedb.Conn, id, expected string) error {
	k, err := candidateAt(ctx, c, id)
	if err != nil {
		return err
	}
	if k.Review.State != expected {
		return fault.New(evidence.CodeConflict, "expected_state is %s, but the current one is %s", expected, k.Review.State).
			WithHint("read the candidate again with %s and decide anew", ToolInspect)
	}
	return nil
}

func candidateAt(ctx context.Context, c *sqlitedb.Conn, id string) (*Candidate, error) {
	list, err := candidatesWhere(ctx, c, "WHERE id = ?", id)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fault.New(evidence.CodeNotFound, "there is no skill candidate %s", id).WithHint("%s of a memory lists the candidates made from it", ToolInspect)
	}
	return &list[0], nil
}

func candidatesWhere(ctx context.Context, c *sqlitedb.Conn, where string, args ...any) ([]Candidate, error) {
	list := []Candidate{}
	if err := c.Each(ctx, "SELECT id, created, name, description, instructions, state, note, reviewed FROM candidates "+where, args, func(scan scanner) error {
		k := Candidate{Kind: "skill_candidate", Sources: []Source{}}
		var created int64
		var reviewed *int64
		err := scan(&k.CandidateID, &created, &k.Artifact.Name, &k.Artifact.Description, &k.Artifact.Instructions, &k.Review.State, &k.Review.Note, &reviewed)
		k.CreatedAt, k.Review.ReviewedAt = timeOf(created), timeOrNil(reviewed)
		list = append(list, k)
		return err
	}); err != nil {
		return nil, err
	}
	for i := range list {
		k := &list[i]
		if err := c.Each(ctx, "SELECT memory, revision FROM candidate_sources WHERE candidate = ? ORDER BY position", []any{k.CandidateID}, func(scan scanner) error {
			var x Source
			err := scan(&x.MemoryID, &x.Revision)
			k.Sources = append(k.Sources, x)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return list, nil
}

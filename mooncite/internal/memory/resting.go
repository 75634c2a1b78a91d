package memory

import (
	"context"
	"errors"
	"io/fs"

	"localmcp/internal/sqlitedb"
)

// How something rests on evidence.
const (
	RestsNow     = "current_revision"  // recall leaves it out once the evidence is forgotten
	RestedBefore = "an_older_revision" // the current one is recalled
	RestsDerived = "derived"           // from something that rests on it; it is recalled
	RestsSkill   = "skill_candidate"   // proposed from something that rests on it
)

// Resting is a memory, or a skill candidate, that rests on a piece of evidence.
type Resting struct {
	ID  string
	How string
}

// RestingOn names what rests on a session (qualified) or on one span (evidence id), on its
// own or along relations, in an order in which nothing keeps the next from being deleted:
// skill candidates, then what is derived, the farthest first. Without a database there is
// nothing.
func (s *Store) RestingOn(ctx context.Context, session, span string) ([]Resting, error) {
	db, err := s.open(ctx, true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Resting
	err = db.Read(ctx, func(c *sqlitedb.Conn) error {
		// A revision is derived only from older ones, so that the walk ends.
		return c.Each(ctx, `WITH RECURSIVE
			own(memory, revision) AS (SELECT DISTINCT memory, revision FROM anchors WHERE session = ?1 OR evidence_id = ?2),
			rests(memory, revision, far) AS (SELECT memory, revision, 0 FROM own
				UNION SELECT l.memory, l.revision, r.far + 1 FROM relations AS l JOIN rests AS r ON l.parent = r.memory AND l.parent_revision = r.revision)
			SELECT id, how FROM (
				SELECT s.candidate AS id, '`+RestsSkill+`' AS how, 1 AS skill, 0 AS far FROM candidate_sources AS s JOIN rests AS r ON r.memory = s.memory AND r.revision = s.revision GROUP BY s.candidate
				UNION ALL
				SELECT r.memory, CASE WHEN EXISTS (SELECT 1 FROM own JOIN memories AS m ON m.id = own.memory AND m.head = own.revision WHERE m.id = r.memory) THEN '`+RestsNow+`'
					WHEN EXISTS (SELECT 1 FROM own WHERE own.memory = r.memory) THEN '`+RestedBefore+`' ELSE '`+RestsDerived+`' END, 0, max(r.far)
				FROM rests AS r GROUP BY r.memory)
			ORDER BY skill DESC, far DESC, id`, []any{session, span}, func(scan scanner) error {
			var r Resting
			err := scan(&r.ID, &r.How)
			out = append(out, r)
			return err
		})
	})
	return out, err
}

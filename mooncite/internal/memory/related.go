package memory

import (
	"context"
	"slices"

	"localmcp/internal/sqlitedb"
)

// Bounds of what is shown of related memories.
const (
	excerptBytes = 512
	relatedPage  = 32 // incoming relations that are read at a time
)

// Related is a revision one relation away.
type Related struct {
	Direction             string    `json:"direction" enum:"outgoing|incoming" doc:"outgoing: the memory is derived from this one. incoming: this one is derived from the memory."`
	Relation              string    `json:"relation" enum:"supports|contradicts|refines|supersedes"`
	Reason                string    `json:"reason"`
	MemoryID              string    `json:"memoryId"`
	Revision              int64     `json:"revision"`
	IsCurrent             bool      `json:"isCurrent"`
	InterpretationExcerpt string    `json:"interpretationExcerpt" doc:"Untrusted: an agent's words, quoted as data."`
	ProvenanceKind        string    `json:"provenanceKind" enum:"verified|derived|current_context|unanchored"`
	ProvenanceState       string    `json:"provenanceState" enum:"deauthorized|content_mismatch|context_mismatch|unavailable|last_good|indexed|not_evidence_backed"`
	Quarantined           bool      `json:"quarantined"`
	Lifecycle             Lifecycle `json:"lifecycle"`
}

// An edge is a relation seen from one of its ends.
type edge struct {
	direction string
	parent
	other *revision
}

// related finds what is one relation away: first what a revision is derived from, then
// what is derived from it, all under the rules of the recall itself.
func (s *Store) related(ctx context.Context, d *doctor, r *revision, limit int, sight visible) ([]Related, error) {
	out := []Related{}
	take := func(edges []edge) error {
		others := make([]*revision, len(edges))
		for i := range edges {
			others[i] = edges[i].other
		}
		if err := d.look(ctx, others); err != nil {
			return err
		}
		for _, e := range edges {
			state := d.revision(e.other)
			if len(out) < limit && (sight.invalid || !quarantines(state)) {
				out = append(out, Related{Direction: e.direction, Relation: e.relation, Reason: e.reason, MemoryID: e.other.memory, Revision: e.other.number, IsCurrent: e.other.current(),
					InterpretationExcerpt: cutText(e.other.interpretation, excerptBytes), ProvenanceKind: e.other.kind, ProvenanceState: state, Quarantined: quarantines(state), Lifecycle: e.other.life.answer()})
			}
		}
		return nil
	}
	var outgoing []edge
	if err := s.read(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		for _, p := range r.parents {
			if err = addEdge(ctx, c, &outgoing, "outgoing", p, p.memory, p.revision, sight); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := take(outgoing); err != nil {
		return nil, err
	}
	afterID, afterRevision := "", int64(0)
	for len(out) < limit {
		var page []edge
		more := false
		if err := s.read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
			children, err := childrenOf(ctx, c, r, afterID, afterRevision, sight)
			if err != nil {
				return err
			}
			for _, p := range children {
				if err := addEdge(ctx, c, &page, "incoming", p, p.memory, p.revision, sight); err != nil {
					return err
				}
				afterID, afterRevision = p.memory, p.revision
			}
			more = len(children) == relatedPage
			return nil
		}); err != nil {
			return nil, err
		}
		if err := take(page); err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	return out, nil
}

// childrenOf reads the next visible revisions that are derived from one.
func childrenOf(ctx context.Context, c *sqlitedb.Conn, r *revision, afterID string, afterRevision int64, sight visible) ([]parent, error) {
	var list []parent
	args := slices.Concat([]any{r.memory, r.number, afterID, afterRevision}, sight.args(), []any{relatedPage})
	err := c.Each(ctx, `SELECT l.memory, l.revision, l.relation, l.reason FROM relations AS l JOIN memories AS m ON m.id = l.memory JOIN revisions AS r ON r.memory = l.memory AND r.revision = l.revision
		WHERE l.parent = ? AND l.parent_revision = ? AND (l.memory, l.revision) > (?, ?) AND `+visibleSQL("m", "r")+` ORDER BY l.memory, l.revision LIMIT ?`, args, func(scan scanner) error {
		var p parent
		err := scan(&p.memory, &p.revision, &p.relation, &p.reason)
		list = append(list, p)
		return err
	})
	return list, err
}

// addEdge reads the revision at the other end, if it may be seen.
func addEdge(ctx context.Context, c *sqlitedb.Conn, edges *[]edge, direction string, p parent, memory string, number int64, sight visible) error {
	found, err := revisionsWhere(ctx, c, "WHERE r.memory = ? AND r.revision = ? AND "+visibleSQL("m", "r"), append([]any{memory, number}, sight.args()...)...)
	for _, r := range found {
		*edges = append(*edges, edge{direction, p, r})
	}
	return err
}

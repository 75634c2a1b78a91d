package memory

import (
	"context"

	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/evidence"
)

// Kinds of provenance: what a revision rests on.
const (
	verified       = "verified"        // evidence that was inspected when it was written
	derived        = "derived"         // other memories
	currentContext = "current_context" // what was going on when it was written
	unanchored     = "unanchored"      // nothing that can be looked up
)

// Bounds of what a revision rests on.
const (
	maxEvidence = 8
	maxParents  = 8
	maxSources  = 8
)

// States of a memory.
const (
	active   = "active"
	archived = "archived"
)

const derivation = "explicit_agent" // the only way a revision comes about

// A revision is one revision of a memory with everything it rests on.
type revision struct {
	memory         string
	number         int64
	interpretation string
	project        string // "": global
	kind           string
	note           string // "": none
	derived        int64
	program        string
	anchors        []anchor
	parents        []parent

	doc  int64
	head int64
	life life
}

func (r *revision) current() bool { return r.number == r.head }

// An anchor is saved evidence with what an inspection found wrong with it.
type anchor struct {
	evidence.Anchor
	context  string
	observed string // a state, or ""
}

// A parent is an exact revision that another is derived from.
type parent struct {
	memory   string
	revision int64
	relation string
	reason   string
}

// life is what may change about a memory.
type life struct {
	version    int64
	archived   *int64
	salience   int64
	activated  *int64
	reinforced int64
}

func (l *life) state() string {
	if l.archived != nil {
		return archived
	}
	return active
}

const revisionColumns = `SELECT r.memory, r.revision, r.interpretation, coalesce(r.project, ''), r.kind, coalesce(r.note, ''), r.derived, r.program,
	m.doc, m.head, m.version, m.archived, m.salience, m.activated, m.reinforced FROM revisions AS r JOIN memories AS m ON m.id = r.memory `

// revisionsWhere reads revisions with their anchors and parents.
func revisionsWhere(ctx context.Context, c *sqlitedb.Conn, where string, args ...any) ([]*revision, error) {
	var list []*revision
	if err := c.Each(ctx, revisionColumns+where, args, func(scan scanner) error {
		r := &revision{}
		list = append(list, r)
		return scan(&r.memory, &r.number, &r.interpretation, &r.project, &r.kind, &r.note, &r.derived, &r.program,
			&r.doc, &r.head, &r.life.version, &r.life.archived, &r.life.salience, &r.life.activated, &r.life.reinforced)
	}); err != nil {
		return nil, err
	}
	for _, r := range list {
		if err := r.readAnchors(ctx, c); err != nil {
			return nil, err
		}
		if err := r.readParents(ctx, c); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r *revision) readAnchors(ctx context.Context, c *sqlitedb.Conn) error {
	return c.Each(ctx, `SELECT a.evidence_id, a.evidence_uri, a.origin, a.root, a.project, a.session, a.record, a.span, a.context, a.role, a.kind, a.parent, a.branch, a.compaction, coalesce(o.state, '')
		FROM anchors AS a LEFT JOIN observed AS o ON o.memory = a.memory AND o.revision = a.revision AND o.position = a.position
		WHERE a.memory = ? AND a.revision = ? ORDER BY a.position`, []any{r.memory, r.number}, func(scan scanner) error {
		var a anchor
		err := scan(&a.ID, &a.URI, &a.Origin, &a.Root, &a.Project, &a.Session, &a.Record, &a.Span, &a.context, &a.Role, &a.Kind, &a.Parent, &a.Branch, &a.Compaction, &a.observed)
		r.anchors = append(r.anchors, a)
		return err
	})
}

func (r *revision) readParents(ctx context.Context, c *sqlitedb.Conn) error {
	return c.Each(ctx, "SELECT parent, parent_revision, relation, reason FROM relations WHERE memory = ? AND revision = ? ORDER BY position", []any{r.memory, r.number}, func(scan scanner) error {
		var p parent
		err := scan(&p.memory, &p.revision, &p.relation, &p.reason)
		r.parents = append(r.parents, p)
		return err
	})
}

// revisionAt reads one revision; number 0 means the current one.
func revisionAt(ctx context.Context, c *sqlitedb.Conn, memory string, number int64) (*revision, error) {
	where, args := "WHERE r.memory = ? AND r.revision = m.head", []any{memory}
	if number != 0 {
		where, args = "WHERE r.memory = ? AND r.revision = ?", []any{memory, number}
	}
	list, err := revisionsWhere(ctx, c, where, args...)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, missing(memory, number)
	}
	return list[0], nil
}

func missing(memory string, number int64) error {
	if number == 0 {
		return fault.New(evidence.CodeNotFound, "there is no memory %s", memory).WithHint("find it anew with %s", ToolRecall)
	}
	return fault.New(evidence.CodeNotFound, "there is no revision %d of %s", number, memory).WithHint("%s shows the current one", ToolInspect)
}

// insert stores a revision, its anchors and its parents.
func (r *revision) insert(ctx context.Context, c *sqlitedb.Conn) error {
	if _, err := c.Exec(ctx, "INSERT INTO revisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		r.memory, r.number, r.interpretation, orNull(r.project), r.kind, orNull(r.note), r.derived, derivation, r.program); err != nil {
		return err
	}
	for i := range r.anchors {
		a := &r.anchors[i]
		if _, err := c.Exec(ctx, "INSERT INTO anchors VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", r.memory, r.number, i,
			a.ID, a.URI, a.Origin, a.Root, a.Project, a.Session, a.Record, a.Span, a.context, a.Role, a.Kind, a.Parent, a.Branch, a.Compaction); err != nil {
			return err
		}
	}
	for i := range r.parents {
		p := &r.parents[i]
		if _, err := c.Exec(ctx, "INSERT INTO relations VALUES (?, ?, ?, ?, ?, ?, ?)", r.memory, r.number, i, p.memory, p.revision, p.relation, p.reason); err != nil {
			return err
		}
	}
	return nil
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

// fingerprint is the digest of the schema that the migrations make.
const fingerprint = "dd8ff48b130ec02fb6ab78b9f954c92b1ca4712949542bb48c928c38811a4466"

// schemaDigest digests every object of the schema but the tables that FTS5 keeps for
// itself, whose text is SQLite's own.
func schemaDigest(ctx context.Context, c *sqlitedb.Conn) (string, error) {
	var all []string
	if err := c.Each(ctx, `SELECT type, name, coalesce(sql, '') FROM sqlite_schema
		WHERE name NOT IN ('words_data', 'words_idx', 'words_docsize', 'words_config') ORDER BY type, name`, nil, func(scan scanner) error {
		var kind, name, text string
		err := scan(&kind, &name, &text)
		all = append(all, kind, name, text)
		return err
	}); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(all, "\x00")))
	return hex.EncodeToString(sum[:]), nil
}

// checkSchema refuses a database to which something was added or in which something is
// missing.
func checkSchema(ctx context.Context, c *sqlitedb.Conn) error {
	got, err := schemaDigest(ctx, c)
	if err != nil {
		return err
	}
	if got != fingerprint {
		return fault.New(sqlitedb.Foreign, "the database of learned memory was changed by another program: its tables are not those of this version").WithHint("%s", wayOut)
	}
	return nil
}

// Invariants of the whole database. Each query counts what breaks the rule it stands by.
var invariants = []struct{ rule, count string }{
	{"a reference leads nowhere", "SELECT count(*) FROM pragma_foreign_key_check"},
	{"the current revision is not the newest, or one before it is missing", `SELECT count(*) FROM memories AS m WHERE
		m.head <> (SELECT coalesce(max(revision), 0) FROM revisions WHERE memory = m.id) OR m.head <> (SELECT count(*) FROM revisions WHERE memory = m.id)`},
	{"a revision has not as much evidence and as many parents as its provenance asks for", `SELECT count(*) FROM (
		SELECT r.kind,
			(SELECT count(*) FROM anchors AS a WHERE a.memory = r.memory AND a.revision = r.revision) AS evidence,
			(SELECT count(*) FROM relations AS p WHERE p.memory = r.memory AND p.revision = r.revision) AS parents
		FROM revisions AS r) WHERE NOT CASE kind
			WHEN 'verified' THEN evidence BETWEEN 1 AND 8 AND parents = 0
			WHEN 'derived' THEN evidence BETWEEN 0 AND 8 AND parents BETWEEN 1 AND 8
			WHEN 'current_context' THEN evidence BETWEEN 0 AND 8 AND parents = 0
			WHEN 'unanchored' THEN evidence = 0 AND parents = 0
			ELSE 0 END`},
	{"anchors are not numbered from 0 without a gap", "SELECT count(*) FROM (SELECT max(position) AS last, count(*) AS n FROM anchors GROUP BY memory, revision) WHERE last <> n - 1"},
	{"relations are not numbered from 0 without a gap", "SELECT count(*) FROM (SELECT max(position) AS last, count(*) AS n FROM relations GROUP BY memory, revision) WHERE last <> n - 1"},
	{"a revision of one project rests on something of another", `SELECT
		(SELECT count(*) FROM revisions AS r JOIN anchors AS a ON a.memory = r.memory AND a.revision = r.revision WHERE r.project IS NOT NULL AND a.project <> r.project) +
		(SELECT count(*) FROM revisions AS r JOIN relations AS p ON p.memory = r.memory AND p.revision = r.revision
			JOIN revisions AS q ON q.memory = p.parent AND q.revision = p.parent_revision WHERE r.project IS NOT NULL AND q.project IS NOT r.project)`},
	{"a skill candidate has not 1 to 8 sources numbered from 0", `SELECT count(*) FROM candidates AS k LEFT JOIN
		(SELECT candidate, max(position) AS last, count(*) AS n FROM candidate_sources GROUP BY candidate) AS s ON s.candidate = k.id
		WHERE s.n IS NULL OR s.n NOT BETWEEN 1 AND 8 OR s.last <> s.n - 1`},
	{"the words are not those of the current revisions", `SELECT
		(SELECT count(*) FROM memories WHERE doc NOT IN (SELECT id FROM words_docsize)) +
		(SELECT count(*) FROM words_docsize WHERE id NOT IN (SELECT doc FROM memories))`},
}

// check holds the database against its invariants and asks SQLite whether it is whole. It
// is for a new connection: one that has used the words before remembers their segments,
// and SQLite's own check of them takes another process's changes for damage.
func check(ctx context.Context, c *sqlitedb.Conn) error {
	var word string
	if _, err := c.Row(ctx, "PRAGMA quick_check(1)", nil, &word); err != nil {
		return err
	}
	if word != "ok" {
		return fault.Wrap(sqlitedb.Damaged, errors.New(word), "the database of learned memory is damaged: SQLite finds it inconsistent").WithHint("%s", wayOut)
	}
	for _, i := range invariants {
		var n int64
		if _, err := c.Row(ctx, i.count, nil, &n); err != nil {
			return err
		}
		if n > 0 {
			return damaged(i.rule)
		}
	}
	return nil
}

package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/sqlitedb"
)

// Status says what is kept, or why it cannot be used.
type Status struct {
	Kind                   string `json:"kind" enum:"derived_memory_status"`
	Enabled                bool   `json:"enabled"`
	Outcome                string `json:"outcome" enum:"ready|unavailable"`
	ErrorCode              string `json:"errorCode,omitempty" enum:"unsupported_schema|unsafe_storage|busy|unavailable"`
	Message                string `json:"message,omitempty"`
	Database               string `json:"database"`
	SchemaVersion          *int   `json:"schemaVersion" doc:"Null where there is no database yet, or none that can be used."`
	Memories               int64  `json:"memories"`
	Revisions              int64  `json:"revisions"`
	Active                 int64  `json:"active"`
	Archived               int64  `json:"archived"`
	SkillCandidates        int64  `json:"skillCandidates"`
	PendingSkillCandidates int64  `json:"pendingSkillCandidates"`
	StateBytes             int64  `json:"stateBytes"`
}

// Status counts what is kept. It makes no database, and what is wrong with one is part
// of the answer, not an error.
func (s *Store) Status(ctx context.Context) Status {
	out := Status{Kind: "derived_memory_status", Enabled: true, Outcome: "ready", Database: databaseName}
	for _, name := range files() {
		if st, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
			out.StateBytes += st.Size()
		}
	}
	err := s.count(ctx, &out)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return out
	}
	f := fault.From(err)
	out.Outcome, out.ErrorCode, out.Message = unavailable, errorCode(err), f.Error()
	if f.Hint != "" {
		out.Message += "; " + f.Hint
	}
	return out
}

func (s *Store) count(ctx context.Context, out *Status) error {
	db, err := s.open(ctx, true)
	if err != nil {
		return err
	}
	return db.Read(ctx, func(c *sqlitedb.Conn) error {
		var version int
		if _, err := c.Row(ctx, `SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM revisions), (SELECT count(*) FROM memories WHERE archived IS NOT NULL),
			(SELECT count(*) FROM candidates), (SELECT count(*) FROM candidates WHERE state = 'pending_review'), (SELECT user_version FROM pragma_user_version)`, nil,
			&out.Memories, &out.Revisions, &out.Archived, &out.SkillCandidates, &out.PendingSkillCandidates, &version); err != nil {
			return err
		}
		out.Active, out.SchemaVersion = out.Memories-out.Archived, &version
		return nil
	})
}

// errorCode sorts the reasons why the database cannot be used.
func errorCode(err error) string {
	switch {
	case errors.Is(err, sqlitedb.Newer), errors.Is(err, sqlitedb.Foreign):
		return "unsupported_schema"
	case errors.Is(err, privdir.Unsafe):
		return "unsafe_storage"
	case errors.Is(err, sqlitedb.Busy), errors.Is(err, privdir.Busy):
		return "busy"
	}
	return unavailable
}

// Text is the status in words, with the same facts as its structure.
func (s Status) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Mooncite learned-memory status: %s; enabled=%t; database %s, %d bytes", s.Outcome, s.Enabled, s.Database, s.StateBytes)
	if s.SchemaVersion != nil {
		fmt.Fprintf(&b, ", version %d", *s.SchemaVersion)
	}
	b.WriteString("\n")
	if s.ErrorCode != "" {
		line(&b, "Problem", s.ErrorCode+": "+s.Message)
	}
	fmt.Fprintf(&b, "Memories: %d (%d active, %d archived), %d revisions; skill candidates: %d (%d to review)\n", s.Memories, s.Active, s.Archived, s.Revisions, s.SkillCandidates, s.PendingSkillCandidates)
	return b.String()
}
